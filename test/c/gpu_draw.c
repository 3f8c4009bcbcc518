/* Pictures drawn off-screen, looked at pixel by pixel. Nearly all cameras here show a world unit as a pixel. */
#include "test.h"

#include "gpu_test.h"

#include "base/mem.h"

#include <SDL.h>

#define WIDTH 160
#define HEIGHT 120
#define BACKGROUND 0xff1b1612u

static gpu_test open_small(void)
{
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    return gpu_test_open(NULL, WIDTH, HEIGHT);
}

/* From the front, a unit a pixel, the origin in the middle of the picture. */
static gpu_frame front_view(void)
{
    gpu_frame frame = {.background = BACKGROUND};
    gpu_test_orthographic(&frame, (gpu_test_vec){0, 0, 100}, (gpu_test_vec){0, 0, 0}, HEIGHT / 2, (float)WIDTH / HEIGHT,
                          200);
    return frame;
}

static gpu_box box_at(float x, float y, float z, float width, float height, uint32_t color, uint32_t id)
{
    return (gpu_box){{x, y, z}, {x + width, y + height, z + 1}, color, id};
}

static void draw(gpu_test *t, gpu_frame *frame, const gpu_box *boxes, size_t count)
{
    frame->boxes = boxes;
    frame->box_count = count;
    GPU_TEST_DRAW(t, frame);
    gpu_test_read(t);
}

static int brightness(uint32_t color) { return (int)((color & 0xff) + (color >> 8 & 0xff) + (color >> 16 & 0xff)); }

TEST(an_empty_frame_is_background_everywhere_and_needs_no_window_system)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    draw(&t, &frame, NULL, 0);
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            CHECK_PIXEL(&t, x, y, BACKGROUND);
    CHECK_EQ(gpu_read_id(t.g, 5, 5), 0);
    CHECK_EQ(SDL_WasInit(0), 0);
    CHECK(gpu_device_name(t.g)[0]);
    CHECK_STR(gpu_error(t.g), "");
    gpu_test_close(&t);
}

TEST(a_frame_says_how_long_the_device_worked_on_it)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    CHECK(gpu_times_of(t.g).device_ms == 0); /* none is finished yet */
    for (int i = 0; i < 4; i++)
        draw(&t, &frame, &(gpu_box){{-50, -50, 0}, {50, 50, 1}, 0xff808080u, 1}, 1);
    double device_ms = gpu_times_of(t.g).device_ms;
    if (device_ms == 0)
        TEST_SKIP("this device has no clock");
    CHECK(device_ms > 0 && device_ms < 30000); /* a wrap or a garbled unit would be hours */
    gpu_test_close(&t);
}

TEST(a_box_is_its_colour_where_it_is_and_nothing_is_drawn_elsewhere)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box box =
        box_at(-20, -10, 0, 40, 30, 0xff2030e0, 1); /* pixels [60, 100) x [40, 70): y goes up in the world */
    draw(&t, &frame, &box, 1);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        for (uint32_t x = 0; x < WIDTH; x++) {
            bool is_inside = x >= 60 && x < 100 && y >= 40 && y < 70;
            bool is_inner = x >= 62 && x < 98 && y >= 42 && y < 68;
            if (is_inner)
                CHECK_PIXEL(&t, x, y, 0xff2030e0);
            else if (is_inside) /* at most the outline: darker, never lighter */
                CHECK(brightness(gpu_test_pixel(&t, x, y)) <= brightness(0xff2030e0) &&
                      gpu_test_pixel(&t, x, y) != BACKGROUND);
            else
                CHECK_PIXEL(&t, x, y, BACKGROUND);
        }
    }
    CHECK(brightness(gpu_test_pixel(&t, 60, 55)) < brightness(0xff2030e0)); /* there is an outline */
    gpu_test_close(&t);
}

TEST(a_box_of_few_pixels_keeps_its_colour_instead_of_being_all_outline)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box box = box_at(-20, -10, 0, 2, 2, 0xff2030e0, 1);
    draw(&t, &frame, &box, 1);
    CHECK_PIXEL(&t, 60, 69, 0xff2030e0);
    CHECK_PIXEL(&t, 61, 68, 0xff2030e0);
    CHECK_PIXEL(&t, 62, 69, BACKGROUND);
    gpu_test_close(&t);
}

TEST(a_nearer_box_hides_a_farther_one_whichever_comes_first)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    gpu_box boxes[] = {box_at(-20, -20, 0, 40, 40, 0xff0000ff, 1), box_at(-10, -10, 5, 20, 20, 0xff00ff00, 2)};
    for (int order = 0; order < 2; order++) {
        draw(&t, &frame, boxes, 2);
        CHECK_PIXEL(&t, WIDTH / 2, HEIGHT / 2, 0xff00ff00);
        CHECK_PIXEL(&t, WIDTH / 2 - 15, HEIGHT / 2, 0xff0000ff);
        gpu_box first = boxes[0];
        boxes[0] = boxes[1];
        boxes[1] = first;
    }
    gpu_test_close(&t);
}

static uint32_t seen_at(const gpu_test *t, const gpu_frame *frame, gpu_test_vec point)
{
    uint32_t px[2];
    gpu_test_project(frame, point, t->width, t->height, px);
    return gpu_test_pixel(t, px[0], px[1]);
}

TEST(the_three_faces_that_are_seen_have_three_brightnesses_from_every_side)
{
    gpu_test t = open_small();
    const uint32_t color = 0xff8090a0;
    const gpu_box box = {{-10, -10, -10}, {10, 10, 10}, color, 1};
    for (int from = 0; from < 16; from++) {
        float x = from & 1 ? 1.0f : -1.0f, y = from & 2 ? 1.0f : -1.0f, z = from & 4 ? 1.0f : -1.0f;
        gpu_frame frame = {.background = BACKGROUND, .y_is_down = from == 15};
        gpu_test_vec eye = {x * 26, y * 28, z * 30}, middle = {0, 0, 0};
        if (from & 8)
            gpu_test_orthographic(&frame, eye, middle, 30, (float)WIDTH / HEIGHT, 100);
        else
            gpu_test_perspective(&frame, eye, middle, (float)WIDTH / HEIGHT);
        draw(&t, &frame, &box, 1);
        gpu_test_save(&t, "faces");
        int side = brightness(seen_at(&t, &frame, (gpu_test_vec){x * 10, 0, 0}));
        int level = brightness(seen_at(&t, &frame, (gpu_test_vec){0, y * 10, 0}));
        uint32_t front = seen_at(&t, &frame, (gpu_test_vec){0, 0, z * 10});
        CHECK_EQ(front, color);
        CHECK(side < brightness(front));
        if ((y > 0) != frame.y_is_down)
            CHECK(level > brightness(front));
        else
            CHECK(level < side);
    }
    gpu_test_close(&t);
}

TEST(an_eye_within_a_boxs_extent_sees_the_one_face_before_it)
{
    gpu_test t = open_small();
    const uint32_t color = 0xff8090a0;
    const gpu_box box = {{-10, -10, -10}, {10, 10, 10}, color, 1};
    for (int is_orthographic = 0; is_orthographic < 2; is_orthographic++) {
        gpu_frame frame = {.background = BACKGROUND};
        gpu_test_vec eye = {3, -4, 50}, at = {3, -4, 0};
        if (is_orthographic)
            gpu_test_orthographic(&frame, eye, at, 30, (float)WIDTH / HEIGHT, 100);
        else
            gpu_test_perspective(&frame, eye, at, (float)WIDTH / HEIGHT);
        const gpu_box glass = {{-10, -10, -10}, {10, 10, 10}, 0x80ffffff, 0};
        frame.glass = &glass; /* a second layer of a face turned away would show as a lighter mix */
        frame.glass_count = 1;
        draw(&t, &frame, NULL, 0);
        uint32_t first = seen_at(&t, &frame, (gpu_test_vec){0, 0, 10});
        for (float x = -9; x <= 9; x += 3)
            for (float y = -9; y <= 9; y += 3)
                CHECK_EQ(seen_at(&t, &frame, (gpu_test_vec){x, y, 10}), first);
        CHECK((first & 0xff) >= 0x88 && (first & 0xff) <= 0x8a); /* 0x12 and 0xff, half and half */
        frame.glass_count = 0;
        draw(&t, &frame, &box, 1);
        CHECK_EQ(seen_at(&t, &frame, (gpu_test_vec){0, 0, 10}), color);
    }
    gpu_test_close(&t);
}

TEST(glass_mixes_with_what_is_behind_it_and_hides_nothing)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box box = box_at(-40, -40, 0, 80, 80, 0xff0000c8, 7);
    const gpu_box glass[] = {
        box_at(-20, -20, 10, 30, 30, 0x8000c800, 8),  /* before the box */
        box_at(-20, -20, 5, 30, 30, 0x80c80000, 9),   /* behind the first glass, drawn after it: seen all the same */
        box_at(-40, -40, -20, 80, 80, 0x80ffffff, 9), /* behind the box: not seen */
    };
    frame.glass = glass;
    frame.glass_count = 3;
    draw(&t, &frame, &box, 1);
    gpu_test_save(&t, "glass");
    CHECK_PIXEL(&t, WIDTH / 2 - 30, HEIGHT / 2, 0xff0000c8);
    uint32_t mixed = gpu_test_pixel(&t, WIDTH / 2 - 5, HEIGHT / 2);
    CHECK(abs((int)(mixed & 0xff) - 50) <= 2);        /* red: half, and half again */
    CHECK(abs((int)(mixed >> 8 & 0xff) - 50) <= 2);   /* green: half of half */
    CHECK(abs((int)(mixed >> 16 & 0xff) - 100) <= 2); /* blue came last */
    CHECK_EQ(mixed >> 24, 0xff);
    CHECK_EQ(gpu_read_id(t.g, WIDTH / 2 - 5, HEIGHT / 2), 7);
    gpu_test_close(&t);
}

TEST(a_quad_covers_exactly_its_pixels_on_top_of_boxes_and_mixes_by_alpha)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box box = box_at(-80, -60, 50, 160, 120, 0xff0000c8, 1);
    const gpu_quad quads[] = {{{10, 20}, {30, 40}, {0, 0}, {0, 0}, 0xff30c020, GPU_QUAD_PLAIN},
                              {{50, 20}, {51, 21}, {0, 0}, {0, 0}, 0xffffffff, GPU_QUAD_PLAIN},
                              {{60, 20}, {80, 40}, {0, 0}, {0, 0}, 0x80000000, GPU_QUAD_PLAIN},
                              {{0, 119}, {160, 120}, {0, 0}, {0, 0}, 0xff00ffff, GPU_QUAD_PLAIN}};
    frame.quads = quads;
    frame.quad_count = 4;
    draw(&t, &frame, &box, 1);
    for (uint32_t y = 18; y < 42; y++)
        for (uint32_t x = 8; x < 32; x++)
            CHECK_PIXEL(&t, x, y, x >= 10 && x < 30 && y >= 20 && y < 40 ? 0xff30c020 : 0xff0000c8);
    CHECK_PIXEL(&t, 50, 20, 0xffffffff);
    CHECK_PIXEL(&t, 51, 20, 0xff0000c8);
    CHECK_PIXEL(&t, 50, 21, 0xff0000c8);
    CHECK(abs((int)(gpu_test_pixel(&t, 70, 30) & 0xff) - 100) <= 1);
    CHECK_PIXEL(&t, 0, 119, 0xff00ffff);
    CHECK_PIXEL(&t, 159, 119, 0xff00ffff);
    CHECK(gpu_test_pixel(&t, 80, 118) != 0xff00ffff);
    CHECK_EQ(gpu_read_id(t.g, 20, 30), 1); /* quads lie on top but are not picked */
    gpu_test_close(&t);
}

/* The left half is inside; the distance changes as it does around a glyph. */
static void fill_half_plane(uint8_t *pixels, int size)
{
    for (int i = 0; i < size * size; i++) {
        float distance = ((float)size / 2 - (float)(i % size) - 0.5f) * GPU_GLYPH_STEP;
        pixels[i] = (uint8_t)fminf(fmaxf(128 + distance, 0), 255);
    }
}

TEST(a_glyphs_edge_is_where_the_atlas_says_and_one_pixel_soft_at_any_size)
{
    enum { SIZE = 64 };
    static uint8_t pixels[SIZE * SIZE];
    fill_half_plane(pixels, SIZE);
    gpu_test t = open_small();
    CHECK_EQ(gpu_set_atlas(t.g, pixels, SIZE, SIZE), 0);
    static const float widths[] = {24, 64, 140};
    gpu_frame frame = front_view();
    frame.background = 0xff000000;
    for (int i = 0; i < 3; i++) {
        const gpu_quad quad = {{0, 10}, {widths[i], 40}, {0, 0}, {1, 1}, 0xffffffff, GPU_QUAD_GLYPH};
        frame.quads = &quad;
        frame.quad_count = 1;
        draw(&t, &frame, NULL, 0);
        gpu_test_save(&t, "glyph");
        uint32_t edge = (uint32_t)widths[i] / 2;
        for (uint32_t x = 0; x < (uint32_t)widths[i]; x++) {
            if (x + 2 <= edge)
                CHECK_PIXEL(&t, x, 20, 0xffffffff);
            else if (x >= edge + 2)
                CHECK_PIXEL(&t, x, 20, 0xff000000);
        }
        CHECK((gpu_test_pixel(&t, edge - 1, 20) & 0xff) >= (gpu_test_pixel(&t, edge, 20) & 0xff));
    }
    gpu_test_close(&t);
}

/* A line 2.5 texels wide, which is not quite a pixel, in the quad's middle. */
TEST(a_thin_stroke_is_seen_wherever_it_lies_between_pixels)
{
    enum { SIZE = 64 };
    static uint8_t pixels[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        pixels[i] = (uint8_t)fminf(fmaxf(128 + (1.25f - fabsf((float)(i % SIZE) + 0.5f - SIZE / 2)) * GPU_GLYPH_STEP, 0), 255);
    gpu_test t = open_small();
    CHECK_EQ(gpu_set_atlas(t.g, pixels, SIZE, SIZE), 0);
    gpu_frame frame = front_view();
    frame.background = 0xff000000;
    for (int i = 0; i < 16; i++) {
        float x = 40 + (float)i / 8;
        const gpu_quad quad = {{x, 10}, {x + 24, 34}, {0, 0}, {1, 1}, 0xffffffff, GPU_QUAD_GLYPH};
        frame.quads = &quad;
        frame.quad_count = 1;
        draw(&t, &frame, NULL, 0);
        uint32_t ink = 0;
        for (uint32_t at = 40; at < 66; at++)
            ink += gpu_test_pixel(&t, at, 20) & 0xff;
        if (ink < 160 || ink > 400)
            TEST_FAILED("at %.3f px the stroke has %.2f of a pixel", (double)x, ink / 255.0);
    }
    gpu_test_close(&t);
}

TEST(the_atlas_can_be_replaced_while_frames_are_in_flight)
{
    enum { SIZE = 64 };
    static uint8_t inside[SIZE * SIZE], outside[SIZE * SIZE];
    memset(inside, 255, sizeof inside);
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_quad quad = {{0, 0}, {WIDTH, HEIGHT}, {0, 0}, {1, 1}, 0xffffffff, GPU_QUAD_GLYPH};
    frame.quads = &quad;
    frame.quad_count = 1;
    for (int i = 0; i < 12; i++) {
        uint32_t size = i % 3 ? SIZE : SIZE / 2; /* the same size again, and another */
        CHECK_EQ(gpu_set_atlas(t.g, i % 2 ? inside : outside, size, size), 0);
        GPU_TEST_DRAW(&t, &frame);
        if (i % 4 == 3 || i % 4 == 0) {
            gpu_test_read(&t);
            CHECK_PIXEL(&t, 80, 60, i % 2 ? 0xffffffff : BACKGROUND);
        }
    }
    CHECK_EQ(gpu_set_atlas(t.g, inside, 0, 4), -EINVAL);
    CHECK(gpu_error(t.g)[0]);
    GPU_TEST_DRAW(&t, &frame);
    gpu_test_close(&t);
}

TEST(every_box_has_its_own_id_at_its_own_pixels)
{
    enum { ACROSS = 16, DOWN = 12, CELL = 10 };
    gpu_box boxes[ACROSS * DOWN];
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    for (uint32_t i = 0; i < ACROSS * DOWN; i++)
        boxes[i] = box_at(-WIDTH / 2 + (float)(i % ACROSS * CELL), -HEIGHT / 2 + (float)(i / ACROSS * CELL), (float)(i % 7),
                          CELL - 2, CELL - 2, 0xff808080 + i, i ? UINT32_MAX - i : 0);
    draw(&t, &frame, boxes, ACROSS * DOWN);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        for (uint32_t x = 0; x < WIDTH; x++) {
            uint32_t up = HEIGHT - 1 - y, i = up / CELL * ACROSS + x / CELL;
            bool is_box = x % CELL < CELL - 2 && up % CELL < CELL - 2;
            CHECK_EQ(gpu_read_id(t.g, x, y), is_box ? boxes[i].id : 0);
        }
    }
    CHECK_EQ(gpu_read_id(t.g, WIDTH, 0), 0);
    CHECK_EQ(gpu_read_id(t.g, 0, HEIGHT), 0);
    CHECK_EQ(gpu_capture(t.g, false), 0); /* frames without ids answer none, not those of an older frame */
    draw(&t, &frame, boxes, ACROSS * DOWN);
    CHECK_EQ(gpu_read_id(t.g, 80, 60), 0);
    gpu_test_close(&t);
}

TEST(a_pick_answers_a_few_frames_later_without_reading_the_picture)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box boxes[] = {box_at(-80, -60, 0, 80, 120, 0xff0000ff, 5), box_at(0, -60, 0, 80, 60, 0xff00ff00, 6)};
    frame.boxes = boxes;
    frame.box_count = 2;
    gpu_capture(t.g, false);
    static const struct {
        uint32_t x, y, id;
    } asked[] = {{40, 60, 5}, {120, 100, 6}, {120, 20, 0}, {0, 119, 5}, {500, 3, 0}};
    CHECK_EQ(gpu_pick(t.g, 40, 60), 0); /* nothing drawn yet */
    for (int i = 0; i < 5; i++) {
        uint32_t id = 0;
        for (int frames = 0; frames < 4; frames++) {
            id = gpu_pick(t.g, asked[i].x, asked[i].y);
            GPU_TEST_DRAW(&t, &frame);
        }
        CHECK_EQ(id, asked[i].id);
    }
    for (int i = 0; i < 8; i++) { /* nobody asks any more; an old answer must not come up later */
        gpu_pick(t.g, 40, 60);
        GPU_TEST_DRAW(&t, &frame);
    }
    for (int i = 0; i < 4; i++)
        GPU_TEST_DRAW(&t, &frame);
    CHECK_EQ(gpu_pick(t.g, 120, 20), 0);
    gpu_test_close(&t);
}

TEST(fog_hides_what_is_far_and_leaves_what_is_near)
{
    gpu_test t = open_small();
    const gpu_box boxes[] = {{{-30, -30, -10}, {-1, 30, -9}, 0xff20a0e0, 1},  /* 39 ahead of the eye */
                             {{1, -30, -100}, {30, 30, -61}, 0xff20a0e0, 2}}; /* 91 ahead */
    for (int is_orthographic = 0; is_orthographic < 2; is_orthographic++) {
        gpu_frame frame = {.background = BACKGROUND, .fog_begin = 40, .fog_end = 80};
        gpu_test_vec eye = {0, 0, 30}, at = {0, 0, 0};
        if (is_orthographic)
            gpu_test_orthographic(&frame, eye, at, 30, (float)WIDTH / HEIGHT, 200);
        else
            gpu_test_perspective(&frame, eye, at, (float)WIDTH / HEIGHT);
        draw(&t, &frame, boxes, 2);
        CHECK_EQ(seen_at(&t, &frame, (gpu_test_vec){-10, 0, -9}), 0xff20a0e0);
        CHECK_EQ(seen_at(&t, &frame, (gpu_test_vec){20, 0, -61}), BACKGROUND);
        frame.fog_end = 140;
        draw(&t, &frame, boxes, 2);
        uint32_t half = seen_at(&t, &frame, (gpu_test_vec){20, 0, -61});
        CHECK(half != BACKGROUND && half != 0xff20a0e0);
        frame.fog_begin = frame.fog_end = 0;
        draw(&t, &frame, boxes, 2);
        CHECK_EQ(seen_at(&t, &frame, (gpu_test_vec){20, 0, -61}), 0xff20a0e0);
    }
    gpu_test_close(&t);
}

TEST(two_hundred_thousand_boxes_are_drawn_and_small_frames_before_and_after_too)
{
    enum { COUNT = 200000, ACROSS = 500 };
    gpu_box *boxes = calloc(COUNT, sizeof *boxes);
    CHECK(boxes);
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    /* All small and behind one another, but for the last, which lies in front. */
    for (uint32_t i = 0; i < COUNT; i++)
        boxes[i] =
            box_at(-80 + (float)(i % ACROSS) * 0.3f, -60 + (float)(i / ACROSS) * 0.25f, 0, 0.3f, 0.25f, 0xff404040, i + 1);
    boxes[COUNT - 1] = box_at(-5, -5, 20, 10, 10, 0xff00c0ff, COUNT);
    static const size_t counts[] = {3, COUNT, 10, COUNT, COUNT, 0, 1};
    for (int i = 0; i < 7; i++) {
        frame.boxes = boxes + COUNT - counts[i];
        frame.box_count = counts[i];
        GPU_TEST_DRAW(&t, &frame);
        if (i == 2 || i >= 4) {
            gpu_test_read(&t);
            CHECK_PIXEL(&t, 80, 60, counts[i] ? 0xff00c0ff : BACKGROUND);
            CHECK_EQ(gpu_read_id(t.g, 80, 60), counts[i] ? COUNT : 0);
        }
        if (i == 4)
            CHECK(gpu_test_pixel(&t, 10, 100) != BACKGROUND);
    }
    gpu_test_close(&t);
    free(boxes);
}

TEST(more_than_a_device_can_take_is_refused_with_a_line_and_the_next_frame_is_drawn)
{
    gpu_test t = open_small();
    gpu_frame frame = front_view();
    const gpu_box box = box_at(-20, -10, 0, 40, 30, 0xff2030e0, 1);
    frame.boxes = &box; /* the count is looked at before any box */
    frame.box_count = SIZE_MAX / 64;
    CHECK_EQ(gpu_draw(t.g, &frame), -E2BIG);
    CHECK(strstr(gpu_error(t.g), "boxes"));
    draw(&t, &frame, &box, 1);
    CHECK_PIXEL(&t, 80, 50, 0xff2030e0);
    gpu_test_close(&t);
}

TEST(a_gpu_that_cannot_be_made_says_why_and_can_be_deleted)
{
    gpu_test t = open_small(); /* skips where there is none */
    gpu_test_close(&t);
    gpu *g = NULL;
    CHECK_EQ(gpu_new(&g, &(gpu_desc){.width = 0, .height = 10}), -EINVAL);
    CHECK(gpu_error(g)[0]);
    gpu_delete(g);

    CHECK_EQ(gpu_new(&g, &(gpu_desc){.width = 1u << 20, .height = 10}), -EINVAL); /* fails late: much is made by then */
    CHECK(strstr(gpu_error(g), "too large"));
    CHECK_EQ(gpu_draw(g, &(gpu_frame){0}), -EIO);
    uint8_t pixel[4];
    CHECK(gpu_read_pixels(g, pixel, 4) < 0);
    gpu_delete(g);

    mem_fail_every(1);
    CHECK_EQ(gpu_new(&g, &(gpu_desc){.width = 10, .height = 10}), -ENOMEM);
    mem_fail_every(0);
    CHECK(!g);
    CHECK(gpu_error(g)[0]);
    gpu_delete(g);
}

TEST(without_a_driver_the_answer_is_enotsup_and_what_to_install)
{
    unsetenv("VK_DRIVER_FILES");
    setenv("VK_ICD_FILENAMES", "/nonexistent/driver.json", 1);
    gpu *g = NULL;
    CHECK_EQ(gpu_new(&g, &(gpu_desc){.width = 10, .height = 10}), -ENOTSUP);
    CHECK(strstr(gpu_error(g), "install"));
    CHECK_EQ(gpu_validation_count(g), 0);
    gpu_delete(g);
}

TEST(two_gpus_of_one_process_draw_side_by_side_and_one_after_another)
{
    gpu_test a = open_small(), b = open_small();
    gpu_frame red = front_view(), green = front_view();
    const gpu_box red_box = box_at(-20, -10, 0, 40, 30, 0xff0000ff, 1),
                  green_box = box_at(-20, -10, 0, 40, 30, 0xff00ff00, 1);
    draw(&a, &red, &red_box, 1);
    draw(&b, &green, &green_box, 1);
    gpu_test_read(&a);
    CHECK_PIXEL(&a, 80, 50, 0xff0000ff);
    gpu_test_close(&a);
    draw(&b, &green, &green_box, 1);
    CHECK_PIXEL(&b, 80, 50, 0xff00ff00);
    gpu_test_close(&b);
    gpu_test c = open_small();
    draw(&c, &red, &red_box, 1);
    CHECK_PIXEL(&c, 80, 50, 0xff0000ff);
    gpu_test_close(&c);
}

TEST(pixels_cannot_be_read_before_a_frame_or_into_the_wrong_size)
{
    gpu_test t = open_small();
    static uint8_t rgba[WIDTH * HEIGHT * 4];
    CHECK_EQ(gpu_read_pixels(t.g, rgba, sizeof rgba), -ENODATA);
    CHECK_EQ(gpu_read_id(t.g, 0, 0), 0);
    gpu_frame frame = front_view();
    GPU_TEST_DRAW(&t, &frame);
    CHECK_EQ(gpu_read_pixels(t.g, rgba, sizeof rgba - 4), -EINVAL);
    CHECK_EQ(gpu_read_pixels(t.g, rgba, sizeof rgba), 0);
    gpu_test_close(&t);
}
