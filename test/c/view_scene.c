/* What a session becomes: lanes and boxes, looked at as numbers, without a device. */
#include "view_scenes.h"

#include "view/camera.h"
#include "view/layout.h"
#include "view/palette.h"
#include "view/panels.h"

#include <math.h>

enum { WIDTH = 1280, HEIGHT = 720 };

static const view_status no_status = {.memory_budget = 1};

static view *still_view(view_camera camera_kind, double begin_ms, double end_ms)
{
    view *v;
    view_desc desc = {.is_still = true, .camera = camera_kind};
    if (end_ms > begin_ms) {
        desc.begin_ns = SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6);
        desc.end_ns = SESSION_BEGIN_NS + (uint64_t)(end_ms * 1e6);
    }
    CHECK_EQ(view_new(&v, &desc), 0);
    return v;
}

static gpu_frame built(view *v, session *s, const view_status *status)
{
    gpu_frame frame;
    view_model model = session_model(s);
    view_build(v, &model, status, WIDTH, HEIGHT, 0.016, &frame);
    return frame;
}

/* The box that shows the span of a track, depth and begin; NULL: none does. */
static const gpu_box *find_box(const view *v, const gpu_frame *frame, uint32_t track, uint32_t depth, double begin_ms)
{
    uint64_t begin_ns = SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6);
    for (size_t i = 0; i < frame->box_count; i++) {
        view_box_ref ref;
        if (view_box_of(v, frame->boxes[i].id, &ref) && ref.track == track && ref.depth == depth && ref.begin_ns == begin_ns)
            return &frame->boxes[i];
    }
    return NULL;
}

static uint32_t track_of(const session *s, uint32_t fiber_number)
{
    for (uint32_t id = 0; id < catalog_fiber_count(s->catalog); id++)
        if (catalog_fiber_at(s->catalog, id)->number == fiber_number)
            return catalog_fiber_at(s->catalog, id)->track;
    return SIM_TRACK_NONE;
}

/* One thread: run [10, 100) over a [20, 40) and b [50, 90); c is open since 110. */
static void make_small(session *s)
{
    session_process(s, 7, "ruby small.rb");
    uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY), a = session_method(s, "Foo#a1", EV_METHOD_RUBY);
    uint32_t b = session_method(s, "Foo#a2", EV_METHOD_RUBY), c = session_method(s, "Bar#c", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 10);
    session_call(s, run);
    session_leaf(s, a, 20, 40);
    session_leaf(s, b, 50, 90);
    session_at(s, 100);
    session_return(s);
    session_at(s, 110);
    session_call(s, c);
    session_at(s, 120);
    session_event(s, EV_CUT, 0, session_position(s, 60));
}

TEST(calls_become_boxes_at_their_time_depth_and_length)
{
    for (int kind = 0; kind < 2; kind++) {
        session s;
        session_new(&s);
        make_small(&s);
        view *v = still_view((view_camera)kind, 0, 120);
        gpu_frame frame = built(v, &s, &no_status);
        uint32_t track = track_of(&s, 1);
        const gpu_box *run = find_box(v, &frame, track, 0, 10), *a = find_box(v, &frame, track, 1, 20);
        const gpu_box *b = find_box(v, &frame, track, 1, 50), *c = find_box(v, &frame, track, 0, 110);
        CHECK(run && a && b && c);
        float ms = (float)CAMERA_FILM / 120;
        CHECK(fabsf(run->high[0] - run->low[0] - 90 * ms) < 0.01f);
        CHECK(fabsf(a->low[0] - run->low[0] - 10 * ms) < 0.01f);
        CHECK(fabsf(b->high[0] - b->low[0] - 40 * ms) < 0.01f);
        CHECK(fabsf(a->low[1] - run->high[1]) < 1e-4f); /* callees stand on their callers */
        CHECK(a->low[1] == b->low[1] && a->low[2] == run->low[2]);
        CHECK(c->low[1] == run->low[1] && c->low[0] > run->high[0]);
        view_delete(v);
        session_delete(&s);
    }
}

TEST(names_that_differ_in_digits_share_a_colour_and_others_do_not)
{
    session s;
    session_new(&s);
    make_small(&s);
    view *v = still_view(VIEW_CAMERA_FLAME, 0, 120);
    gpu_frame frame = built(v, &s, &no_status);
    uint32_t track = track_of(&s, 1);
    const gpu_box *a = find_box(v, &frame, track, 1, 20), *b = find_box(v, &frame, track, 1, 50);
    CHECK_EQ(a->color, b->color);
    CHECK(a->color != find_box(v, &frame, track, 0, 10)->color);
    CHECK_EQ(a->color, palette_method(catalog_method_of(s.catalog, 0, 2)->hash, EV_METHOD_RUBY, 1));
    view_delete(v);
    session_delete(&s);
}

TEST(an_open_call_reaches_to_now_with_a_bright_end)
{
    session s;
    session_new(&s);
    make_small(&s);
    view *v = still_view(VIEW_CAMERA_FLAME, 0, 120);
    gpu_frame frame = built(v, &s, &no_status);
    float right = -1e9f;
    uint32_t brightest = 0;
    for (size_t i = 0; i < frame.box_count; i++) {
        view_box_ref ref;
        if (view_box_of(v, frame.boxes[i].id, &ref) && ref.track == track_of(&s, 1) && ref.begin_ns == SESSION_BEGIN_NS + 110000000 &&
            frame.boxes[i].high[0] > right) {
            right = frame.boxes[i].high[0];
            brightest = frame.boxes[i].color;
        }
    }
    CHECK(fabsf(right - 0.5f * (float)CAMERA_FILM) < 0.02f);
    CHECK_EQ(brightest, palette_open_end(palette_method(catalog_method_of(s.catalog, 0, 4)->hash, EV_METHOD_C, 0)));
    view_delete(v);
    session_delete(&s);
}

TEST(an_id_names_its_span_and_unknown_ids_name_none)
{
    session s;
    view_box_ref ref;
    session_new(&s);
    make_small(&s);
    view *v = still_view(VIEW_CAMERA_SCENE, 0, 120);
    CHECK(!view_box_of(v, 1, &ref));
    gpu_frame frame = built(v, &s, &no_status);
    CHECK(!view_box_of(v, 0, &ref));
    CHECK(!view_box_of(v, (uint32_t)frame.box_count + 1, &ref));
    size_t named = 0;
    for (size_t i = 0; i < frame.box_count; i++)
        named += view_box_of(v, frame.boxes[i].id, &ref);
    CHECK(named >= 5);
    view_delete(v);
    session_delete(&s);
}

TEST(only_what_is_in_sight_is_asked_for)
{
    session s;
    session_new(&s);
    scenes_web(&s, 3, 20);
    view *v = still_view(VIEW_CAMERA_FLAME, 2000, 2100);
    gpu_frame frame = built(v, &s, &no_status);
    CHECK(frame.box_count > 5);
    for (size_t i = 0; i < frame.box_count; i++) {
        CHECK(frame.boxes[i].low[0] > -11 && frame.boxes[i].high[0] < 11);
        for (int axis = 0; axis < 3; axis++)
            CHECK(frame.boxes[i].low[axis] <= frame.boxes[i].high[axis]);
    }
    view_delete(v);
    session_delete(&s);
}

/* Forty calls of a microsecond, between others that leave no room, and as short a time of running. */
static void make_ticks(session *s)
{
    session_process(s, 8, "ruby ticks.rb");
    uint32_t tick = session_method(s, "Clock#tick", EV_METHOD_RUBY), wait = session_method(s, "Clock#wait", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_event(s, EV_THREAD_STARTED, 1, 0);
    session_switch(s, 1, 1);
    for (int i = 0; i < 40; i++) {
        double at = 10 + i * 53.7;
        session_event(s, EV_THREAD_SUSPENDED, 1, 0);
        session_leaf(s, wait, i == 0 ? 1 : at - 53.699, at);
        session_event(s, EV_THREAD_RESUMED, 1, 0);
        session_leaf(s, tick, at, at + 0.001);
    }
}

static void to_px(const gpu_frame *frame, const float world[3], float px[2])
{
    const float *m = frame->view_projection;
    float w = m[3] * world[0] + m[7] * world[1] + m[11] * world[2] + m[15];
    for (int i = 0; i < 2; i++)
        px[i] = ((m[i] * world[0] + m[4 + i] * world[1] + m[8 + i] * world[2] + m[12 + i]) / w * 0.5f + 0.5f) * (i ? HEIGHT : WIDTH);
}

TEST(what_is_shorter_than_a_pixel_is_one_pixel_wide_and_stands_before_its_neighbours)
{
    for (int kind = 0; kind < 3; kind++) {
        session s;
        session_new(&s);
        make_ticks(&s);
        view *v = still_view((view_camera)kind, 0, 2200);
        gpu_frame frame = built(v, &s, &no_status);
        size_t ticks = 0, states = 0;
        float front = -INFINITY, top = -INFINITY; /* of what is long */
        for (int is_short = 0; is_short < 2; is_short++)
            for (size_t i = 0; i < frame.box_count; i++) {
                const gpu_box *b = &frame.boxes[i];
                view_box_ref ref;
                float px[2][2];
                if (!view_box_of(v, b->id, &ref) || ref.is_open || ref.kind == VIEW_BOX_SPAN || (ref.end_ns - ref.begin_ns > 2000) == is_short)
                    continue;
                bool is_call = ref.kind == VIEW_BOX_CALL;
                if (!is_short) {
                    front = is_call ? fmaxf(front, b->high[2]) : front;
                    top = is_call ? fmaxf(top, b->high[1]) : top;
                    continue;
                }
                to_px(&frame, (const float[]){b->low[0], b->low[1], b->high[2]}, px[0]);
                to_px(&frame, (const float[]){b->high[0], b->low[1], b->high[2]}, px[1]);
                CHECK(px[1][0] - px[0][0] >= 1 && px[1][0] - px[0][0] < 1.3f);
                CHECK(!is_call || (b->high[2] > front && b->high[1] > top));
                ticks += is_call;
                states += ref.kind == VIEW_BOX_GVL;
            }
        CHECK(ticks == 40 && states >= 39);
        view_delete(v);
        session_delete(&s);
    }
}

/* 200,000 short calls on two rows. */
static void make_dense(session *s)
{
    session_process(s, 8, "ruby dense.rb");
    uint32_t outer = session_method(s, "Foo#outer", EV_METHOD_RUBY), inner = session_method(s, "Foo#inner", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    for (int i = 0; i < 100000; i++) {
        double at = 1 + i * 0.03;
        session_at(s, at);
        session_call(s, outer);
        session_leaf(s, inner, at + 0.005, at + 0.015);
        session_at(s, at + 0.02);
        session_return(s);
    }
}

TEST(however_many_calls_there_are_a_row_has_at_most_some_boxes_a_pixel)
{
    session s;
    session_new(&s);
    make_dense(&s);
    for (int kind = 0; kind < 3; kind++) {
        view *v = still_view((view_camera)kind, 0, 3000);
        gpu_frame frame = built(v, &s, &no_status);
        CHECK(frame.box_count > 100);
        CHECK(frame.box_count < 2 * 2 * WIDTH);
        view_delete(v);
    }
    session_delete(&s);
}

TEST(folded_calls_take_as_much_of_the_picture_as_of_the_time)
{
    for (int kind = 0; kind < 3; kind++) {
        session s;
        session_new(&s);
        make_dense(&s); /* the outer call takes two thirds of the time, the inner one a third */
        view *v = still_view((view_camera)kind, 500, 2500);
        gpu_frame frame = built(v, &s, &no_status);
        double time[2] = {0}, filled[2] = {0};
        float whole[2] = {0};
        for (size_t i = 0; i < frame.box_count; i++) {
            const gpu_box *b = &frame.boxes[i];
            view_box_ref ref;
            if (!view_box_of(v, b->id, &ref) || ref.kind != VIEW_BOX_CALL || ref.depth > 1 || fabsf(b->low[0]) > 6)
                continue;
            int axis = kind == VIEW_CAMERA_THREADS ? 2 : 1;
            float size = b->high[axis] - b->low[axis];
            whole[ref.depth] = fmaxf(whole[ref.depth], size / ref.share);
            CHECK(size / ref.share > 0.85f * whole[ref.depth]);
            time[ref.depth] += (double)(ref.end_ns - ref.begin_ns);
            filled[ref.depth] += (double)(ref.end_ns - ref.begin_ns) * (double)ref.share;
        }
        CHECK(time[0] > 0);
        CHECK(fabs(filled[0] / time[0] - 0.67) < 0.1);
        if (time[1] > 0) /* from above some rows are drawn as one */
            CHECK(fabs(filled[1] / time[1] - 0.33) < 0.1);
        view_delete(v);
        session_delete(&s);
    }
}

/* A second of calls of random length on one thread, three deep. */
static void make_uneven(session *s)
{
    uint64_t seed = 11;
    session_process(s, 8, "ruby uneven.rb");
    uint32_t methods[3];
    for (uint32_t i = 0; i < 3; i++)
        methods[i] = session_method(s, i == 0 ? "A#outer" : i == 1 ? "B#middle" : "C#inner", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    for (double at = 1; at < 1000;) {
        double length = 0.002 * (double)(1 + test_random_below(&seed, 40));
        for (int i = 0; i < 3; i++) {
            session_at(s, at + 0.1 * i * length);
            session_call(s, methods[i]);
        }
        for (int i = 3; i-- > 0;) {
            session_at(s, at + (1 - 0.1 * i) * length);
            session_return(s);
        }
        at += length * (1.05 + (double)test_random_below(&seed, 100) / 100);
    }
}

static bool has_same_box(const view *v, const gpu_frame *frame, const view_box_ref *ref, const gpu_box *box)
{
    for (size_t i = 0; i < frame->box_count; i++) {
        view_box_ref other;
        const gpu_box *b = &frame->boxes[i];
        if (view_box_of(v, b->id, &other) && other.begin_ns == ref->begin_ns && other.track == ref->track && other.depth == ref->depth)
            return b->color == box->color && fabsf(b->high[0] - b->low[0] - (box->high[0] - box->low[0])) < 2e-4f &&
                   fabsf(other.share - ref->share) < 0.02f;
    }
    return false;
}

/* Boxes of a's frame that b's has not, of those with x in [left, right). */
static size_t missing_boxes(view *const v[2], const gpu_frame frames[2], int a, float left, float right, size_t *looked_at)
{
    size_t missing = 0;
    for (size_t i = 0; i < frames[a].box_count; i++) {
        view_box_ref ref;
        const gpu_box *box = &frames[a].boxes[i];
        if (!view_box_of(v[a], box->id, &ref) || box->low[0] < left || box->high[0] > right)
            continue;
        ++*looked_at;
        missing += !has_same_box(v[1 - a], &frames[1 - a], &ref, box);
    }
    return missing;
}

TEST(folded_calls_stay_as_they_are_while_the_film_moves_on)
{
    for (int kind = 0; kind < 3; kind++) {
        const double begin_ms[2] = {200, 201.37}, length_ms = 600; /* a few pixels */
        session s;
        view *v[2];
        gpu_frame frames[2];
        session_new(&s);
        make_uneven(&s);
        for (int later = 0; later < 2; later++) {
            v[later] = still_view((view_camera)kind, begin_ms[later], begin_ms[later] + length_ms);
            frames[later] = built(v[later], &s, &no_status);
        }
        uint64_t begin_ns, end_ns, last_ns, unused_ns;
        view_range(v[1], &begin_ns, &unused_ns);
        view_range(v[0], &last_ns, &end_ns);
        size_t looked_at = 0, missing = 0;
        for (int a = 0; a < 2; a++) {
            double x_per_ms = CAMERA_FILM / length_ms, x_zero = begin_ms[a] + length_ms / 2;
            float left = (float)(((double)(begin_ns - SESSION_BEGIN_NS) * 1e-6 - x_zero) * x_per_ms);
            float right = (float)(((double)(end_ns - SESSION_BEGIN_NS) * 1e-6 - x_zero) * x_per_ms);
            missing += kind == VIEW_CAMERA_SCENE ? missing_boxes(v, frames, a, -7, 6, &looked_at)
                                                 : missing_boxes(v, frames, a, left, right, &looked_at);
        }
        CHECK(looked_at > 2000);
        /* In perspective, a part of a row may begin a cell later. */
        CHECK(missing <= (kind == VIEW_CAMERA_SCENE ? looked_at / 100 : 0));
        view_delete(v[0]);
        view_delete(v[1]);
        session_delete(&s);
    }
}

TEST(folded_calls_are_darker_than_single_ones)
{
    session s;
    session_new(&s);
    make_dense(&s);
    float lightness[2], chroma, hue;
    for (int near = 0; near < 2; near++) {
        view *v = still_view(VIEW_CAMERA_FLAME, 100, near ? 101 : 3000);
        gpu_frame frame = built(v, &s, &no_status);
        uint32_t color = 0;
        for (size_t i = 0; i < frame.box_count; i++) {
            view_box_ref ref;
            if (view_box_of(v, frame.boxes[i].id, &ref) && ref.track == track_of(&s, 1) && ref.depth == 0)
                color = frame.boxes[i].color;
        }
        palette_to_oklch(color, &lightness[near], &chroma, &hue);
        view_delete(v);
    }
    CHECK(lightness[0] < lightness[1] - 0.05f);
    session_delete(&s);
}

TEST(the_box_budget_is_kept_by_coarser_boxes_and_follows_the_frame_time)
{
    session s;
    session_new(&s);
    scenes_web(&s, 12, 40);
    view *v;
    CHECK_EQ(view_new(&v, &(view_desc){.is_software = true, .begin_ns = SESSION_BEGIN_NS, .end_ns = SESSION_BEGIN_NS + UINT64_C(40000000000)}), 0);
    gpu_frame frame = built(v, &s, &no_status);
    size_t at_first = frame.box_count;
    CHECK(at_first < 4600); /* floors and grid come on top */
    for (int i = 0; i < 100; i++)
        view_frame_cost(v, 200, 1);
    for (int i = 0; i < 20; i++)
        frame = built(v, &s, &no_status);
    CHECK(frame.box_count < 4300);
    CHECK(frame.box_count > 300);
    for (int i = 0; i < 400; i++) {
        view_frame_cost(v, 5, 1);
        frame = built(v, &s, &no_status);
    }
    CHECK(frame.box_count > at_first);
    size_t many = frame.box_count;
    for (int i = 0; i < 100; i++) { /* the device has time, but building takes too long */
        view_frame_cost(v, 5, 9);
        frame = built(v, &s, &no_status);
    }
    CHECK(frame.box_count < many / 2);
    view_delete(v);
    session_delete(&s);
}

/* Depths of a track that the frame's boxes stand for. */
static uint32_t levels_shown(const view *v, const gpu_frame *frame, uint32_t track)
{
    bool is_shown[4096] = {false};
    uint32_t count = 0;
    for (size_t i = 0; i < frame->box_count; i++) {
        view_box_ref ref;
        if (!view_box_of(v, frame->boxes[i].id, &ref) || !view_box_is_call(&ref) || ref.track != track)
            continue;
        CHECK(ref.levels == 1 && ref.depth < 4096);
        count += !is_shown[ref.depth];
        is_shown[ref.depth] = true;
    }
    return count;
}

TEST(every_level_of_a_stack_is_there_however_few_boxes_there_may_be)
{
    for (int kind = 0; kind < 3; kind++) {
        session s;
        session_new(&s);
        scenes_web(&s, 3, 40);
        view *v;
        CHECK_EQ(view_new(&v, &(view_desc){.is_software = true, .camera = (view_camera)kind, .begin_ns = SESSION_BEGIN_NS + UINT64_C(1000000000),
                                           .end_ns = SESSION_BEGIN_NS + UINT64_C(39000000000)}), 0);
        gpu_frame frame = built(v, &s, &no_status);
        for (int i = 0; i < 100; i++) { /* a device that is slow: as few as there are ever */
            view_frame_cost(v, 200, 1);
            frame = built(v, &s, &no_status);
        }
        CHECK(frame.box_count < 1700);
        for (uint32_t id = 1; id < catalog_fiber_count(s.catalog); id++) {
            uint32_t track = catalog_fiber_at(s.catalog, id)->track;
            CHECK(history_rows(s.history, track) > 20);
            CHECK_EQ(levels_shown(v, &frame, track), history_rows(s.history, track));
        }
        view_delete(v);
        session_delete(&s);
    }
}

/* Of a web server's first 40 s. */
static view *web_view(session *s, int workers, view_camera kind)
{
    view *v;
    session_new(s);
    scenes_web(s, workers, 40);
    CHECK_EQ(view_new(&v, &(view_desc){.is_software = true, .camera = kind, .begin_ns = SESSION_BEGIN_NS,
                                       .end_ns = SESSION_BEGIN_NS + UINT64_C(40000000000)}), 0);
    return v;
}

TEST(where_levels_are_more_than_boxes_a_row_stands_for_several_and_says_so)
{
    session s;
    view *v = web_view(&s, 100, VIEW_CAMERA_THREADS);
    gpu_frame frame = built(v, &s, &no_status);
    for (int i = 0; i < 100; i++) {
        view_frame_cost(v, 200, 1);
        frame = built(v, &s, &no_status);
    }
    uint32_t levels = 0;
    for (size_t i = 0; i < frame.box_count; i++) {
        view_box_ref ref;
        if (view_box_of(v, frame.boxes[i].id, &ref) && view_box_is_call(&ref)) {
            CHECK(ref.depth % ref.levels == 0);
            levels = ref.levels > levels ? ref.levels : levels;
        }
    }
    CHECK(levels > 1);
    view_delete(v);
    session_delete(&s);
}

TEST(a_picture_at_rest_gets_as_fine_as_it_may_and_then_stands_still)
{
    session s;
    view *v = web_view(&s, 3, VIEW_CAMERA_FLAME);
    view_status status = {.memory_budget = 1, .ended = true};
    gpu_frame frame = built(v, &s, &status);
    for (int i = 0; i < 60; i++) {
        view_frame_cost(v, 200, 1);
        frame = built(v, &s, &status);
    }
    size_t few = frame.box_count;
    for (int i = 0; i < 60; i++) /* the hint has gone, and the device has time again: */
        view_frame_cost(v, 30, 1);
    int frames = 0;
    do {
        view_model model = session_model(&s);
        view_build(v, &model, &status, WIDTH, HEIGHT, 1, &frame);
        view_frame_cost(v, 36, 1);
    } while (++frames < 1000 && view_is_moving(v));
    CHECK(frames < 1000);
    CHECK(frame.box_count > few);
    view_delete(v);
    session_delete(&s);
}

TEST(a_recursion_of_ten_thousand_calls_stays_in_the_picture_and_in_the_budget)
{
    for (int kind = 0; kind < 3; kind++) {
        session s;
        session_new(&s);
        scenes_deep(&s, 10000);
        view *v = still_view((view_camera)kind, 0, 0);
        gpu_frame frame = built(v, &s, &no_status);
        CHECK(frame.box_count > (kind == VIEW_CAMERA_THREADS ? 20 : 100) && frame.box_count < 45000);
        float top_clip = 2;
        for (size_t i = 0; i < frame.box_count; i++) {
            const gpu_box *b = &frame.boxes[i];
            const float *m = frame.view_projection;
            float x = 0.5f * (b->low[0] + b->high[0]), y = b->high[1], z = b->high[2];
            view_box_ref ref;
            if (!view_box_of(v, b->id, &ref))
                continue;
            float clip_y = m[1] * x + m[5] * y + m[9] * z + m[13], clip_w = m[3] * x + m[7] * y + m[11] * z + m[15];
            top_clip = fminf(top_clip, clip_y / clip_w);
        }
        CHECK(top_clip > -1);
        view_delete(v);
        session_delete(&s);
    }
}

TEST(from_above_a_deep_stack_is_drawn_in_a_few_dozen_rows)
{
    for (int kind = VIEW_CAMERA_FLAME; kind <= VIEW_CAMERA_THREADS; kind++) {
        session s;
        bool has_row[4096] = {false};
        uint32_t rows = 0;
        session_new(&s);
        scenes_deep(&s, 4000);
        view *v = still_view((view_camera)kind, 0, 0);
        gpu_frame frame = built(v, &s, &no_status);
        for (size_t i = 0; i < frame.box_count; i++) {
            view_box_ref ref;
            if (view_box_of(v, frame.boxes[i].id, &ref) && ref.depth < 4096 && !has_row[ref.depth]) {
                has_row[ref.depth] = true;
                rows++;
            }
        }
        CHECK(rows > 20);
        CHECK(kind == VIEW_CAMERA_FLAME || rows <= 64);
        view_delete(v);
        session_delete(&s);
    }
}

TEST(a_small_budget_has_fewer_panes_of_gc_too)
{
    size_t panes[2];
    for (int is_still = 0; is_still < 2; is_still++) {
        session s;
        view *v;
        session_new(&s);
        make_dense(&s);
        for (int i = 0; i < 150; i++)
            session_gc(&s, 3100 + i * 20, 3101 + i * 20);
        CHECK_EQ(view_new(&v, &(view_desc){.camera = VIEW_CAMERA_FLAME, .is_software = true, .is_still = is_still, .begin_ns = SESSION_BEGIN_NS,
                                           .end_ns = SESSION_BEGIN_NS + UINT64_C(6200000000)}), 0);
        for (int i = 0; i < 200 && !is_still; i++)
            view_frame_cost(v, 500, 1);
        panes[is_still] = built(v, &s, &no_status).glass_count;
        view_delete(v);
        session_delete(&s);
    }
    CHECK(panes[1] == 150);
    CHECK(panes[0] >= 15 && panes[0] <= 50);
}

TEST(marks_of_gc_take_as_little_of_the_time_axis_as_gc_does)
{
    for (int kind = 0; kind < 3; kind++) {
        session s;
        session_new(&s);
        make_small(&s);
        for (int i = 0; i < 300; i++)
            session_gc(&s, 200 + i * 20, 200.1 + i * 20);
        view *v = still_view((view_camera)kind, 150, 6250);
        gpu_frame frame = built(v, &s, &no_status);
        uint32_t color = palette_under_light(palette_mix(PALETTE_LANE, PALETTE_GC, 1), kind == VIEW_CAMERA_FLAME ? 0 : 1);
        size_t marks = 0;
        float width = 0;
        for (size_t i = 0; i < frame.box_count; i++) {
            if (frame.boxes[i].color != color || frame.boxes[i].id)
                continue;
            marks++;
            width += frame.boxes[i].high[0] - frame.boxes[i].low[0];
        }
        CHECK_EQ(marks, 300);
        CHECK(width < 0.5f * (float)CAMERA_FILM); /* a pixel and a half each */
        view_delete(v);
        session_delete(&s);
    }
}

TEST(gc_pauses_are_glass_over_all_lanes_of_their_process_and_never_too_thin)
{
    session s;
    session_new(&s);
    scenes_processes(&s);
    session_at(&s, 3100);
    session_gc(&s, 3100, 3100.001);
    session_at(&s, 3200);
    session_event(&s, EV_CUT, 0, session_position(&s, 60));
    view *v = still_view(VIEW_CAMERA_SCENE, 1000, 3200);
    gpu_frame frame = built(v, &s, &no_status);
    CHECK_EQ(frame.glass_count, 5); /* one in each of four streams, and the short one */
    float widest = 0, least = 1e9f;
    for (size_t i = 0; i < frame.glass_count; i++) {
        CHECK_EQ(frame.glass[i].color & 0xffffffu, PALETTE_GC & 0xffffffu);
        CHECK(frame.glass[i].color >> 24 > 10 && frame.glass[i].color >> 24 < 160);
        widest = fmaxf(widest, frame.glass[i].high[2] - frame.glass[i].low[2]);
        least = fminf(least, frame.glass[i].high[0] - frame.glass[i].low[0]);
    }
    CHECK(least > 0.008f); /* a microsecond of 2.2 s would be 0.000007 */
    CHECK(widest > 1.8f * (frame.glass[0].high[2] - frame.glass[0].low[2]) || widest > 2);
    view_delete(v);
    session_delete(&s);
}

/* In each of count processes some threads, and 250 pauses in 5 s, which take a share of the time. */
static void make_collecting(session *s, uint32_t count, uint32_t threads, double share)
{
    session_new(s);
    for (uint32_t p = 0; p < count; p++) {
        session_at(s, 1);
        session_process(s, 100 + p, "ruby collecting.rb");
        uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY), deeper = session_method(s, "Foo#deeper", EV_METHOD_RUBY);
        for (uint32_t t = 1; t <= threads; t++) {
            session_thread(s, t, "", t == 1);
            session_switch(s, t, t);
            session_call(s, run);
            for (uint32_t i = 0; i < (p == 1 ? 8u : 1u); i++)
                session_call(s, deeper);
        }
        for (int i = 0; i < 250; i++)
            session_gc(s, 10 + i * 20, 10 + i * 20 + 20 * share);
        session_run(s);
    }
    session_at(s, 5100);
}

/* How red the whole is: panes by width and opacity. */
static double redness(session *s, double *faintest)
{
    view *v = still_view(VIEW_CAMERA_SCENE, 0, 5000);
    gpu_frame frame = built(v, s, &no_status);
    double sum = 0;
    *faintest = 1;
    for (size_t i = 0; i < frame.glass_count; i++) {
        double alpha = (double)(frame.glass[i].color >> 24) / 255;
        sum += alpha * (double)(frame.glass[i].high[0] - frame.glass[i].low[0]);
        *faintest = fmin(*faintest, alpha);
    }
    view_delete(v);
    session_delete(s);
    return sum / CAMERA_FILM;
}

TEST(panes_of_gc_show_what_share_of_the_time_it_takes_of_one_thread_or_of_many)
{
    session s;
    double faintest, last = 0;
    for (uint32_t threads = 1; threads <= 16; threads *= 4) {
        make_collecting(&s, 1, threads, 0.05);
        double little = redness(&s, &faintest);
        CHECK(faintest > 0.05); /* blending in bytes would lose it */
        make_collecting(&s, 1, threads, 0.3);
        double much = redness(&s, &faintest);
        CHECK(faintest > 0.05);
        if (much < 3 * little)
            TEST_FAILED("%u threads: 30 %% of GC is only %.3f red, 5 %% is %.3f", threads, much, little);
        CHECK(last == 0 || (much < 3 * last && last < 3 * much));
        last = much;
    }
}

TEST(in_the_flame_chart_panes_of_gc_lie_over_lanes_of_their_process_alone)
{
    session s;
    make_collecting(&s, 3, 2, 0.1);
    view *v = still_view(VIEW_CAMERA_FLAME, 0, 5000);
    gpu_frame frame = built(v, &s, &no_status);
    CHECK(frame.glass_count > 30);
    /* Of lanes by process: what calls and states take of the height. */
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (size_t i = 0; i < frame.box_count; i++) {
        view_box_ref ref;
        if (!view_box_of(v, frame.boxes[i].id, &ref) || ref.kind > VIEW_BOX_GVL)
            continue;
        low[ref.process] = fminf(low[ref.process], frame.boxes[i].low[1]);
        high[ref.process] = fmaxf(high[ref.process], frame.boxes[i].high[1]);
    }
    for (size_t i = 0; i < frame.glass_count; i++) {
        uint32_t over = 0;
        for (uint32_t process = 0; process < 3; process++)
            over += frame.glass[i].low[1] < high[process] && frame.glass[i].high[1] > low[process];
        CHECK_EQ(over, 1);
    }
    view_delete(v);
    session_delete(&s);
}

TEST(glass_comes_farthest_first)
{
    session s;
    session_new(&s);
    scenes_web(&s, 3, 5);
    view *v = still_view(VIEW_CAMERA_SCENE, 0, 5000);
    gpu_frame frame = built(v, &s, &no_status);
    CHECK(frame.glass_count > 4);
    for (size_t i = 1; i < frame.glass_count; i++)
        CHECK(fabsf(frame.glass[i].low[0] - frame.eye[0]) <= fabsf(frame.glass[i - 1].low[0] - frame.eye[0]) + 0.1f);
    view_delete(v);
    session_delete(&s);
}

static layout settled(const catalog *c, uint64_t begin_ns, uint64_t end_ns, float flame)
{
    layout l = {0};
    layout_desc desc = {.flame = flame, .row_px = 15, .lane_px = 26, .stretch = 1, .units_per_px = 0.0125f, .free_height_px = 600,
                        .begin_ns = begin_ns, .end_ns = end_ns, .time_s = INFINITY};
    layout_update(&l, c, &desc);
    layout_update(&l, c, &desc);
    return l;
}

TEST(threads_have_lanes_that_do_not_overlap_grouped_by_process_with_ractors)
{
    session s;
    session_new(&s);
    scenes_processes(&s);
    session_run(&s);
    for (int flame = 0; flame < 2; flame++) {
        layout l = settled(s.catalog, SESSION_BEGIN_NS, s.now_ns, (float)flame);
        CHECK_EQ(l.lanes.count, 4);
        CHECK_EQ(l.groups.count, 3);
        CHECK_EQ(l.groups.items[2].lane_end - l.groups.items[2].lane_begin, 2); /* pid 1002 and its Ractor */
        for (size_t i = 1; i < l.lanes.count; i++) {
            CHECK(l.lanes.items[i].z_begin >= l.lanes.items[i - 1].z_end - 1e-5f);
            if (flame)
                CHECK(l.lanes.items[i].y_floor < l.lanes.items[i - 1].y_floor - l.row_height);
        }
        char name[160];
        catalog_thread_title(s.catalog, l.lanes.items[3].thread, name);
        CHECK_STR(name, "ractor 2");
        panels_process_title(s.catalog, l.groups.items[2].process, name);
        CHECK_STR(name, "ruby bin/worker 2  \xC2\xB7  pid 1002");
        layout_free(&l);
    }
    session_delete(&s);
}

TEST(threads_that_ended_before_the_window_take_no_room)
{
    session s;
    session_new(&s);
    session_process(&s, 5, "ruby spawn.rb");
    uint32_t work = session_method(&s, "Foo#work", EV_METHOD_RUBY);
    session_switch(&s, 1, 1);
    for (uint32_t t = 0; t < 100; t++) {
        session_at(&s, 10 + 10 * t);
        session_event(&s, EV_THREAD_STARTED, t + 2, 0);
        session_switch(&s, t + 2, t + 2);
        session_leaf(&s, work, 11 + 10 * t, 15 + 10 * t);
        session_event(&s, EV_THREAD_EXITED, t + 2, 0);
    }
    session_run(&s);
    CHECK_EQ(catalog_thread_count(s.catalog), 101);
    layout l = settled(s.catalog, SESSION_BEGIN_NS + 500000000, SESSION_BEGIN_NS + 540000000, 0);
    CHECK(l.lanes.count >= 4 && l.lanes.count <= 6);
    layout_free(&l);
    session_delete(&s);
}

TEST(a_lane_that_comes_unfolds_and_does_not_jump)
{
    session s;
    session_new(&s);
    scenes_web(&s, 1, 1);
    session_run(&s);
    layout l = {0};
    layout_desc desc = {.row_px = 15, .lane_px = 26, .stretch = 1, .units_per_px = 0.0125f, .free_height_px = 600,
                        .begin_ns = SESSION_BEGIN_NS, .end_ns = SESSION_BEGIN_NS + 100000000, .time_s = 0.016};
    layout_update(&l, s.catalog, &desc);
    CHECK_EQ(l.lanes.count, 1);
    CHECK(l.lanes.items[0].weight == 1); /* the first is simply there */
    desc.end_ns = s.now_ns;
    float last = l.z_end;
    int frames = 0;
    do {
        layout_update(&l, s.catalog, &desc);
        CHECK(fabsf(l.z_end - last) < 0.35f);
        last = l.z_end;
    } while (l.is_moving && ++frames < 600);
    CHECK(frames > 5 && frames < 600);
    CHECK_EQ(l.lanes.count, 2);
    CHECK(l.lanes.items[1].weight > 0.99f);
    layout_free(&l);
    session_delete(&s);
}

TEST(fibers_stand_beside_their_root_and_a_silent_one_leaves_its_place)
{
    session s;
    session_new(&s);
    session_process(&s, 6, "ruby fibers.rb");
    uint32_t work = session_method(&s, "Foo#work", EV_METHOD_RUBY);
    session_switch(&s, 1, 1);
    for (uint32_t f = 2; f < 40; f++) {
        session_at(&s, 10 * f);
        session_switch(&s, f, 1);
        session_leaf(&s, work, 10 * f + 1, 10 * f + 5);
    }
    session_run(&s);
    layout l = settled(s.catalog, SESSION_BEGIN_NS, s.now_ns, 0);
    CHECK_EQ(l.lanes.count, 1);
    CHECK_EQ(l.fiber_subs.items[0], 0);
    for (uint32_t id = 1; id < catalog_fiber_count(s.catalog); id++)
        CHECK_EQ(l.fiber_subs.items[id], 1); /* one after another: they share one place */
    float z[2][2], y;
    for (uint32_t sub = 0; sub < 2; sub++)
        layout_sub(&l, &l.lanes.items[0], sub, &z[sub][0], &z[sub][1], &y);
    CHECK(z[0][1] <= z[1][0] && z[1][1] <= l.lanes.items[0].z_end);
    layout_free(&l);
    session_delete(&s);
}

TEST(fibers_that_take_turns_have_places_of_their_own)
{
    session s;
    session_new(&s);
    session_process(&s, 6, "ruby fibers.rb");
    uint32_t work = session_method(&s, "Foo#work", EV_METHOD_RUBY);
    session_switch(&s, 1, 1);
    for (int i = 0; i < 30; i++) {
        session_at(&s, 10 * i);
        session_switch(&s, 2 + (uint32_t)i % 3, 1);
        session_leaf(&s, work, 10 * i + 1, 10 * i + 5);
        if (i % 10 == 0)
            session_run(&s);
    }
    session_run(&s);
    layout l = settled(s.catalog, SESSION_BEGIN_NS, s.now_ns, 0);
    bool is_taken[LAYOUT_SUBS] = {0};
    for (uint32_t id = 0; id < catalog_fiber_count(s.catalog); id++) {
        CHECK(!is_taken[l.fiber_subs.items[id]]);
        is_taken[l.fiber_subs.items[id]] = true;
    }
    layout_free(&l);
    session_delete(&s);
}

/* The share of the lanes' calls whose middle is within the picture. */
static float share_in_picture(const view *v, const gpu_frame *frame)
{
    size_t calls = 0, within = 0;
    for (size_t i = 0; i < frame->box_count; i++) {
        const gpu_box *b = &frame->boxes[i];
        const float *m = frame->view_projection;
        view_box_ref ref;
        if (!view_box_of(v, b->id, &ref) || ref.kind == VIEW_BOX_GVL)
            continue;
        float x = 0.5f * (b->low[0] + b->high[0]), y = b->low[1], z = b->high[2];
        float w = m[3] * x + m[7] * y + m[11] * z + m[15];
        calls++;
        within += fabsf(m[0] * x + m[4] * y + m[8] * z + m[12]) < w && fabsf(m[1] * x + m[5] * y + m[9] * z + m[13]) < w;
    }
    return calls ? (float)within / (float)calls : 0;
}

TEST(any_number_of_threads_is_in_the_picture)
{
    static const uint32_t counts[] = {30, 100, 200, 300, 500, 1500};
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        session s;
        session_new(&s);
        scenes_threads(&s, counts[n]);
        view *v = still_view(VIEW_CAMERA_SCENE, 0, 0);
        gpu_frame frame = built(v, &s, &no_status);
        CHECK(frame.box_count > counts[n]);
        CHECK(share_in_picture(v, &frame) > 0.95f);
        view_delete(v);
        session_delete(&s);
    }
}

TEST(the_height_of_rows_does_not_jump_when_the_stack_grows)
{
    session s;
    session_new(&s);
    scenes_deep(&s, 200);
    view *v;
    CHECK_EQ(view_new(&v, &(view_desc){.scale = 1}), 0);
    float last = 0;
    view_model model = session_model(&s);
    for (uint64_t ms = 100; ms < 3000; ms += 16) {
        gpu_frame frame;
        model.now_ns = SESSION_BEGIN_NS + ms * 1000000;
        view_build(v, &model, &no_status, WIDTH, HEIGHT, 0.016, &frame);
        const gpu_box *floor_row = find_box(v, &frame, track_of(&s, 1), 0, 1);
        if (!floor_row)
            continue;
        float height = floor_row->high[1] - floor_row->low[1];
        while (last > 0 && height > 1.6f * last)
            height /= 2; /* rows that are too low to see are drawn two, four, … at a time */
        while (last > 0 && height < 0.6f * last)
            height *= 2;
        if (last > 0 && (height > last * 1.35f || height < last * 0.7f))
            TEST_FAILED("a row went from %g to %g at %d ms", (double)last, (double)height, (int)ms);
        last = height;
    }
    CHECK(last > 0);
    view_delete(v);
    session_delete(&s);
}

TEST(running_out_of_memory_makes_the_picture_poorer_not_the_program_fail)
{
    session s;
    session_new(&s);
    scenes_web(&s, 3, 5);
    session_run(&s);
    for (unsigned every = 1; every < 12; every++) {
        view *v = NULL;
        gpu_frame frame;
        view_model model = session_model(&s);
        mem_fail_every(every);
        if (view_new(&v, &(view_desc){.is_software = true}) == 0)
            for (int i = 0; i < 3; i++)
                view_build(v, &model, &no_status, WIDTH, HEIGHT, 0.016, &frame);
        mem_fail_every(0);
        view_delete(v);
    }
    session_delete(&s);
}

TEST(a_view_of_nothing_at_all_can_be_built)
{
    session s;
    session_new(&s);
    view *v = still_view(VIEW_CAMERA_SCENE, 0, 0);
    gpu_frame frame;
    view_model model = {.catalog = s.catalog, .history = s.history, .sim = NULL, .now_ns = SESSION_BEGIN_NS};
    view_build(v, &model, &no_status, 1, 1, 0, &frame);
    CHECK_EQ(frame.box_count, 0);
    view_build(v, &model, &no_status, WIDTH, HEIGHT, 0, &frame);
    CHECK(frame.quad_count > 0);
    view_delete(v);
    session_delete(&s);
}
