/* The time strip: what it shows of a session's activity, and what the pointer does with its frame. */
#include "view_session.h"

#include "view/camera.h"
#include "view/strip.h"

#include <math.h>

enum { WIDTH = 1280, HEIGHT = 720 };
#define SECOND UINT64_C(1000000000)

typedef struct stage {
    session session;
    activity *activity;
    view_model model;
    strip strip;
    font *font;
    quad_list quads;
} stage;

/* A session of so many seconds, of which nothing is known yet. */
static void stage_open(stage *t, uint64_t seconds)
{
    *t = (stage){0};
    session_new(&t->session);
    session_process(&t->session, 4711, "ruby app.rb");
    session_run(&t->session);
    CHECK_EQ(activity_new(&t->activity), 0);
    CHECK_EQ(font_new(&t->font), 0);
    t->model = (view_model){.catalog = t->session.catalog, .history = t->session.history, .sim = t->session.sim, .activity = t->activity,
                            .now_ns = SESSION_BEGIN_NS + seconds * SECOND};
}

static void stage_draw(stage *t, double begin_ns, double end_ns)
{
    t->quads.count = 0;
    strip_draw(&t->strip, &(strip_picture){.model = &t->model, .begin_ns = SESSION_BEGIN_NS, .frame_begin_ns = begin_ns, .frame_end_ns = end_ns,
                                           .width_px = WIDTH, .height_px = HEIGHT, .scale = 1}, t->font, &t->quads);
}

static void stage_close(stage *t)
{
    quad_list_free(&t->quads);
    font_delete(t->font);
    activity_delete(t->activity);
    session_delete(&t->session);
}

static float x_of(const stage *t, double relative_ns)
{
    return t->strip.low_px[0] + (t->strip.high_px[0] - t->strip.low_px[0]) * (float)(relative_ns / (double)(t->model.now_ns - SESSION_BEGIN_NS));
}

typedef struct answer { bool is_taken, moves, sticks; strip_input_range range; } answer;

static answer pointer(stage *t, view_input_type type, bool is_down, float x_px, float y_px)
{
    answer a = {0};
    view_input_event e = {.type = type, .button = VIEW_BUTTON_LEFT, .is_down = is_down, .x_px = x_px, .y_px = y_px};
    a.is_taken = strip_input(&t->strip, &e, &a.moves, &a.sticks, &a.range);
    return a;
}

static answer press(stage *t, float x_px) { return pointer(t, VIEW_INPUT_BUTTON, true, x_px, HEIGHT - 12); }
static answer move(stage *t, float x_px) { return pointer(t, VIEW_INPUT_MOVE, false, x_px, 300); } /* the pointer may leave it */
static answer release(stage *t) { return pointer(t, VIEW_INPUT_BUTTON, false, 0, 300); }

static bool near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance; }

TEST(the_frame_is_dragged_by_its_middle_and_its_edges_and_a_click_takes_it_elsewhere)
{
    stage t;
    stage_open(&t, 100);
    stage_draw(&t, 20e9, 40e9);
    double px_ns = 100e9 / (double)(t.strip.high_px[0] - t.strip.low_px[0]);
    CHECK(press(&t, x_of(&t, 33e9)).is_taken);
    answer a = move(&t, x_of(&t, 53e9));
    CHECK(a.is_taken && a.moves && a.sticks);
    CHECK(near(a.range.begin_ns, 40e9, px_ns) && near(a.range.end_ns, 60e9, px_ns)); /* where it was taken hold of */
    CHECK(release(&t).is_taken && !move(&t, 100).is_taken);

    stage_draw(&t, 20e9, 40e9);
    press(&t, x_of(&t, 20e9) - 2);
    a = move(&t, x_of(&t, 10e9) - 2);
    CHECK(a.moves && near(a.range.begin_ns, 10e9, px_ns) && near(a.range.end_ns, 40e9, 1));
    a = move(&t, x_of(&t, 90e9)); /* over the other edge: as narrow as can be */
    CHECK(a.moves && a.range.begin_ns < a.range.end_ns && near(a.range.end_ns, 40e9, 1));
    release(&t);

    stage_draw(&t, 20e9, 40e9);
    press(&t, x_of(&t, 40e9) + 2);
    a = move(&t, WIDTH + 500); /* beyond the end: to the end */
    CHECK(a.moves && near(a.range.begin_ns, 20e9, 1) && near(a.range.end_ns, 100e9, 3 * px_ns));
    release(&t);

    stage_draw(&t, 20e9, 40e9);
    a = press(&t, x_of(&t, 70e9));
    CHECK(a.is_taken && a.moves && !a.sticks); /* it may ease there */
    CHECK(near(a.range.begin_ns, 60e9, px_ns) && near(a.range.end_ns, 80e9, px_ns));
    a = move(&t, x_of(&t, 71e9)); /* and is held from there on */
    CHECK(near(0.5 * (a.range.begin_ns + a.range.end_ns), 71e9, px_ns));
    stage_close(&t);
}

TEST(a_frame_narrower_than_a_pixel_is_seen_moved_and_widened)
{
    stage t;
    stage_open(&t, 100000);
    stage_draw(&t, 50000e9, 50000e9 + 1e6);
    float x = x_of(&t, 50000e9);
    press(&t, x);
    answer a = move(&t, x_of(&t, 60000e9));
    CHECK(a.moves && near(a.range.end_ns - a.range.begin_ns, 1e6, 100) && near(a.range.begin_ns, 60000e9, 200e9));
    release(&t);
    stage_draw(&t, 50000e9, 50000e9 + 1e6);
    press(&t, x + 5);
    a = move(&t, x_of(&t, 60000e9) + 5);
    CHECK(a.moves && near(a.range.begin_ns, 50000e9, 1) && near(a.range.end_ns, 60000e9, 200e9));
    stage_close(&t);
}

TEST(input_elsewhere_and_without_a_strip_is_not_the_strips)
{
    stage t;
    stage_open(&t, 10);
    CHECK(!press(&t, 400).is_taken); /* never drawn */
    stage_draw(&t, 2e9, 4e9);
    CHECK(!pointer(&t, VIEW_INPUT_BUTTON, true, 400, 300).is_taken);
    CHECK(!pointer(&t, VIEW_INPUT_MOVE, false, 400, HEIGHT - 10).is_taken);
    CHECK(!release(&t).is_taken);
    CHECK(press(&t, 400).is_taken);
    pointer(&t, VIEW_INPUT_LEAVE, false, 0, 0);
    CHECK(!move(&t, 500).is_taken); /* the button was let go elsewhere */
    CHECK(strip_height(1, 200) == 0 && strip_height(2, 400) == 0 && strip_height(1, 720) > 20);
    strip_hide(&t.strip);
    CHECK(!press(&t, 400).is_taken);
    stage_close(&t);
}

/* A quad of a process's colour over a pixel column, apart from the ground, the shade and the frame, which are all wide or high. */
static bool has_bar(const stage *t, float x_px)
{
    float base = t->strip.high_px[1] - 6;
    for (size_t i = 0; i < t->quads.count; i++) {
        const gpu_quad *q = &t->quads.items[i];
        if (q->flags == GPU_QUAD_PLAIN && q->low_px[0] <= x_px && q->high_px[0] > x_px && q->high_px[0] - q->low_px[0] < 4 &&
            fabsf(q->high_px[1] - base) < 0.01f && q->high_px[1] - q->low_px[1] > 0.99f)
            return true;
    }
    return false;
}

TEST(a_column_in_whose_time_something_happened_has_a_bar_beside_any_storm)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < test_rounds(20); round++, seed++) {
        uint64_t random = seed * 3 + 1, seconds = 1 + test_random_below(&random, 100000);
        stage t;
        stage_open(&t, seconds);
        uint64_t times[30];
        for (int i = 0; i < 30; i++) {
            times[i] = test_random_below(&random, seconds * SECOND);
            uint64_t begin_ns = SESSION_BEGIN_NS + (i == 0 ? 0 : times[i]);
            times[i] = begin_ns - SESSION_BEGIN_NS;
            CHECK_EQ(activity_add(t.activity, 0, begin_ns, begin_ns, i == 5 ? 1000000000 : 1), 0);
        }
        stage_draw(&t, 0, (double)(seconds * SECOND));
        for (int i = 0; i < 30; i++) {
            float x = x_of(&t, (double)times[i]);
            bool is_seen = false;
            for (float d = -2; d <= 2; d++) /* a counter's border may be a column's */
                is_seen |= has_bar(&t, x + d);
            if (!is_seen)
                TEST_FAILED("seed %" PRIu64 ": nothing at %f", seed, (double)x);
        }
        stage_close(&t);
    }
}

TEST(what_a_frame_costs_does_not_grow_with_the_session)
{
    size_t quads[2];
    for (int k = 0; k < 2; k++) {
        stage t;
        uint64_t seconds = k ? 200000 : 200;
        stage_open(&t, seconds);
        for (uint64_t i = 0; i < seconds * 5; i++)
            CHECK_EQ(activity_add(t.activity, 0, SESSION_BEGIN_NS + i * SECOND / 5, SESSION_BEGIN_NS + (i + 1) * SECOND / 5, 100 + i % 77), 0);
        for (uint64_t i = 0; i < seconds * 5; i++) { /* with pauses of the GC, every one */
            sim_span pause = {.begin_ns = SESSION_BEGIN_NS + i * SECOND / 5, .end_ns = SESSION_BEGIN_NS + i * SECOND / 5 + 3000000};
            CHECK_EQ(history_append(t.session.history, catalog_process_at(t.session.catalog, 0)->gc_track, &pause, 1), 0);
        }
        stage_draw(&t, 0, 5e9);
        quads[k] = t.quads.count;
        stage_close(&t);
    }
    CHECK(quads[0] > 500 && quads[1] < 2 * quads[0] && quads[1] < 4000);
}

TEST(pauses_of_the_gc_and_the_frame_are_drawn)
{
    stage t;
    stage_open(&t, 10);
    stage_draw(&t, 2e9, 4e9);
    size_t before = t.quads.count;
    sim_span pause = {.begin_ns = SESSION_BEGIN_NS + 5 * SECOND, .end_ns = SESSION_BEGIN_NS + 5 * SECOND + 1000};
    CHECK_EQ(history_append(t.session.history, catalog_process_at(t.session.catalog, 0)->gc_track, &pause, 1), 0);
    stage_draw(&t, 2e9, 4e9);
    CHECK_EQ(t.quads.count, before + 1);
    float x = x_of(&t, 5e9);
    bool is_seen = false;
    for (size_t i = 0; i < t.quads.count; i++)
        is_seen |= fabsf(t.quads.items[i].low_px[0] - x) < 1 && t.quads.items[i].high_px[0] - t.quads.items[i].low_px[0] >= 1;
    CHECK(is_seen); /* a microsecond of ten seconds */
    stage_close(&t);
}

TEST(marks_are_lines_across_the_strip_and_of_many_in_one_place_one_is_drawn)
{
    stage t;
    stage_open(&t, 10);
    stage_draw(&t, 2e9, 4e9);
    size_t plain = t.quads.count;
    t.model.notes = t.session.notes;
    for (int i = 0; i < 1000; i++) /* all within a pixel */
        notes_take(t.session.notes, &(sim_note){.at_ns = SESSION_BEGIN_NS + 6 * SECOND + (uint64_t)i, .kind = EV_MARK});
    stage_draw(&t, 2e9, 4e9);
    CHECK_EQ(t.quads.count, plain + 2); /* a line and its head */
    notes_take(t.session.notes, &(sim_note){.at_ns = SESSION_BEGIN_NS + 8 * SECOND, .kind = EV_MARK});
    const uint64_t own[] = {SESSION_BEGIN_NS + 5 * SECOND};
    t.quads.count = 0;
    strip_draw(&t.strip, &(strip_picture){.model = &t.model, .begin_ns = SESSION_BEGIN_NS, .frame_begin_ns = 2e9, .frame_end_ns = 4e9,
                                           .width_px = WIDTH, .height_px = HEIGHT, .scale = 1, .marks = own, .mark_count = 1}, t.font, &t.quads);
    CHECK_EQ(t.quads.count, plain + 6);
    int seen = 0;
    for (size_t i = 0; i < t.quads.count; i++) {
        const gpu_quad *q = &t.quads.items[i];
        for (int k = 0; k < 3; k++) {
            static const double at_s[] = {5, 6, 8};
            seen += q->high_px[0] - q->low_px[0] < 2 && q->high_px[1] - q->low_px[1] > 20 && fabsf(q->low_px[0] - x_of(&t, at_s[k] * 1e9)) < 2;
        }
    }
    CHECK_EQ(seen, 3);
    stage_close(&t);
}

TEST(a_frame_that_reaches_over_the_end_is_taken_by_the_edge_that_is_seen)
{
    stage t;
    stage_open(&t, 100);
    stage_draw(&t, -2e9, 103e9);
    press(&t, x_of(&t, 100e9));
    answer a = move(&t, x_of(&t, 50e9));
    CHECK(a.moves && near(a.range.begin_ns, 0, 1) && near(a.range.end_ns, 50e9, 100e6));
    stage_close(&t);
}
