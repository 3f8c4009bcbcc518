/* What is seen: sessions drawn off-screen by a software driver. TEST_PICTURES=FOLDER keeps the pictures as PNG. */
#include "view_scenes.h"

#include "gpu/gpu.h"
#include <errno.h>
#include "view/palette.h"
#include "view/tint.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PICTURE_SKIP TEST_SKIP("the driver's own threads confuse the thread sanitizer")
#else
#define PICTURE_SKIP (void)0
#endif

/* Drivers keep memory for good and are unloaded before leaks are looked for. view_scene.c looks for view/'s own. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) { return "detect_leaks=0"; }

enum { WIDTH = 1280, HEIGHT = 720 };

typedef struct picture {
    gpu *gpu;
    view *view;
    gpu_frame frame;
    uint8_t *rgba; /* owned; WIDTH * HEIGHT * 4 */
} picture;

static void picture_open(picture *p, const view_desc *desc)
{
    PICTURE_SKIP;
    *p = (picture){.rgba = malloc((size_t)WIDTH * HEIGHT * 4)};
    gpu_desc device = {.width = WIDTH, .height = HEIGHT, .validation = true};
    if (gpu_new(&p->gpu, &device) == -ENOTSUP)
        TEST_SKIP(gpu_error(p->gpu));
    CHECK_STR(gpu_error(p->gpu), "");
    CHECK_EQ(view_new(&p->view, desc), 0);
}

static void picture_draw(picture *p, session *s, const view_status *status, double frame_time_s)
{
    const uint8_t *atlas;
    uint32_t width, height;
    view_model model = session_model(s);
    view_build(p->view, &model, status, WIDTH, HEIGHT, frame_time_s, &p->frame);
    if (view_atlas(p->view, &atlas, &width, &height))
        CHECK_EQ(gpu_set_atlas(p->gpu, atlas, width, height), 0);
    CHECK_EQ(gpu_draw(p->gpu, &p->frame), GPU_DRAWN);
    CHECK_EQ(gpu_read_pixels(p->gpu, p->rgba, (size_t)WIDTH * HEIGHT * 4), 0);
}

static void picture_keep(const picture *p, const char *name)
{
    const char *folder = getenv("TEST_PICTURES");
    char path[512];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    CHECK(stbi_write_png(path, WIDTH, HEIGHT, 4, p->rgba, WIDTH * 4));
}

static void picture_close(picture *p)
{
    CHECK_EQ(gpu_validation_count(p->gpu), 0);
    view_delete(p->view);
    gpu_delete(p->gpu);
    free(p->rgba);
}

static const view_status still_status = {.ended = false, .event_count = 123456, .memory_budget = 1u << 30, .memory_bytes = 44u << 20,
                                         .events_per_s = 1.234e6, .frames_per_s = 30};

TEST(a_web_server_is_drawn_from_every_camera)
{
    static const char *const names[] = {"web-scene", "web-flame", "web-threads"};
    for (int kind = 0; kind < 3; kind++) {
        picture p;
        session s;
        session_new(&s);
        scenes_web(&s, 3, 5);
        view_desc desc = {.is_still = true, .camera = (view_camera)kind};
        picture_open(&p, &desc);
        picture_draw(&p, &s, &still_status, 0);
        picture_keep(&p, names[kind]);
        CHECK(p.frame.box_count > 500);
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(a_short_script_that_has_ended_is_shown_whole)
{
    static const char *const names[] = {"script-scene", "script-flame", "script-threads"};
    for (int kind = 0; kind < 3; kind++) {
        picture p;
        session s;
        session_new(&s);
        scenes_script(&s);
        view_desc desc = {.is_still = true, .camera = (view_camera)kind};
        view_status status = still_status;
        status.ended = true;
        picture_open(&p, &desc);
        picture_draw(&p, &s, &status, 0);
        picture_keep(&p, names[kind]);
        uint64_t begin_ns, end_ns;
        view_range(p.view, &begin_ns, &end_ns);
        CHECK_EQ(begin_ns, SESSION_BEGIN_NS);
        CHECK_EQ(end_ns, s.now_ns);
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(a_live_window_says_what_it_can_do)
{
    picture p;
    session s;
    session_new(&s);
    scenes_web(&s, 3, 5);
    view_desc desc = {.is_software = true};
    picture_open(&p, &desc);
    for (int i = 0; i < 40; i++)
        picture_draw(&p, &s, &still_status, 0.05);
    picture_keep(&p, "live");
    view_input_event help = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_HELP, .is_down = true};
    view_input_event space = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_SPACE, .is_down = true};
    CHECK(view_input(p.view, &help));
    CHECK(view_input(p.view, &space));
    picture_draw(&p, &s, &still_status, 0.05);
    picture_keep(&p, "live-help");
    CHECK(view_is_paused(p.view));
    picture_close(&p);
    session_delete(&s);
}

static void draw_still(const char *name, void (*make)(session *), view_camera camera_kind)
{
    picture p;
    session s;
    session_new(&s);
    make(&s);
    view_desc desc = {.is_still = true, .camera = camera_kind};
    picture_open(&p, &desc);
    picture_draw(&p, &s, &still_status, 0);
    picture_keep(&p, name);
    CHECK(p.frame.box_count > 10);
    picture_close(&p);
    session_delete(&s);
}

static void make_many_threads(session *s) { scenes_threads(s, 60); }
static void make_deep(session *s) { scenes_deep(s, 4000); }
static void make_empty(session *s) { session_process(s, 1, "ruby empty.rb"); }

TEST(processes_threads_depth_and_fibers_are_drawn)
{
    draw_still("processes-scene", scenes_processes, VIEW_CAMERA_SCENE);
    draw_still("processes-flame", scenes_processes, VIEW_CAMERA_FLAME);
    draw_still("threads-scene", make_many_threads, VIEW_CAMERA_SCENE);
    draw_still("threads-threads", make_many_threads, VIEW_CAMERA_THREADS);
    draw_still("threads-flame", make_many_threads, VIEW_CAMERA_FLAME);
    draw_still("deep-scene", make_deep, VIEW_CAMERA_SCENE);
    draw_still("deep-flame", make_deep, VIEW_CAMERA_FLAME);
    draw_still("fibers-scene", scenes_fibers, VIEW_CAMERA_SCENE);
    draw_still("fibers-flame", scenes_fibers, VIEW_CAMERA_FLAME);
}

TEST(a_session_without_calls_says_that_it_waits)
{
    picture p;
    session s;
    session_new(&s);
    make_empty(&s);
    picture_open(&p, &(view_desc){.is_software = true});
    picture_draw(&p, &s, &still_status, 0.02);
    picture_keep(&p, "empty");
    CHECK_EQ(p.frame.box_count, 0);
    CHECK(p.frame.quad_count > 20);
    picture_close(&p);
    session_delete(&s);
}

/* What a pixel test knows of a span: the box that shows it, and where the middle of its front is on the screen. */
static const gpu_box *box_of(const picture *p, uint32_t track, uint32_t depth, double begin_ms)
{
    uint64_t begin_ns = SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6);
    for (size_t i = 0; i < p->frame.box_count; i++) {
        view_box_ref ref;
        if (view_box_of(p->view, p->frame.boxes[i].id, &ref) && ref.track == track && ref.depth == depth && ref.begin_ns == begin_ns)
            return &p->frame.boxes[i];
    }
    TEST_FAILED("no box for track %u, depth %u, %g ms", track, depth, begin_ms);
}

static void to_px(const picture *p, float x, float y, float z, int px[2])
{
    const float *m = p->frame.view_projection;
    float w = m[3] * x + m[7] * y + m[11] * z + m[15];
    px[0] = (int)(((m[0] * x + m[4] * y + m[8] * z + m[12]) / w * 0.5f + 0.5f) * WIDTH);
    px[1] = (int)(((m[1] * x + m[5] * y + m[9] * z + m[13]) / w * 0.5f + 0.5f) * HEIGHT);
    CHECK(px[0] >= 0 && px[1] >= 0 && px[0] < WIDTH && px[1] < HEIGHT);
}

static uint32_t pixel(const picture *p, int x, int y)
{
    const uint8_t *at = p->rgba + ((size_t)y * WIDTH + (size_t)x) * 4;
    return 0xff000000u | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static int difference(uint32_t a, uint32_t b)
{
    int worst = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        int d = abs((int)(a >> shift & 255u) - (int)(b >> shift & 255u));
        worst = d > worst ? d : worst;
    }
    return worst;
}

/* One thread runs Foo#run [10, 190) over a [30, 90), with GC [100, 130); it sleeps from 150. Another waits for the GVL. */
static void make_plain(session *s)
{
    session_process(s, 7, "ruby plain.rb");
    uint32_t run = session_method(s, "R", EV_METHOD_RUBY), a = session_method(s, "A", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 10);
    session_call(s, run);
    session_thread(s, 2, "waiter", false);
    session_event(s, EV_THREAD_READY, 2, 0);
    session_leaf(s, a, 30, 90);
    session_gc(s, 100, 130);
    session_at(s, 150);
    session_event(s, EV_THREAD_SUSPENDED, 1, 0);
    session_at(s, 190);
    session_event(s, EV_THREAD_RESUMED, 1, 0);
    session_return(s);
    session_at(s, 200);
    session_event(s, EV_CUT, 0, session_position(s, 60));
}

static picture plain_picture(session *s, view_camera kind)
{
    picture p;
    session_new(s);
    make_plain(s);
    view_desc desc = {.is_still = true, .camera = kind, .begin_ns = SESSION_BEGIN_NS, .end_ns = SESSION_BEGIN_NS + 200000000};
    picture_open(&p, &desc);
    picture_draw(&p, s, &still_status, 0);
    picture_keep(&p, kind == VIEW_CAMERA_SCENE ? "plain-scene" : kind == VIEW_CAMERA_FLAME ? "plain-flame" : "plain-threads");
    return p;
}

TEST(a_span_is_seen_where_its_time_and_depth_are_in_its_methods_colour)
{
    for (int kind = 0; kind < 2; kind++) {
        session s;
        picture p = plain_picture(&s, (view_camera)kind);
        uint32_t track = catalog_fiber_at(s.catalog, 0)->track;
        for (uint32_t depth = 0; depth < 2; depth++) {
            const gpu_box *box = box_of(&p, track, depth, depth == 0 ? 10 : 30);
            CHECK_EQ(box->color, palette_method(catalog_method_of(s.catalog, 0, depth + 1)->hash, EV_METHOD_RUBY, depth));
            int px[2];
            /* A quarter along: the name is in the middle. */
            to_px(&p, box->low[0] + 0.25f * (box->high[0] - box->low[0]), 0.5f * (box->low[1] + box->high[1]), box->high[2], px);
            CHECK(difference(pixel(&p, px[0], px[1]), box->color) <= 2);
            CHECK_EQ(gpu_read_id(p.gpu, (uint32_t)px[0], (uint32_t)px[1]), box->id);
        }
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(every_camera_shows_every_way_of_colouring)
{
    static const view_input_event other_tint = {.type = VIEW_INPUT_TEXT, .text = "v"};
    for (int kind = 0; kind < 3; kind++) {
        session s;
        picture p = plain_picture(&s, (view_camera)kind);
        uint32_t track = catalog_fiber_at(s.catalog, 0)->track, seen[TINT_COUNT];
        const catalog_method *m = catalog_method_of(s.catalog, 0, 2); /* A, [30, 90) ms */
        const uint32_t wanted[TINT_COUNT] = {palette_method(m->hash, m->kind, 1), palette_method(tint_hash(TINT_OWNER, m), m->kind, 1),
                                             tint_length(tint_step(60000000))};
        for (int t = 0; t < TINT_COUNT; t++) {
            const gpu_box *box = box_of(&p, track, 1, 30);
            float x = box->low[0] + 0.25f * (box->high[0] - box->low[0]);
            int px[2];
            CHECK_EQ(box->color, wanted[t]);
            if (kind == VIEW_CAMERA_THREADS)
                to_px(&p, x, box->high[1], 0.5f * (box->low[2] + box->high[2]), px);
            else
                to_px(&p, x, 0.5f * (box->low[1] + box->high[1]), box->high[2], px);
            seen[t] = pixel(&p, px[0], px[1]);
            CHECK_EQ(gpu_read_id(p.gpu, (uint32_t)px[0], (uint32_t)px[1]), box->id);
            if (kind != VIEW_CAMERA_THREADS) /* there tops are seen, in the light */
                CHECK(difference(seen[t], box->color) <= 2);
            for (int before = 0; before < t; before++)
                CHECK((difference(seen[t], seen[before]) > 8) == (wanted[t] != wanted[before])); /* a name without a class owns itself */
            CHECK(view_input(p.view, &other_tint));
            picture_draw(&p, &s, &still_status, 0);
        }
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(where_nothing_ran_there_is_background)
{
    session s;
    picture p = plain_picture(&s, VIEW_CAMERA_FLAME);
    const gpu_box *a = box_of(&p, catalog_fiber_at(s.catalog, 0)->track, 1, 30);
    int px[2];
    float x_per_ms = (a->high[0] - a->low[0]) / 60;
    to_px(&p, a->high[0] + 6 * x_per_ms, 0.5f * (a->low[1] + a->high[1]), a->high[2], px); /* 96 ms, above Foo#run */
    CHECK_EQ(pixel(&p, px[0], px[1]), PALETTE_BACKGROUND);
    picture_close(&p);
    session_delete(&s);
}

TEST(a_gc_pause_tints_what_lies_behind_it)
{
    session s;
    picture p = plain_picture(&s, VIEW_CAMERA_FLAME);
    const gpu_box *run = box_of(&p, catalog_fiber_at(s.catalog, 0)->track, 0, 10);
    float x_per_ms = (run->high[0] - run->low[0]) / 180;
    int px[2];
    to_px(&p, run->low[0] + 105 * x_per_ms, run->low[1] + 0.8f * (run->high[1] - run->low[1]), run->high[2], px); /* 115 ms */
    uint32_t seen = pixel(&p, px[0], px[1]);
    CHECK(difference(seen, run->color) > 20);
    CHECK((int)(seen & 255u) - (int)(run->color & 255u) > -20); /* as red as before, or redder */
    CHECK((int)(seen >> 16 & 255u) < (int)(run->color >> 16 & 255u) - 15); /* and less blue */
    to_px(&p, 0.5f * (p.frame.glass[0].low[0] + p.frame.glass[0].high[0]), p.frame.glass[0].high[1] - 0.02f, 0, px);
    CHECK(difference(pixel(&p, px[0], px[1]), PALETTE_BACKGROUND) > 20);
    picture_close(&p);
    session_delete(&s);
}

TEST(a_lanes_strip_has_the_legends_colour_for_what_its_thread_does)
{
    static const struct { uint32_t thread; double begin_ms; double at_share; sim_gvl state; } cases[] = {
        {0, 0, 0.3, SIM_GVL_RUNNING}, {0, 150, 0.5, SIM_GVL_BLOCKED}, {1, 10, 0.45, SIM_GVL_WAITING}};
    for (int kind = 0; kind < 3; kind++) {
        session s;
        picture p = plain_picture(&s, (view_camera)kind);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const gpu_box *strip = box_of(&p, catalog_thread_at(s.catalog, cases[i].thread)->gvl_track, 0, cases[i].begin_ms);
            float x = strip->low[0] + (float)cases[i].at_share * (strip->high[0] - strip->low[0]);
            int px[2];
            if (kind == VIEW_CAMERA_FLAME)
                to_px(&p, x, 0.5f * (strip->low[1] + strip->high[1]), strip->high[2], px);
            else
                to_px(&p, x, strip->high[1], 0.4f * strip->low[2] + 0.6f * strip->high[2], px);
            int off = difference(pixel(&p, px[0], px[1]), palette_gvl(cases[i].state));
            if (off > 6)
                TEST_FAILED("camera %d, state %d: off by %d at %d, %d", kind, cases[i].state, off, px[0], px[1]);
        }
        picture_close(&p);
        session_delete(&s);
    }
}

/* Pixels in a rectangle that differ from the picture without text, in share of all. */
static double ink(const picture *p, int x0, int y0, int x1, int y1)
{
    int count = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            count += difference(pixel(p, x, y), pixel(p, x0, y0)) > 60;
    return (double)count / ((x1 - x0) * (y1 - y0));
}

TEST(text_is_there_title_names_axis_and_legend)
{
    session s;
    picture p = plain_picture(&s, VIEW_CAMERA_FLAME);
    if (view_font_problem(p.view))
        TEST_SKIP(view_font_problem(p.view));
    CHECK(ink(&p, 8, 8, 200, 36) > 0.03);                 /* ruby plain.rb */
    CHECK(ink(&p, 8, HEIGHT - 26, 500, HEIGHT - 6) > 0.02); /* the legend */
    CHECK(ink(&p, 8, HEIGHT - 56, WIDTH - 8, HEIGHT - 38) > 0.003); /* the axis */
    const gpu_box *a = box_of(&p, catalog_fiber_at(s.catalog, 0)->track, 1, 30);
    int px[2];
    to_px(&p, 0.5f * (a->low[0] + a->high[0]), 0.5f * (a->low[1] + a->high[1]), a->high[2], px);
    CHECK(ink(&p, px[0] - 8, px[1] - 6, px[0] + 8, px[1] + 6) > 0.05); /* "A" in the middle of its box */
    picture_close(&p);
    session_delete(&s);
}

TEST(a_name_is_not_drawn_where_another_lane_hides_its_box)
{
    session s;
    picture p;
    session_new(&s);
    scenes_processes(&s);
    picture_open(&p, &(view_desc){.is_still = true});
    picture_draw(&p, &s, &still_status, 0);
    picture_keep(&p, "names-scene");
    /* Every glyph's middle above the bottom panels lies on a box or on a panel of its own, never on another lane's box:
     * checked for names on boxes, which have the box's contrast colour and no panel below. */
    size_t names = 0;
    for (size_t i = 0; i < p.frame.quad_count && p.frame.quads[i].flags == GPU_QUAD_GLYPH; i++) {
        const gpu_quad *q = &p.frame.quads[i];
        int x = (int)(0.5f * (q->low_px[0] + q->high_px[0])), y = (int)(0.5f * (q->low_px[1] + q->high_px[1]));
        uint32_t id = gpu_read_id(p.gpu, (uint32_t)x, (uint32_t)y);
        CHECK(id != 0 && id <= p.frame.box_count);
        CHECK_EQ(q->color, palette_text_on(p.frame.boxes[id - 1].color));
        names++;
    }
    CHECK(names > 5);
    picture_close(&p);
    session_delete(&s);
}

TEST(a_close_look_and_a_dense_screen_are_readable)
{
    static const struct { const char *name; view_camera camera_kind; float scale; double begin_ms, end_ms; } cases[] = {
        {"close-scene", VIEW_CAMERA_SCENE, 1, 800, 1000}, {"close-flame", VIEW_CAMERA_FLAME, 1, 830, 860},
        {"dense-scene", VIEW_CAMERA_SCENE, 2, 0, 2000}, {"dense-flame", VIEW_CAMERA_FLAME, 2, 800, 900}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        session s;
        picture p;
        session_new(&s);
        scenes_web(&s, 2, 2);
        picture_open(&p, &(view_desc){.is_still = true, .camera = cases[i].camera_kind, .scale = cases[i].scale,
                                      .begin_ns = SESSION_BEGIN_NS + (uint64_t)(cases[i].begin_ms * 1e6),
                                      .end_ns = SESSION_BEGIN_NS + (uint64_t)(cases[i].end_ms * 1e6)});
        picture_draw(&p, &s, &still_status, 0);
        picture_keep(&p, cases[i].name);
        CHECK(p.frame.quad_count > 60);
        picture_close(&p);
        session_delete(&s);
    }
}

/* ids are of spans: an open call's bright end, and what it is idle, are the call. */
static bool is_same(const view_box_ref *a, const view_box_ref *b)
{
    return a->track == b->track && a->depth == b->depth && a->begin_ns == b->begin_ns;
}

TEST(the_pointer_finds_the_box_that_the_id_attachment_has_there)
{
    for (int kind = 0; kind < 3; kind++) {
        picture p;
        session s;
        view_status status = still_status;
        uint32_t asked = 0, equal = 0, found = 0;
        session_new(&s);
        scenes_web(&s, 3, 5);
        status.ended = true;
        picture_open(&p, &(view_desc){.camera = (view_camera)kind});
        for (int i = 0; i < 60; i++) {
            view_model model = session_model(&s);
            view_build(p.view, &model, &status, WIDTH, HEIGHT, 0.1, &p.frame);
        }
        picture_draw(&p, &s, &status, 0.1);
        view_model model = session_model(&s);
        for (uint32_t y = 61; y < HEIGHT - 70; y += 23) {
            for (uint32_t x = 11; x < WIDTH; x += 41) {
                view_input_event move = {.type = VIEW_INPUT_MOVE, .x_px = (float)x + 0.3f, .y_px = (float)y + 0.7f};
                view_box_ref drawn = {0}, hovered = {0};
                bool is_drawn = view_box_of(p.view, gpu_read_id(p.gpu, x, y), &drawn);
                gpu_frame frame;
                view_input(p.view, &move);
                view_build(p.view, &model, &status, WIDTH, HEIGHT, 0, &frame);
                bool is_hovered = view_hover(p.view, &hovered) && hovered.kind <= VIEW_BOX_GVL; /* pauses have no id */
                asked++;
                found += is_drawn;
                equal += is_drawn == is_hovered && (!is_drawn || is_same(&drawn, &hovered));
            }
        }
        CHECK(found > 50);
        CHECK(equal >= asked - asked / 200); /* edges: a ray and a rasteriser round differently */
        picture_close(&p);
        session_delete(&s);
    }
}
