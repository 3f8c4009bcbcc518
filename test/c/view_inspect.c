/* What the window answers: pointing, selecting, the hottest methods, the open calls, from call to call. */
#include "view_scenes.h"

#include "view/calls.h"
#include "view/details.h"
#include "view/hot.h"
#include "view/inspect.h"
#include "view/palette.h"

#include <math.h>

enum { WIDTH = 1280, HEIGHT = 720 };

/* A view's parts, laid open. */
typedef struct stage {
    session *session;
    view_model model;
    nav nav;
    layout layout;
    scene scene;
    find find;
    focus focus;
    tint tint;
    scene_input in;
} stage;

static void stage_build(stage *st)
{
    focus_update(&st->focus, st->model.catalog);
    for (int i = 0; i < 6; i++) {
        nav_scene measures = {.z_end = st->layout.z_end, .y_low = st->layout.y_low, .y_high = st->layout.y_high};
        nav_step(&st->nav, &measures, (double)(st->model.now_ns - SESSION_BEGIN_NS), true, INFINITY, WIDTH, HEIGHT);
        st->in = (scene_input){.model = &st->model, .history = st->model.history, .camera = &st->nav.camera, .pose = &st->nav.pose,
                               .layout = &st->layout, .base_ns = SESSION_BEGIN_NS, .begin_ns = SESSION_BEGIN_NS, .scale = 1, .focus = &st->focus, .tint = st->tint};
        layout_desc desc = {.flame = st->nav.flame, .threads = st->nav.threads, .row_px = 15, .lane_px = 26, .stretch = 1,
                            .units_per_px = nav_units_per_px(WIDTH, 1), .free_height_px = 600, .time_s = INFINITY};
        scene_range(&st->in, &desc.begin_ns, &desc.end_ns);
        layout_update(&st->layout, st->model.catalog, &desc);
        st->scene.budget = 40000;
        scene_build(&st->scene, &st->in);
    }
}

static void stage_new(stage *st, session *s)
{
    *st = (stage){.session = s, .model = session_model(s)};
    nav_init(&st->nav, VIEW_CAMERA_FLAME, 1);
    find_init(&st->find);
    st->focus = (focus){.hovered = FOCUS_NOTHING, .selected = FOCUS_NOTHING, .find = &st->find};
    stage_build(st);
}

static void stage_delete(stage *st)
{
    find_free(&st->find);
    focus_free(&st->focus);
    scene_free(&st->scene);
    layout_free(&st->layout);
    session_delete(st->session);
}

/* run [0, 100) over a [10, 30), b [40, 90), b over a [50, 60); then, open since 110, hold over nap since 115. */
static uint32_t run, a, b, hold, nap;
static void make_small(session *s)
{
    session_new(s);
    session_process(s, 7, "ruby small.rb");
    run = session_method(s, "Foo#run", EV_METHOD_RUBY);
    a = session_method(s, "Foo#a", EV_METHOD_RUBY);
    b = session_method(s, "Foo#b", EV_METHOD_RUBY);
    hold = session_method(s, "Foo#wait", EV_METHOD_RUBY);
    nap = session_method(s, "Kernel#nap", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_call(s, run);
    session_leaf(s, a, 10, 30);
    session_at(s, 40);
    session_call(s, b);
    session_leaf(s, a, 50, 60);
    session_at(s, 90);
    session_return(s);
    session_at(s, 100);
    session_return(s);
    session_at(s, 110);
    session_call(s, hold);
    session_at(s, 190);
    session_call(s, nap);
    session_at(s, 200);
    session_event(s, EV_CUT, 0, session_position(s, 60));
}

static uint64_t self_ns(const hot *h, uint32_t method)
{
    for (uint32_t i = 0; i < h->method_count; i++)
        if (h->methods[i].method.number == method)
            return h->methods[i].self_ns;
    return 0;
}

static uint64_t self_ms(const hot *h, uint32_t method) { return (self_ns(h, method) + 500000) / 1000000; }

TEST(the_hottest_methods_are_those_with_most_time_of_their_own)
{
    session s;
    stage st;
    static hot h;
    make_small(&s);
    stage_new(&st, &s);
    h = (hot){0};
    CHECK(hot_update(&h, &st.scene, &st.in, 0.1));
    CHECK(!hot_update(&h, &st.scene, &st.in, 0.1)); /* four times a second */
    CHECK_EQ(h.method_count, 5);
    CHECK_EQ(self_ms(&h, run), 30);
    CHECK_EQ(self_ms(&h, a), 30);
    CHECK_EQ(self_ms(&h, b), 40);
    CHECK_EQ(self_ms(&h, hold), 80);
    CHECK_EQ(self_ms(&h, nap), 10);
    CHECK_EQ(h.methods[0].method.number, hold);
    CHECK_EQ(h.methods[4].method.number, nap);
    hot_free(&h);
    stage_delete(&st);
}

TEST(only_what_is_in_sight_is_hot)
{
    session s;
    stage st;
    static hot h;
    make_small(&s);
    stage_new(&st, &s);
    nav_show(&st.nav, 45e6, 55e6, true);
    stage_build(&st);
    h = (hot){0};
    hot_update(&h, &st.scene, &st.in, 1);
    uint64_t in_sight = self_ms(&h, b);
    CHECK(in_sight >= 5 && in_sight <= 6); /* the picture is a little wider than what it was asked to show */
    CHECK_EQ(self_ns(&h, hold), 0);
    hot_free(&h);
    stage_delete(&st);
}

/* ---- self times of a program at random, beside the sums that are kept as it runs ------------------------------------ */

enum { METHODS = 9, FIBERS = 12, DEPTH_MAX = 60 };

typedef struct chance { /* the program, and what each method's self time is between from and to */
    session session;
    uint64_t seed, at_ns, from_ns, to_ns, self_ns[METHODS + 1], calls;
    uint32_t stacks[FIBERS + 1][DEPTH_MAX], depths[FIBERS + 1], threads[FIBERS + 1];
    uint32_t left_out; /* a thread that does not count */
} chance;

/* Each fiber's time goes to its innermost call, also where it waits. */
static void chance_wait(chance *c, uint64_t ns)
{
    uint64_t begin = c->at_ns > c->from_ns ? c->at_ns : c->from_ns, end = c->at_ns + ns < c->to_ns ? c->at_ns + ns : c->to_ns;
    for (uint32_t f = 1; f <= FIBERS && end > begin; f++)
        if (c->depths[f] > 0 && c->threads[f] != c->left_out)
            c->self_ns[c->stacks[f][c->depths[f] - 1]] += end - begin;
    c->at_ns += ns;
    c->session.now_ns = c->at_ns;
}

static void chance_call(chance *c, uint32_t fiber, uint32_t method)
{
    session_call(&c->session, method);
    c->stacks[fiber][c->depths[fiber]++] = method;
    c->calls++;
}

/* A turn of a fiber: on its way up or down, or in a dense burst of two methods that take turns. */
static void chance_turn(chance *c)
{
    uint32_t fiber = (uint32_t)test_random_below(&c->seed, FIBERS) + 1;
    session_switch(&c->session, fiber, c->threads[fiber]);
    for (uint64_t steps = test_random_below(&c->seed, 30); steps-- > 0;) {
        chance_wait(c, test_random_below(&c->seed, 3000));
        bool goes_up = c->depths[fiber] == 0 || (c->depths[fiber] < DEPTH_MAX - 1 && test_random_below(&c->seed, 100) < 52);
        if (goes_up) {
            chance_call(c, fiber, (uint32_t)test_random_below(&c->seed, METHODS - 2) + 1);
        } else {
            session_return(&c->session);
            c->depths[fiber]--;
        }
    }
    for (uint64_t leaves = test_random_below(&c->seed, 4) == 0 ? test_random_below(&c->seed, 300) : 0; leaves-- > 0;) {
        chance_call(c, fiber, leaves % 2 ? METHODS - 1 : METHODS);
        chance_wait(c, leaves % 2 ? 30 : 20);
        session_return(&c->session);
        c->depths[fiber]--;
        chance_wait(c, 10);
    }
}

/* FIBERS fibers, two a thread, take turns; from and to are shares of the time that it takes. */
static void chance_run(chance *c, uint64_t seed, uint32_t turns, uint64_t turn_ns, double from, double to, uint32_t left_out)
{
    *c = (chance){.seed = seed, .at_ns = SESSION_BEGIN_NS, .left_out = left_out};
    c->from_ns = SESSION_BEGIN_NS + (uint64_t)(from * (double)(turns * turn_ns));
    c->to_ns = SESSION_BEGIN_NS + (uint64_t)(to * (double)(turns * turn_ns));
    session_new(&c->session);
    session_process(&c->session, 7, "ruby chance.rb");
    for (int i = 0; i < METHODS; i++)
        session_method(&c->session, (const char *[]){"A#a", "A#b", "A#c", "A#d", "A#e", "A#f", "A#g", "B#odd", "B#even"}[i], EV_METHOD_RUBY);
    for (uint32_t f = 1; f <= FIBERS; f++) {
        c->threads[f] = (f + 1) / 2;
        if (f % 2)
            session_thread(&c->session, c->threads[f], f == 1 ? "" : "worker", f == 1);
    }
    for (uint32_t i = 0; i < turns; i++) {
        uint64_t end_ns = SESSION_BEGIN_NS + (i + 1) * turn_ns;
        chance_turn(c);
        if (c->at_ns < end_ns)
            chance_wait(c, end_ns - c->at_ns);
        if (i % 64 == 0)
            session_run(&c->session);
    }
}

/* Frame by frame until nothing is to be told anew; how many frames. */
static uint32_t tell(hot *h, stage *st)
{
    uint32_t frames = 0;
    *h = (hot){0};
    do {
        hot_update(h, &st->scene, &st->in, 0.02);
        frames++;
    } while (hot_is_behind(h) && frames < 10000);
    return frames;
}

/* The stage shows the program's from and to; nothing is drawn of it. */
static void chance_stage(chance *c, stage *st)
{
    stage_new(st, &c->session);
    st->scene.begin_ns = c->from_ns;
    st->scene.end_ns = c->to_ns;
    st->scene.refs.count = 0;
}

static void check_self_times(const hot *h, const chance *c)
{
    for (uint32_t m = 1; m <= METHODS; m++)
        CHECK_EQ(self_ns(h, m), c->self_ns[m]);
}

TEST(self_times_are_those_of_every_call_whatever_is_drawn_of_it)
{
    static chance c;
    static hot h;
    stage st;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint32_t left_out = seed % 3 == 0 ? 1 : 0; /* the main thread */
        chance_run(&c, seed, 600, 60000, seed % 2 ? 0 : 0.31, seed % 2 ? 1 : 0.64, left_out);
        chance_stage(&c, &st);
        find_set(&st.find, left_out ? "thread:worker" : "");
        tell(&h, &st);
        CHECK(h.is_exact);
        CHECK_EQ(h.sight_ns, c.to_ns - c.from_ns);
        check_self_times(&h, &c);
        for (uint32_t i = 1; i < h.method_count; i++)
            CHECK(h.methods[i - 1].self_ns >= h.methods[i].self_ns);
        hot_free(&h);
        stage_delete(&st);
    }
}

TEST(of_too_many_calls_a_part_tells_each_methods_share_and_it_is_said)
{
    static chance c;
    static hot h;
    stage st;
    chance_run(&c, 5, 9000, 60000, 0, 1, 0);
    chance_stage(&c, &st);
    CHECK(c.calls > 2 * HOT_EXACT_MAX && c.calls < HOT_EXACT_MAX_STILL);
    h = (hot){0};
    while (!h.is_filled)
        hot_update(&h, &st.scene, &st.in, 0.02);
    CHECK(!h.is_exact && hot_is_behind(&h));
    double all = 0, wrong = 0;
    for (uint32_t m = 1; m <= METHODS; m++) {
        all += (double)c.self_ns[m];
        wrong += fabs((double)self_ns(&h, m) - (double)c.self_ns[m]);
    }
    CHECK(wrong < 0.2 * all);
    double odd = (double)self_ns(&h, METHODS - 1), even = (double)self_ns(&h, METHODS); /* they take turns, 30 ns and 20 */
    CHECK(odd > 1.2 * even && odd < 1.9 * even);
    hot_free(&h);
    tell(&h, &st); /* the film stands still: by and by all calls are read */
    CHECK(h.is_exact);
    check_self_times(&h, &c);
    hot_free(&h);
    stage_delete(&st);
}

TEST(of_a_film_that_moves_each_list_is_of_one_stretch_of_time)
{
    static chance c;
    static hot h;
    stage st;
    chance_run(&c, 9, 1500, 60000, 0.2, 0.9, 0);
    chance_stage(&c, &st);
    CHECK(c.calls > 3 * SELFTIME_STEP);
    h = (hot){0};
    uint32_t lists = 0;
    for (int frame = 0; frame < 200; frame++) {
        hot_update(&h, &st.scene, &st.in, 0.02);
        if (h.is_filled && lists == 0) { /* of where the film was when it was begun with */
            check_self_times(&h, &c);
            lists++;
        }
        st.scene.begin_ns += 10000;
        st.scene.end_ns += 10000;
    }
    CHECK_EQ(lists, 1);
    CHECK(h.selftime.begin_ns > c.from_ns + 1500000);
    CHECK(hot_is_behind(&h));
    hot_free(&h);
    stage_delete(&st);
}

TEST(of_calls_that_memory_has_let_go_self_times_are_near_the_truth_and_it_is_said)
{
    enum { COUNT = 400000 };
    session s;
    stage st;
    static hot h;
    history *small;
    make_small(&s);
    stage_new(&st, &s);
    CHECK_EQ(history_new(&small, HISTORY_BUDGET_MIN), 0);
    uint32_t track = catalog_fiber_at(s.catalog, 0)->track;
    for (uint64_t i = 0; i < COUNT; i++) { /* run, for 80 of 100 ns over a */
        uint64_t at_ns = SESSION_BEGIN_NS + i * 100;
        sim_span spans[2] = {{.begin_ns = at_ns, .end_ns = at_ns + 90, .value = run}, {.begin_ns = at_ns + 5, .end_ns = at_ns + 85, .value = a, .depth = 1}};
        CHECK_EQ(history_append(small, track, spans, 2), 0);
    }
    CHECK(history_stats_of(small).evicted_end_ns > SESSION_BEGIN_NS);
    st.in.history = small;
    st.scene.begin_ns = SESSION_BEGIN_NS;
    st.scene.end_ns = SESSION_BEGIN_NS + COUNT * 100;
    tell(&h, &st);
    CHECK(!h.is_exact);
    CHECK_EQ(h.methods[0].method.number, a);
    CHECK(self_ns(&h, a) > COUNT * 75 && self_ns(&h, a) < COUNT * 85);
    CHECK(self_ns(&h, run) > COUNT * 8 && self_ns(&h, run) < COUNT * 12);
    hot_free(&h);
    history_delete(small);
    stage_delete(&st);
}

TEST(of_open_calls_those_are_told_that_began_apart)
{
    session s;
    stage st;
    static hot h;
    make_small(&s);
    stage_new(&st, &s);
    h = (hot){0};
    hot_update(&h, &st.scene, &st.in, 1);
    CHECK_EQ(h.open_count, 2);
    CHECK_EQ(h.open[0].method.number, hold); /* longest first */
    CHECK_EQ(h.open[1].method.number, nap);
    CHECK(h.open[0].is_first && !h.open[1].is_first);
    CHECK_EQ(h.open[0].begin_ns, SESSION_BEGIN_NS + 110000000);
    hot_free(&h);
    stage_delete(&st);
}

TEST(of_a_deep_stack_the_longest_open_calls_are_told_and_never_more_than_a_few)
{
    session s;
    stage st;
    static hot h;
    session_new(&s);
    session_process(&s, 7, "ruby deep.rb");
    uint32_t methods[30];
    for (int i = 0; i < 30; i++)
        methods[i] = session_method(&s, i == 0 ? "Foo#first" : i == 1 ? "Foo#second" : "Foo#other", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    for (int i = 0; i < 30; i++) {
        session_at(&s, 1000.0 - 1000.0 / (1 << (i < 20 ? i : 20))); /* each half as long as the one below */
        session_call(&s, methods[i]);
    }
    session_at(&s, 1000);
    session_event(&s, EV_CUT, 0, session_position(&s, 60));
    stage_new(&st, &s);
    h = (hot){0};
    hot_update(&h, &st.scene, &st.in, 1);
    CHECK_EQ(h.open_count, HOT_OPEN_A_THREAD);
    CHECK_EQ(h.open[0].method.number, methods[0]);
    CHECK_EQ(h.open[1].method.number, methods[1]);
    hot_free(&h);
    stage_delete(&st);
}

static bool is_method(void *context, const calls_call *call) { return call->method == *(uint32_t *)context; }

TEST(from_call_to_call_forwards_and_backwards)
{
    session s;
    stage st;
    calls_call call;
    make_small(&s);
    stage_new(&st, &s);
    calls_query q = {.model = &st.model, .history = st.model.history, .begin_ns = SESSION_BEGIN_NS, .end_ns = st.model.now_ns,
                     .match = is_method, .context = &a};
    CHECK(calls_after(&q, SESSION_BEGIN_NS, &call));
    CHECK_EQ(call.begin_ns, SESSION_BEGIN_NS + 10000000);
    CHECK(calls_after(&q, call.begin_ns, &call));
    CHECK_EQ(call.begin_ns, SESSION_BEGIN_NS + 50000000);
    CHECK_EQ(call.depth, 2);
    CHECK(!calls_after(&q, call.begin_ns, &call));
    CHECK(calls_before(&q, st.model.now_ns, &call));
    CHECK_EQ(call.begin_ns, SESSION_BEGIN_NS + 50000000);
    CHECK(calls_before(&q, call.begin_ns, &call));
    CHECK_EQ(call.begin_ns, SESSION_BEGIN_NS + 10000000);
    CHECK(!calls_before(&q, call.begin_ns, &call));
    q.context = &nap; /* open */
    CHECK(calls_after(&q, SESSION_BEGIN_NS, &call));
    CHECK(call.is_open);
    CHECK_EQ(call.end_ns, st.model.now_ns);
    stage_delete(&st);
}

TEST(the_panel_knows_who_called_the_method_and_whom_it_called)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    make_small(&s);
    stage_new(&st, &s);
    details_update(&d, (focus_method){0, a}, &st.scene, &st.in, 1);
    CHECK_EQ(d.sight.calls, 2);
    CHECK_EQ(d.sight.ns, 30000000);
    CHECK_EQ(d.caller_count, 2);
    CHECK_EQ(d.callers[0].method.number, run);
    CHECK_EQ(d.callers[0].total_ns, 20000000);
    CHECK_EQ(d.callers[1].method.number, b);
    CHECK_EQ(d.callee_count, 0);
    details_update(&d, (focus_method){0, run}, &st.scene, &st.in, 0);
    CHECK_EQ(d.caller_count, 1);
    CHECK_EQ(d.callers[0].method.process, CATALOG_NONE);
    CHECK_EQ(d.callee_count, 2);
    CHECK_EQ(d.callees[0].method.number, b);
    CHECK_EQ(d.callees[0].calls, 1);
    details_update(&d, (focus_method){0, hold}, &st.scene, &st.in, 0);
    CHECK_EQ(d.callee_count, 1); /* open, too */
    CHECK_EQ(d.callees[0].method.number, nap);
    details_update(&d, (focus_method){0, nap}, &st.scene, &st.in, 0);
    CHECK_EQ(d.open.calls, 1);
    CHECK_EQ(d.open.ns, 10000000);
    CHECK_EQ(d.callers[0].method.number, hold); /* open itself */
    CHECK_EQ(d.callee_count, 0);
    char basis[64];
    details_basis_of_callers(&d, basis, sizeof basis);
    CHECK_STR(basis, "of 1 call in sight");
    stage_delete(&st);
}

static const details_arc *callee_of(const details *d, uint32_t method)
{
    for (uint32_t i = 0; i < d->callee_count; i++)
        if (d->callees[i].method.number == method)
            return &d->callees[i];
    CHECK(false);
    return NULL;
}

static void select_call(stage *st, uint32_t method, uint32_t depth, uint64_t begin_ms, uint64_t end_ms)
{
    st->focus.selected = (focus_method){0, method};
    st->focus.call = (focus_call){.begin_ns = SESSION_BEGIN_NS + begin_ms * 1000000, .end_ns = SESSION_BEGIN_NS + end_ms * 1000000,
                                  .track = catalog_fiber_at(st->model.catalog, 0)->track, .depth = depth, .is_set = true};
    stage_build(st);
}

/* A box that is no call's, in the colour of what is selected, over all or part of [begin, end). */
static uint32_t accents(const stage *st, double begin_ms, double end_ms, float *highest)
{
    uint32_t count = 0;
    for (size_t i = st->scene.refs.count; i < st->scene.boxes.count; i++) {
        const gpu_box *box = &st->scene.boxes.items[i];
        float x[2] = {scene_x(&st->in, SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6)), scene_x(&st->in, SESSION_BEGIN_NS + (uint64_t)(end_ms * 1e6))};
        if (box->color != PALETTE_ACCENT)
            continue;
        CHECK(box->low[0] > x[0] - 0.2f && box->high[0] < x[1] + 0.2f);
        *highest = box->low[1];
        count++;
    }
    return count;
}

TEST(a_selected_call_is_seen_where_what_it_called_lies_over_it_and_where_it_is_folded)
{
    session s;
    stage st;
    float highest = 0;
    make_small(&s);
    stage_new(&st, &s);
    select_call(&st, a, 1, 10, 30);
    CHECK_EQ(accents(&st, 10, 30, &highest), 0); /* its own box is lit */
    st.scene.coarseness = 1e6f; /* all is folded into a box or two a row */
    scene_build(&st.scene, &st.in);
    CHECK_EQ(accents(&st, 10, 30, &highest), 1);
    nav_init(&st.nav, VIEW_CAMERA_THREADS, 1);
    st.scene.coarseness = 1;
    select_call(&st, run, 0, 0, 100);
    CHECK_EQ(accents(&st, 0, 100, &highest), 4); /* a frame, above all calls */
    for (size_t i = 0; i < st.scene.refs.count; i++)
        CHECK(!view_box_is_call(&st.scene.refs.items[i]) || st.scene.boxes.items[i].high[1] <= highest);
    st.focus.call.is_set = false;
    stage_build(&st);
    CHECK_EQ(accents(&st, 0, 100, &highest), 0);
    stage_delete(&st);
}

TEST(who_called_the_selected_call_is_known_whatever_is_drawn)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    char basis[64];
    make_small(&s);
    stage_new(&st, &s);
    st.scene.refs.count = 0;
    details_update(&d, (focus_method){0, b}, &st.scene, &st.in, 1);
    CHECK_EQ(d.caller_count, 0);
    select_call(&st, b, 1, 40, 90);
    st.scene.refs.count = 0;
    details_update(&d, (focus_method){0, b}, &st.scene, &st.in, 0.01); /* at once */
    CHECK_EQ(d.caller_count, 1);
    CHECK_EQ(d.callers[0].method.number, run);
    CHECK_EQ(d.callees[0].method.number, a);
    details_basis_of_callers(&d, basis, sizeof basis);
    CHECK_STR(basis, "of 1 call in sight");
    stage_build(&st); /* with its box it counts once */
    details_update(&d, (focus_method){0, b}, &st.scene, &st.in, 1);
    CHECK_EQ(d.callers[0].calls, 1);
    stage_delete(&st);
}

TEST(callees_are_counted_one_by_one_however_short_they_are)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    char basis[64];
    session_new(&s);
    session_process(&s, 7, "ruby short.rb");
    uint32_t go = session_method(&s, "Ctr#go", EV_METHOD_RUBY), x = session_method(&s, "Ctr#x", EV_METHOD_RUBY);
    uint32_t y = session_method(&s, "Ctr#y", EV_METHOD_RUBY), sleep = session_method(&s, "Kernel#sleep", EV_METHOD_C);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    for (int i = 0; i < 100; i++) {
        session_at(&s, i * 20);
        session_call(&s, go);
        session_leaf(&s, x, i * 20 + 0.001, i * 20 + 0.0012);
        session_leaf(&s, y, i * 20 + 0.002, i * 20 + 0.003);
        session_leaf(&s, y, i * 20 + 0.003, i * 20 + 0.003); /* of no length */
        session_leaf(&s, sleep, i * 20 + 0.004, i * 20 + 19);
        session_return(&s);
    }
    stage_new(&st, &s);
    details_update(&d, (focus_method){0, go}, &st.scene, &st.in, 1);
    CHECK_EQ(d.callee_calls, 100);
    CHECK_EQ(d.callee_count, 3);
    CHECK_EQ(callee_of(&d, x)->calls, 100);
    CHECK(callee_of(&d, x)->total_ns > 19900 && callee_of(&d, x)->total_ns < 20100);
    CHECK_EQ(callee_of(&d, y)->calls, 200);
    CHECK_EQ(callee_of(&d, sleep)->calls, 100);
    details_basis_of_callees(&d, basis, sizeof basis);
    CHECK_STR(basis, "of 100 calls in sight");
    stage_delete(&st);
}

TEST(of_too_many_callees_the_first_are_counted_and_it_is_said)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    char basis[64];
    session_new(&s);
    session_process(&s, 7, "ruby long.rb");
    uint32_t go = session_method(&s, "Ctr#go", EV_METHOD_RUBY), x = session_method(&s, "Ctr#x", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    session_call(&s, go);
    for (int i = 0; i < 30000; i++)
        session_leaf(&s, x, i * 0.001, i * 0.001 + 0.0005);
    session_return(&s);
    stage_new(&st, &s);
    details_update(&d, (focus_method){0, go}, &st.scene, &st.in, 1);
    CHECK(d.is_cut);
    CHECK(d.span_count >= DETAILS_SPANS && d.span_count < DETAILS_SPANS + 1000);
    CHECK_EQ(callee_of(&d, x)->calls, d.span_count);
    details_basis_of_callees(&d, basis, sizeof basis);
    CHECK_STR(basis, "the first 20.1 k, of 1 call");
    stage_delete(&st);
}

TEST(a_rows_calls_come_page_by_page_none_lost_and_none_twice)
{
    session s;
    session_new(&s);
    session_process(&s, 7, "ruby pages.rb");
    uint32_t leaf = session_method(&s, "Foo#leaf", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    for (int i = 0; i < 1000; i++) /* some of no length, at one time */
        session_leaf(&s, leaf, i / 3 * 2 + 1, i / 3 * 2 + 1 + (i % 3 == 2));
    view_model model = session_model(&s);
    for (size_t max = 4; max < 40; max++) {
        history_node nodes[40];
        calls_pages pages = {.history = model.history, .track = catalog_fiber_at(s.catalog, 0)->track, .at_ns = SESSION_BEGIN_NS, .end_ns = UINT64_MAX};
        size_t total = 0, count;
        uint64_t end_ns = 0;
        while ((count = calls_page(&pages, nodes, max)) > 0) {
            CHECK(nodes[0].begin_ns >= end_ns);
            end_ns = nodes[count - 1].end_ns;
            total += count;
        }
        CHECK_EQ(total, 1000);
        CHECK(!pages.has_lost);
    }
    session_delete(&s);
}

TEST(the_panel_says_of_how_many_calls_it_knows_the_callers)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    char basis[64];
    session_new(&s);
    session_process(&s, 7, "ruby many.rb");
    uint32_t leaf = session_method(&s, "Foo#leaf", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    for (int i = 0; i < 300; i++)
        session_leaf(&s, leaf, i * 10, i * 10 + 9);
    for (int i = 0; i < 900; i++) /* folded */
        session_leaf(&s, leaf, 3000 + i * 0.01, 3000.005 + i * 0.01);
    stage_new(&st, &s);
    details_update(&d, (focus_method){0, leaf}, &st.scene, &st.in, 1);
    CHECK_EQ(d.sight.calls, 1200);
    CHECK_EQ(d.call_count, DETAILS_CALLS);
    details_basis_of_callers(&d, basis, sizeof basis);
    CHECK_STR(basis, "of 200 among 1.20 k in sight");
    stage_delete(&st);
}

/* A cook, in main: 40 batches of 100 ms, in each 1000 folds of 50 us and 1000 stirs of 2 us, 30 rows up. Two more stirs in Chen. */
static uint32_t work, fold, stir;
static void make_kitchen(session *s)
{
    session_new(s);
    session_process(s, 7, "ruby kitchen.rb");
    work = session_method(s, "Cook#work", EV_METHOD_RUBY);
    fold = session_method(s, "Cook#fold", EV_METHOD_RUBY);
    stir = session_method(s, "Cook#stir", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_thread(s, 2, "Chen", false);
    session_switch(s, 1, 1);
    for (int batch = 0; batch < 40; batch++) {
        session_at(s, batch * 100);
        for (int i = 0; i < 30; i++)
            session_call(s, work);
        for (int i = 0; i < 1000; i++) {
            session_leaf(s, fold, batch * 100 + i * 0.09, batch * 100 + i * 0.09 + 0.05);
            session_leaf(s, stir, batch * 100 + i * 0.09 + 0.06, batch * 100 + i * 0.09 + 0.062);
        }
        session_at(s, batch * 100 + 95);
        for (int i = 0; i < 30; i++)
            session_return(s);
    }
    session_at(s, 4000);
    session_switch(s, 2, 2);
    session_leaf(s, stir, 4001, 4002);
    session_leaf(s, stir, 4003, 4010);
}

/* What the panel says of a method, when all is counted. */
static details details_of(const stage *st, uint32_t method)
{
    details d = {.method = FOCUS_NOTHING};
    details_update(&d, (focus_method){0, method}, &st->scene, &st->in, 1);
    for (int frame = 0; frame < 100 && d.tally.is_running; frame++)
        details_update(&d, (focus_method){0, method}, &st->scene, &st->in, 0.016);
    return d;
}

TEST(calls_in_sight_are_those_of_the_time_in_sight_folded_or_off_the_screen)
{
    session s;
    stage st;
    make_kitchen(&s);
    stage_new(&st, &s);
    for (int is_all = 1; is_all >= 0; is_all--) {
        if (!is_all)
            nav_show(&st.nav, 1010e6, 1980e6, true);
        stage_build(&st);
        for (int counts = 0; counts < 2; counts++) { /* with and without figures.h */
            st.model.figures = counts ? NULL : s.figures;
            details d = details_of(&st, fold);
            CHECK(d.sight.is_exact);
            CHECK(is_all ? d.sight.calls == 40000 : d.sight.calls > 9000 && d.sight.calls < 11000);
            details e = details_of(&st, stir);
            CHECK(e.sight.is_exact);
            CHECK_EQ(e.sight.calls, is_all ? 40002 : d.sight.calls);
        }
    }
    stage_delete(&st);
}

/* Two calls of wait have ended; one is open since 500, in another thread one since 600 over an ended and an open inner. A frame of
 * it was open when tracing began, and ended. */
TEST(the_figures_of_a_method_with_open_calls_agree)
{
    session s;
    stage st;
    char basis[64];
    session_new(&s);
    session_process(&s, 7, "ruby waits.rb");
    uint32_t wait = session_method(&s, "Foo#wait", EV_METHOD_RUBY), inner = session_method(&s, "Foo#inner", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    session_at(&s, 1);
    session_event(&s, EV_FRAME, wait, session_position(&s, s.depths[1]++));
    session_at(&s, 90);
    session_return(&s);
    session_leaf(&s, wait, 100, 200);
    session_leaf(&s, wait, 300, 400);
    session_at(&s, 500);
    session_call(&s, wait);
    session_thread(&s, 2, "other", false);
    session_at(&s, 600);
    session_switch(&s, 2, 2);
    session_call(&s, wait);
    session_leaf(&s, inner, 610, 650);
    session_at(&s, 700);
    session_call(&s, inner);
    session_at(&s, 1000);
    session_switch(&s, 1, 1);
    stage_new(&st, &s);
    details d = details_of(&st, wait);
    CHECK(d.open.calls == 2 && d.open.begun == 2 && d.open.is_self_known);
    CHECK_EQ(d.open.ns, 900000000);
    CHECK_EQ(d.open.self_ns, 500000000 + 60000000);
    CHECK(d.all.calls == 2 && d.sight.calls == 4 && d.sight.is_exact);
    CHECK_EQ(d.begun_count, 4);
    details_basis_of_callers(&d, basis, sizeof basis);
    CHECK_STR(basis, "of 4 calls in sight");
    CHECK(d.caller_count == 1 && d.callers[0].calls == 4);
    CHECK(d.callee_count == 1 && d.callees[0].calls == 2);
    stage_delete(&st);
}

/* 40 windows of a second, each a little later than the one before: the film flows. */
TEST(a_count_comes_to_its_end_while_the_film_flows)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    make_kitchen(&s);
    stage_new(&st, &s);
    st.model.figures = NULL;
    bool is_counted = false;
    for (int i = 0; i < 40 && !is_counted; i++) {
        nav_show(&st.nav, 500e6 + i * 20e6, 2500e6 + i * 20e6, true);
        stage_build(&st);
        details_update(&d, (focus_method){0, fold}, &st.scene, &st.in, 0.3);
        is_counted = d.sight.is_exact;
    }
    CHECK(is_counted && d.sight.calls > 15000);
    tally_free(&d.tally);
    stage_delete(&st);
}

static void check_found(inspect *i, const stage *st, const char *text, const char *said)
{
    char line[96];
    find_set(&i->find, text);
    inspect_begin(i, &st->model);
    inspect_count(i, &st->scene, &st->in, 0.016);
    for (int frame = 0; frame < 100 && i->tally.is_running; frame++)
        inspect_count(i, &st->scene, &st->in, 0.016);
    inspect_found(i, line, sizeof line);
    CHECK_STR(line, said);
}

TEST(what_is_found_is_counted_by_all_that_is_asked_for)
{
    session s;
    stage st;
    inspect *i = calloc(1, sizeof *i);
    CHECK(i);
    make_kitchen(&s);
    stage_new(&st, &s);
    inspect_init(i, 1);
    check_found(i, &st, "cook", "3 methods, 81.2 k calls in sight");
    check_found(i, &st, "/^Cook#(work|stir)$/", "2 methods, 41.2 k calls in sight");
    check_found(i, &st, "thread:Chen", "1 method, 2 calls in sight");
    check_found(i, &st, "thread:Chen fold", "0 methods, 0 calls in sight");
    check_found(i, &st, "process:99", "0 methods, 0 calls in sight");
    check_found(i, &st, "process:7 stir", "1 method, 40.0 k calls in sight");
    check_found(i, &st, "dur>1ms", "2 methods, 1.20 k calls in sight");
    check_found(i, &st, "dur>5ms thread:2", "1 method, 1 call in sight");
    check_found(i, &st, "dur<10us", "1 method, 40.0 k calls in sight");
    nav_show(&st.nav, 4000.5e6, 4002.5e6, true);
    stage_build(&st);
    check_found(i, &st, "stir", "1 method, 1 call in sight");
    inspect_free(i);
    free(i);
    stage_delete(&st);
}

static bool is_any(void *context, const calls_call *call) { return context == NULL && call->method > 0; }

TEST(until_all_is_counted_it_is_a_least_number)
{
    session s;
    make_kitchen(&s);
    view_model model = session_model(&s);
    tally t = {0};
    tally_query q = {.model = &model, .history = s.history, .begin_ns = SESSION_BEGIN_NS, .end_ns = model.now_ns, .match = is_any, .wants_methods = true};
    uint64_t before = 0;
    int frames = 0;
    tally_begin(&t, &q, true);
    for (tally_go_on(&t, &q); t.is_running; tally_go_on(&t, &q), frames++) {
        CHECK(!t.shown.is_exact && t.shown.calls > before && t.shown.calls < 81202);
        before = t.shown.calls;
    }
    CHECK(frames >= 2);
    CHECK(t.shown.is_exact);
    CHECK_EQ(t.shown.calls, 81202);
    CHECK_EQ(t.shown.methods, 3);
    tally_begin(&t, &q, false); /* nothing is new */
    CHECK(!t.is_running && !tally_is_behind(&t, q.begin_ns, q.end_ns));
    q.end_ns -= 1000000000;
    CHECK(tally_is_behind(&t, q.begin_ns, q.end_ns));
    tally_begin(&t, &q, false);
    tally_go_on(&t, &q);
    CHECK(t.is_running);
    CHECK_EQ(t.shown.calls, 81202); /* the last that is known, until there is another */
    tally_free(&t);
    session_delete(&s);
}

TEST(what_memory_has_let_go_makes_it_a_least_number)
{
    enum { COUNT = 400000 };
    session s;
    history *small;
    make_kitchen(&s);
    view_model model = session_model(&s);
    CHECK_EQ(history_new(&small, HISTORY_BUDGET_MIN), 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        sim_span span = {.begin_ns = SESSION_BEGIN_NS + i * 10, .end_ns = SESSION_BEGIN_NS + i * 10 + 5, .value = fold};
        CHECK_EQ(history_append(small, catalog_fiber_at(s.catalog, 0)->track, &span, 1), 0);
    }
    tally t = {0};
    tally_query q = {.model = &model, .history = small, .begin_ns = SESSION_BEGIN_NS, .end_ns = model.now_ns, .match = is_any};
    tally_begin(&t, &q, true);
    while (t.is_running)
        tally_go_on(&t, &q);
    CHECK(!t.shown.is_exact);
    CHECK(t.shown.calls > 0 && t.shown.calls < COUNT);
    q.begin_ns = SESSION_BEGIN_NS + (COUNT - 1000) * 10 + 7; /* of late all are known */
    tally_begin(&t, &q, false);
    while (t.is_running)
        tally_go_on(&t, &q);
    CHECK(t.shown.is_exact);
    CHECK_EQ(t.shown.calls, 999);
    history_delete(small);
    session_delete(&s);
}

static const view_box_ref *ref_of(const stage *st, uint32_t method, double begin_ms)
{
    for (size_t i = 0; i < st->scene.refs.count; i++)
        if (st->scene.refs.items[i].value == method && st->scene.refs.items[i].begin_ns == SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6) &&
            st->scene.refs.items[i].kind != VIEW_BOX_GVL)
            return &st->scene.refs.items[i];
    CHECK(false);
    return NULL;
}

TEST(a_tip_tells_name_length_own_time_start_depth_thread_and_process)
{
    session s;
    stage st;
    details_tip tip;
    char lines[DETAILS_LINES][160];
    make_small(&s);
    stage_new(&st, &s);
    details_tip_of(&tip, &st.in, ref_of(&st, b, 40));
    CHECK(tip.is_self_known);
    CHECK_EQ(tip.self_ns, 40000000);
    CHECK_EQ(details_lines(&tip, &st.in, lines), 3);
    CHECK_STR(lines[0], "Foo#b");
    CHECK_STR(lines[1], "50.0 ms   self 40.0 ms");
    CHECK_STR(lines[2], "at 40.0 ms   depth 1   thread main   pid 7");
    details_tip_of(&tip, &st.in, ref_of(&st, hold, 110));
    CHECK_EQ(tip.self_ns, 80000000); /* what it has called is still open, too */
    details_lines(&tip, &st.in, lines);
    CHECK_STR(lines[1], "90.0 ms   self 80.0 ms   still running");
    details_tip_of(&tip, &st.in, ref_of(&st, nap, 190));
    details_lines(&tip, &st.in, lines);
    CHECK_STR(lines[1], "in C");
    stage_delete(&st);
}

TEST(a_call_that_had_not_ended_with_its_program_is_neither_said_nor_painted_to_be_unwound)
{
    session s;
    stage st;
    details_tip tip;
    char lines[DETAILS_LINES][160];
    make_small(&s);
    session_return(&s); /* nap; hold stays */
    uint32_t thrown = session_method(&s, "Foo#thrown", EV_METHOD_RUBY);
    session_at(&s, 205);
    session_call(&s, thrown);
    session_at(&s, 210);
    session_event(&s, EV_CUT, 0, session_position(&s, 1)); /* a rescue in hold */
    session_run(&s);
    CHECK_EQ(sim_stream_close(s.sim, s.stream), 0);
    stage_new(&st, &s);
    const view_box_ref *ref = ref_of(&st, hold, 110);
    details_tip_of(&tip, &st.in, ref);
    details_lines(&tip, &st.in, lines);
    CHECK(strstr(lines[1], "had not ended") && !strstr(lines[1], "exception"));
    CHECK_EQ(ref->flags, HISTORY_NOT_ENDED);
    CHECK(st.scene.boxes.items[ref - st.scene.refs.items].color == palette_method(catalog_method_of(s.catalog, 0, hold)->hash, EV_METHOD_RUBY, 0));
    details_tip_of(&tip, &st.in, ref_of(&st, thrown, 205));
    details_lines(&tip, &st.in, lines);
    CHECK(strstr(lines[1], "ended by an exception or throw"));
    stage_delete(&st);
}

static uint32_t color_of(const stage *st, uint32_t method, double begin_ms)
{
    return st->scene.boxes.items[ref_of(st, method, begin_ms) - st->scene.refs.items].color;
}

TEST(what_is_selected_or_found_lights_up_and_the_rest_steps_back)
{
    session s;
    stage st;
    make_small(&s);
    stage_new(&st, &s);
    uint32_t plain_a = color_of(&st, a, 10), plain_b = color_of(&st, b, 40), plain_deep = color_of(&st, a, 50);
    st.focus.selected = (focus_method){0, a};
    stage_build(&st);
    CHECK(palette_contrast(color_of(&st, a, 10), PALETTE_BACKGROUND) > palette_contrast(plain_a, PALETTE_BACKGROUND) * 1.2f);
    CHECK(palette_contrast(color_of(&st, a, 50), PALETTE_BACKGROUND) > palette_contrast(plain_a, PALETTE_BACKGROUND) * 1.2f);
    CHECK(palette_contrast(color_of(&st, b, 40), PALETTE_BACKGROUND) < palette_contrast(plain_b, PALETTE_BACKGROUND));
    st.focus.selected = FOCUS_NOTHING;
    find_set(&st.find, "#b");
    stage_build(&st);
    CHECK_EQ(color_of(&st, b, 40), plain_b);
    CHECK(palette_contrast(color_of(&st, a, 10), PALETTE_BACKGROUND) < 0.5f * palette_contrast(plain_a, PALETTE_BACKGROUND));
    find_set(&st.find, "dur>15ms");
    stage_build(&st);
    CHECK_EQ(color_of(&st, a, 10), plain_a);
    CHECK(palette_contrast(color_of(&st, a, 50), PALETTE_BACKGROUND) < 0.5f * palette_contrast(plain_a, PALETTE_BACKGROUND));
    find_set(&st.find, "");
    stage_build(&st);
    CHECK_EQ(color_of(&st, a, 50), plain_deep);
    stage_delete(&st);
}

TEST(methods_of_one_name_have_the_colours_of_the_gems_and_classes_that_they_are_in)
{
    session s;
    stage st;
    session_new(&s);
    session_process(&s, 7, "ruby gems.rb");
    uint32_t rack = session_method_in(&s, "#<Class:0x01>#call", EV_METHOD_RUBY, "/x/gems/rack-3.1.8/lib/a.rb");
    uint32_t puma = session_method_in(&s, "#<Class:0x02>#call", EV_METHOD_RUBY, "/x/gems/puma-6.4.0/lib/a.rb");
    uint32_t one = session_method(&s, "Version1#call", EV_METHOD_RUBY), two = session_method(&s, "Version2#call", EV_METHOD_RUBY);
    session_thread(&s, 1, "", true);
    session_switch(&s, 1, 1);
    session_leaf(&s, rack, 10, 30);
    session_leaf(&s, puma, 40, 60);
    session_leaf(&s, one, 70, 90);
    session_leaf(&s, two, 100, 120);
    stage_new(&st, &s);
    CHECK_EQ(color_of(&st, rack, 10), color_of(&st, puma, 40)); /* digits do not count */
    st.tint = TINT_OWNER;
    stage_build(&st);
    const struct { uint32_t method; double begin_ms; } calls[] = {{rack, 10}, {puma, 40}, {one, 70}, {two, 100}};
    for (size_t i = 0; i < 4; i++) {
        const catalog_method *m = catalog_method_of(s.catalog, 0, calls[i].method);
        CHECK_EQ(color_of(&st, calls[i].method, calls[i].begin_ms), palette_method(tint_hash(TINT_OWNER, m), m->kind, 0));
    }
    CHECK(color_of(&st, rack, 10) != color_of(&st, puma, 40));
    stage_delete(&st);
}

/* ---- by mouse and keyboard, through the view ------------------------------------------------------------------ */

typedef struct hand {
    session session;
    view *view;
    view_status status;
    gpu_frame frame;
} hand;

static void hand_build(hand *h)
{
    view_model model = session_model(&h->session);
    for (int i = 0; i < 3; i++)
        view_build(h->view, &model, &h->status, WIDTH, HEIGHT, 0.5, &h->frame);
}

static void hand_new_of(hand *h, void (*make)(session *))
{
    *h = (hand){.status = {.ended = true, .memory_budget = 1}};
    make(&h->session);
    CHECK_EQ(view_new(&h->view, &(view_desc){.camera = VIEW_CAMERA_FLAME}), 0);
    for (int i = 0; i < 20; i++)
        hand_build(h);
}

static void hand_new(hand *h) { hand_new_of(h, make_small); }

static void hand_delete(hand *h)
{
    view_delete(h->view);
    session_delete(&h->session);
}

static void hand_key(hand *h, view_key key, uint32_t modifiers)
{
    view_input_event e = {.type = VIEW_INPUT_KEY, .key = key, .modifiers = modifiers, .is_down = true};
    view_input(h->view, &e);
    e.is_down = false;
    view_input(h->view, &e);
    hand_build(h);
}

static void hand_type(hand *h, const char *text)
{
    for (; *text; text++) {
        view_input_event e = {.type = VIEW_INPUT_TEXT, .text = {*text}};
        view_input(h->view, &e);
        hand_build(h);
    }
}

/* The middle of a call's front on the screen, found by pointing at all places. */
static bool hand_find(hand *h, uint32_t method, float at[2])
{
    view_box_ref ref;
    view_model model = session_model(&h->session);
    for (float y = 60; y < HEIGHT - 70; y += 6)
        for (float x = 20; x < WIDTH; x += 12) {
            view_input_event move = {.type = VIEW_INPUT_MOVE, .x_px = x, .y_px = y};
            view_input(h->view, &move);
            view_build(h->view, &model, &h->status, WIDTH, HEIGHT, 0, &h->frame);
            if (view_hover(h->view, &ref) && ref.value == method && ref.kind == VIEW_BOX_CALL) {
                at[0] = x + 2;
                at[1] = y + 2;
                return true;
            }
        }
    return false;
}

static void hand_button(hand *h, const float at[2], bool is_down)
{
    view_input_event e = {.type = VIEW_INPUT_BUTTON, .button = VIEW_BUTTON_LEFT, .is_down = is_down, .x_px = at[0], .y_px = at[1]};
    view_input(h->view, &e);
}

static void hand_move(hand *h, const float at[2])
{
    view_input_event move = {.type = VIEW_INPUT_MOVE, .x_px = at[0], .y_px = at[1]};
    view_input(h->view, &move);
}

static void hand_click(hand *h, const float at[2])
{
    hand_move(h, at);
    hand_button(h, at, true);
    hand_button(h, at, false);
    hand_build(h);
}

static const char *hand_copied(hand *h)
{
    static view_request r;
    hand_type(h, "c");
    return view_take_request(h->view, &r) && r.ask == VIEW_ASK_COPY ? r.text : "";
}

TEST(a_click_selects_a_drag_does_not_and_escape_lets_go)
{
    hand h;
    float at[2];
    hand_new(&h);
    CHECK(hand_find(&h, b, at));
    float away[2] = {5, HEIGHT - 100}, near_by[2] = {at[0] + 30, at[1]};
    hand_move(&h, away);
    hand_build(&h);
    CHECK_STR(hand_copied(&h), "");
    hand_move(&h, at);
    hand_build(&h);
    hand_button(&h, at, true);
    hand_move(&h, near_by);
    hand_button(&h, near_by, false);
    hand_build(&h);
    hand_move(&h, away);
    hand_build(&h);
    CHECK_STR(hand_copied(&h), ""); /* it was dragged */
    hand_key(&h, VIEW_KEY_HOME, 0);
    for (int i = 0; i < 10; i++)
        hand_build(&h);
    CHECK(hand_find(&h, b, at));
    hand_click(&h, at);
    hand_move(&h, away);
    hand_build(&h);
    CHECK_STR(hand_copied(&h), "Foo#b");
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK_STR(hand_copied(&h), "");
    CHECK(!view_wants_quit(h.view));
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK(!view_wants_quit(h.view));
    hand_delete(&h);
}

TEST(under_the_list_of_keys_nothing_is_done_and_nothing_waits)
{
    hand h;
    float at[2], away[2] = {5, HEIGHT - 100};
    hand_new(&h);
    CHECK(hand_find(&h, b, at));
    hand_move(&h, away);
    hand_key(&h, VIEW_KEY_ESC, 0);
    view_say(h.view, "something");
    hand_build(&h);
    CHECK(view_is_moving(h.view)); /* the line must go away */
    hand_key(&h, VIEW_KEY_HELP, 0);
    hand_click(&h, at);
    hand_type(&h, "mnc");
    for (int i = 0; i < 20; i++)
        hand_build(&h);
    CHECK(!view_is_moving(h.view));
    hand_move(&h, away);
    hand_key(&h, VIEW_KEY_HELP, 0);
    hand_build(&h);
    view_request r;
    CHECK(!view_take_request(h.view, &r));
    CHECK_STR(hand_copied(&h), ""); /* the click was the list's */
    hand_delete(&h);
}

TEST(the_list_of_keys_is_within_a_window_of_any_size_and_its_lines_do_not_overlap)
{
    static const struct { uint32_t width, height; float scale; } windows[] = {{1280, 720, 1}, {1280, 720, 2}, {3840, 2160, 3}, {500, 300, 1}, {900, 1400, 1.5f}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        session s;
        view *v;
        gpu_frame frame;
        view_status status = {.ended = true, .memory_budget = 1, .is_file = true};
        make_small(&s);
        view_model model = session_model(&s);
        CHECK_EQ(view_new(&v, &(view_desc){.scale = windows[i].scale}), 0);
        for (int n = 0; n < 40; n++) /* the hint has faded */
            view_build(v, &model, &status, windows[i].width, windows[i].height, 0.5, &frame);
        size_t plain = frame.quad_count;
        view_input_event help = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_HELP, .is_down = true};
        view_input(v, &help);
        view_build(v, &model, &status, windows[i].width, windows[i].height, 0.5, &frame);
        CHECK(frame.quad_count > plain + 600);
        const gpu_quad *ground = &frame.quads[plain], *last = NULL; /* the list comes last */
        int lines = 0;
        for (const gpu_quad *q = ground + 2; q < frame.quads + frame.quad_count; q++) {
            CHECK(q->low_px[0] >= ground->low_px[0] && q->high_px[0] <= ground->high_px[0]);
            CHECK(q->low_px[1] >= ground->low_px[1] && q->high_px[1] <= ground->high_px[1]);
            if (last && q->low_px[0] > last->high_px[0]) { /* further in its line */
                CHECK(q->low_px[1] < last->high_px[1] + 4 * windows[i].scale);
            } else if (last && q->low_px[1] > last->high_px[1]) {
                lines++;
            }
            last = q;
        }
        CHECK(lines >= 20);
        CHECK(ground->low_px[0] >= 0 && ground->low_px[1] >= 0 && ground->high_px[0] <= (float)windows[i].width);
        view_delete(v);
        session_delete(&s);
    }
}

TEST(letters_in_the_search_line_move_nothing_and_enter_goes_to_the_next_match)
{
    hand h;
    uint64_t begin_ns, end_ns, begin_after, end_after;
    hand_new(&h);
    view_range(h.view, &begin_ns, &end_ns);
    hand_type(&h, "/");
    view_input_event down = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_A, .is_down = true};
    view_input(h.view, &down);
    hand_type(&h, "#a");
    view_range(h.view, &begin_after, &end_after);
    CHECK_EQ(begin_after, begin_ns);
    CHECK_EQ(end_after, end_ns);
    hand_key(&h, VIEW_KEY_ENTER, 0);
    CHECK_STR(hand_copied(&h), ""); /* the line is open: it was typed into it */
    hand_key(&h, VIEW_KEY_BACKSPACE, 0);
    hand_key(&h, VIEW_KEY_TAB, 0); /* closes the line, keeps what it says */
    CHECK_STR(hand_copied(&h), "Foo#a");
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK_STR(hand_copied(&h), "Foo#a"); /* the search is gone first, the selection stays */
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK_STR(hand_copied(&h), "");
    hand_delete(&h);
}

TEST(what_is_wrong_in_the_search_line_stays_said_until_escape)
{
    hand h;
    hand_new(&h);
    size_t plain = h.frame.quad_count;
    hand_type(&h, "/dur>nan");
    hand_key(&h, VIEW_KEY_TAB, 0); /* closes the line */
    CHECK(h.frame.quad_count > plain + 20);
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK_EQ(h.frame.quad_count, plain);
    hand_delete(&h);
}

TEST(r_asks_for_a_recording_and_its_sign_is_drawn_but_not_into_the_search_line)
{
    hand h;
    view_request r;
    hand_new(&h);
    hand_type(&h, "r");
    CHECK(view_take_request(h.view, &r));
    CHECK_EQ(r.ask, VIEW_ASK_RECORD); /* of nothing that need be selected */
    CHECK(!view_take_request(h.view, &r));
    size_t quads = h.frame.quad_count;
    h.status.recording = "rrtrace-20260131-142233-4711.rrt";
    h.status.recorded_bytes = 4711;
    hand_build(&h);
    CHECK(h.frame.quad_count > quads + 40);
    h.status.recording = NULL;
    hand_type(&h, "/r");
    CHECK(!view_take_request(h.view, &r));
    hand_delete(&h);
}

TEST(a_recordings_calls_a_second_are_those_of_its_length)
{
    session s;
    stage st;
    details d = {.method = FOCUS_NOTHING};
    figures *f;
    make_small(&s);
    stage_new(&st, &s);
    CHECK_EQ(figures_new(&f, st.model.catalog), 0);
    sim_span calls[2] = {{.begin_ns = 10, .end_ns = 20, .value = a}, {.begin_ns = 30, .end_ns = 50, .value = a}};
    figures_take(f, catalog_fiber_at(st.model.catalog, 0)->track, calls, 2);
    st.model.figures = f;
    st.model.is_file = true;
    st.model.read_share = 1;
    double seconds = (double)(st.model.now_ns - st.in.begin_ns) * 1e-9;
    details_update(&d, (focus_method){0, a}, &st.scene, &st.in, 1);
    CHECK_EQ(d.all.calls, 2);
    CHECK(fabs(d.calls_per_s - 2 / seconds) < 1e-9);
    st.model.read_share = 0.5; /* what has been read is of half of the time */
    details_update(&d, (focus_method){0, a}, &st.scene, &st.in, 1);
    CHECK(fabs(d.calls_per_s - 4 / seconds) < 1e-9);
    figures_delete(f);
    stage_delete(&st);
}

TEST(f_frames_the_selected_call_and_again_fits_all)
{
    hand h;
    float at[2];
    uint64_t begin_ns, end_ns;
    hand_new(&h);
    CHECK(hand_find(&h, b, at));
    hand_click(&h, at);
    hand_key(&h, VIEW_KEY_F, 0);
    for (int i = 0; i < 10; i++)
        hand_build(&h);
    view_range(h.view, &begin_ns, &end_ns);
    CHECK(begin_ns > SESSION_BEGIN_NS + 20000000 && begin_ns < SESSION_BEGIN_NS + 40000000);
    CHECK(end_ns > SESSION_BEGIN_NS + 90000000 && end_ns < SESSION_BEGIN_NS + 110000000);
    hand_key(&h, VIEW_KEY_F, 0);
    for (int i = 0; i < 10; i++)
        hand_build(&h);
    view_range(h.view, &begin_ns, &end_ns);
    CHECK_EQ(begin_ns, SESSION_BEGIN_NS);
    CHECK_EQ(end_ns, SESSION_BEGIN_NS + 200000000);
    hand_delete(&h);
}

TEST(tab_goes_through_the_list_and_enter_takes_what_it_is_at)
{
    hand h;
    hand_new(&h);
    hand_type(&h, "t");
    hand_key(&h, VIEW_KEY_TAB, 0);
    hand_key(&h, VIEW_KEY_ENTER, 0);
    CHECK_STR(hand_copied(&h), "Foo#wait"); /* the first: the longest open call */
    hand_delete(&h);
}

TEST(the_session_begins_with_its_first_event_not_when_its_window_was_up)
{
    session s;
    view *v;
    gpu_frame frame;
    view_status status = {.memory_budget = 1};
    uint64_t begin_ns, end_ns;
    session_new(&s);
    session_at(&s, 300); /* the stream is let in late */
    session_process(&s, 7, "ruby late.rb");
    s.events.count = 0;
    CHECK_EQ(view_new(&v, &(view_desc){.is_still = true}), 0);
    view_model model = session_model(&s);
    view_build(v, &model, &status, WIDTH, HEIGHT, 0.1, &frame);
    session_at(&s, 10);
    uint32_t m = session_method(&s, "Foo#m", EV_METHOD_RUBY);
    session_switch(&s, 1, 1);
    session_leaf(&s, m, 10, 400);
    model = session_model(&s);
    view_build(v, &model, &status, WIDTH, HEIGHT, 0.1, &frame);
    view_range(v, &begin_ns, &end_ns);
    CHECK_EQ(begin_ns, SESSION_BEGIN_NS + 10000000);
    view_delete(v);
    CHECK_EQ(view_new(&v, &(view_desc){.is_still = true}), 0);
    model.begin_ns = SESSION_BEGIN_NS + 7000000; /* a recording says itself when it begins */
    view_build(v, &model, &status, WIDTH, HEIGHT, 0.1, &frame);
    view_range(v, &begin_ns, &end_ns);
    CHECK_EQ(begin_ns, SESSION_BEGIN_NS + 7000000);
    view_delete(v);
    session_delete(&s);
}

TEST(the_programs_own_spans_are_bars_over_their_lane_within_each_other_above)
{
    session s;
    stage st;
    notes *n;
    make_small(&s);
    CHECK_EQ(notes_new(&n), 0);
    const struct { ev_kind kind; double ms; uint32_t span; } events[] = {
        {EV_SPAN_BEGIN, 20, 1}, {EV_SPAN_BEGIN, 40, 2}, {EV_SPAN_END, 60, 2}, {EV_SPAN_END, 100, 1}, {EV_SPAN_BEGIN, 150, 3}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        notes_take(n, &(sim_note){SESSION_BEGIN_NS + (uint64_t)(events[i].ms * 1e6), events[i].kind, 0, 0, 1, events[i].span, 0});
    session_run(&s);
    stage_new(&st, &s);
    st.model.notes = n;
    stage_build(&st);
    CHECK_EQ(st.scene.spans.count, 3);
    const scene_span *outer = &st.scene.spans.items[0], *inner = &st.scene.spans.items[1], *last = &st.scene.spans.items[2];
    CHECK_EQ(outer->ref.begin_ns, SESSION_BEGIN_NS + 20000000);
    CHECK_EQ(outer->ref.end_ns, SESSION_BEGIN_NS + 100000000);
    CHECK_EQ(last->ref.end_ns, st.model.now_ns); /* open */
    CHECK(inner->y[0] > outer->y[1]);
    CHECK(last->y[0] == outer->y[0]);
    CHECK(outer->y[0] >= st.layout.lanes.items[0].y_floor + 3 * st.layout.row_height); /* over three rows of calls */
    notes_delete(n);
    stage_delete(&st);
}

/* ---- what is no call ------------------------------------------------------------------------------------------ */

/* run [0, 100); the span load [20, 90), a pause of the GC [130, 160), the mark "deployed" at 180, load once more since 190. */
static void make_noted(session *s)
{
    session_new(s);
    session_process(s, 7, "ruby noted.rb");
    run = session_method(s, "Foo#run", EV_METHOD_RUBY);
    session_string(s, 1, "load");
    session_string(s, 2, "deployed");
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_call(s, run);
    session_at(s, 20);
    session_event(s, EV_SPAN_BEGIN, 1, 1);
    session_at(s, 90);
    session_event(s, EV_SPAN_END, 1, 1);
    session_at(s, 100);
    session_return(s);
    session_gc(s, 130, 160);
    session_at(s, 180);
    session_event(s, EV_MARK, 2, 0);
    session_at(s, 190);
    session_event(s, EV_SPAN_BEGIN, 1, 2);
    session_at(s, 200);
    session_event(s, EV_CUT, 0, session_position(s, 60));
    session_run(s);
}

/* The first place, from the top, where the pointer is at such a thing. */
static bool hand_find_kind(hand *h, view_box_kind kind, float at[2], view_box_ref *out)
{
    view_model model = session_model(&h->session);
    for (float y = 44; y < HEIGHT - 104; y += 4)
        for (float x = 20; x < WIDTH; x += 3) {
            view_input_event move = {.type = VIEW_INPUT_MOVE, .x_px = x, .y_px = y};
            view_input(h->view, &move);
            view_build(h->view, &model, &h->status, WIDTH, HEIGHT, 0, &h->frame);
            if (view_hover(h->view, out) && out->kind == kind) {
                at[0] = x + 1;
                at[1] = y + 1;
                return true;
            }
        }
    return false;
}

static uint64_t ms(double since_begin) { return SESSION_BEGIN_NS + (uint64_t)(since_begin * 1e6); }

TEST(the_pointer_finds_pauses_spans_and_marks_in_every_camera)
{
    for (int kind = 0; kind < 3; kind++) {
        hand h;
        float at[2];
        view_box_ref ref;
        static const view_key keys[] = {VIEW_KEY_1, VIEW_KEY_2, VIEW_KEY_3};
        hand_new_of(&h, make_noted);
        hand_key(&h, keys[kind], 0);
        for (int i = 0; i < 20; i++)
            hand_build(&h);
        CHECK(hand_find_kind(&h, VIEW_BOX_GC, at, &ref));
        CHECK_EQ(ref.begin_ns, ms(130));
        CHECK_EQ(ref.end_ns, ms(160));
        CHECK_EQ(ref.process, 0);
        CHECK(hand_find_kind(&h, VIEW_BOX_SPAN, at, &ref));
        CHECK(ref.begin_ns == ms(20) || ref.is_open);
        CHECK_EQ(ref.value, 1);
        CHECK(hand_find_kind(&h, VIEW_BOX_MARK, at, &ref));
        CHECK_EQ(ref.begin_ns, ms(180));
        CHECK_EQ(ref.value, 2);
        CHECK(hand_find_kind(&h, VIEW_BOX_CALL, at, &ref)); /* and calls as before */
        CHECK_EQ(ref.value, run);
        hand_delete(&h);
    }
}

TEST(tips_tell_of_pauses_spans_and_marks_what_when_how_long_and_whose)
{
    session s;
    stage st;
    details_tip tip;
    char lines[DETAILS_LINES][160];
    make_noted(&s);
    stage_new(&st, &s);
    CHECK_EQ(st.scene.pauses.count, 2); /* its mark and its pane */
    details_tip_of(&tip, &st.in, &st.scene.pauses.items[0].ref);
    CHECK_EQ(details_lines(&tip, &st.in, lines), 3);
    CHECK_STR(lines[0], "GC pause");
    CHECK_STR(lines[1], "30.0 ms");
    CHECK_STR(lines[2], "at 130 ms   ruby noted.rb  \xC2\xB7  pid 7");
    CHECK_EQ(st.scene.spans.count, 2);
    details_tip_of(&tip, &st.in, &st.scene.spans.items[0].ref);
    CHECK_EQ(details_lines(&tip, &st.in, lines), 4);
    CHECK_STR(lines[0], "load");
    CHECK_STR(lines[2], "70.0 ms");
    CHECK_STR(lines[3], "at 20.0 ms   thread main   pid 7");
    details_tip_of(&tip, &st.in, &st.scene.spans.items[1].ref);
    details_lines(&tip, &st.in, lines);
    CHECK_STR(lines[2], "10.0 ms   so far");
    view_box_ref mark = {.begin_ns = ms(180), .end_ns = ms(180), .value = 2, .span_count = 1, .kind = VIEW_BOX_MARK};
    details_tip_of(&tip, &st.in, &mark);
    details_lines(&tip, &st.in, lines);
    CHECK_STR(lines[0], "deployed");
    CHECK_STR(lines[2], "at 180 ms   thread main   pid 7");
    mark.process = CATALOG_NONE;
    details_tip_of(&tip, &st.in, &mark);
    details_lines(&tip, &st.in, lines);
    CHECK_STR(lines[0], "mark 2");
    CHECK_STR(lines[1], "at 180 ms   set here, with M");
    stage_delete(&st);
}

TEST(a_span_is_selected_copied_framed_and_left_for_the_next_of_its_name)
{
    hand h;
    float at[2];
    view_box_ref ref;
    uint64_t begin_ns, end_ns;
    hand_new_of(&h, make_noted);
    CHECK(hand_find_kind(&h, VIEW_BOX_SPAN, at, &ref));
    size_t quads = h.frame.quad_count;
    hand_click(&h, at);
    float away[2] = {5, HEIGHT - 110};
    hand_move(&h, away);
    hand_build(&h);
    CHECK(h.frame.quad_count > quads + 60); /* the panel */
    CHECK_STR(hand_copied(&h), "load");
    hand_key(&h, VIEW_KEY_F, 0);
    for (int i = 0; i < 10; i++)
        hand_build(&h);
    view_range(h.view, &begin_ns, &end_ns);
    bool was_open = ref.is_open;
    CHECK(was_open ? begin_ns > ms(180) : begin_ns < ms(20) && end_ns > ms(90) && end_ns < ms(120));
    hand_type(&h, was_open ? "," : ".");
    hand_key(&h, VIEW_KEY_F, 0);
    for (int i = 0; i < 10; i++)
        hand_build(&h);
    view_range(h.view, &begin_ns, &end_ns);
    CHECK(was_open ? end_ns < ms(120) : begin_ns > ms(180));
    CHECK_STR(hand_copied(&h), "load");
    hand_key(&h, VIEW_KEY_ESC, 0);
    CHECK_STR(hand_copied(&h), "");
    hand_delete(&h);
}

TEST(of_any_number_of_spans_all_are_seen_and_bars_are_a_few_a_pixel)
{
    session s;
    stage st;
    details_tip tip;
    char lines[DETAILS_LINES][160];
    make_noted(&s);
    for (uint32_t i = 0; i < 8000; i++) { /* [0, 160), one of them longer; and some that are seen alone */
        uint64_t begin_ns = ms(i * 0.02), end_ns = begin_ns + (i == 7 ? 15000 : 10000);
        notes_take(s.notes, &(sim_note){.at_ns = begin_ns, .kind = EV_SPAN_BEGIN, .string = i == 7 ? 2 : 1, .span = 100 + i});
        notes_take(s.notes, &(sim_note){.at_ns = end_ns, .kind = EV_SPAN_END, .span = 100 + i});
    }
    stage_new(&st, &s);
    CHECK(st.scene.spans.count > 2 && st.scene.spans.count < 60);
    uint64_t seen = 0, first_ns = UINT64_MAX;
    for (size_t i = 0; i < st.scene.spans.count; i++) {
        const view_box_ref *r = &st.scene.spans.items[i].ref;
        seen += r->span_count;
        first_ns = r->begin_ns < first_ns ? r->begin_ns : first_ns;
        if (r->span_count < 1000)
            continue;
        details_tip_of(&tip, &st.in, r);
        details_lines(&tip, &st.in, lines);
        CHECK_STR(lines[0], "deployed"); /* the longest one's */
    }
    CHECK_EQ(seen, 8002);
    CHECK_EQ(first_ns, ms(0));
    stage_delete(&st);
}

/* ---- measuring ------------------------------------------------------------------------------------------------- */

static void hand_drag(hand *h, float x0, float x1, float y, uint32_t modifiers)
{
    view_input_event e = {.type = VIEW_INPUT_BUTTON, .button = VIEW_BUTTON_LEFT, .is_down = true, .x_px = x0, .y_px = y, .modifiers = modifiers};
    view_input(h->view, &e);
    for (int i = 1; i <= 4; i++) {
        e.type = VIEW_INPUT_MOVE;
        e.x_px = x0 + (x1 - x0) * (float)i / 4;
        view_input(h->view, &e);
    }
    e.type = VIEW_INPUT_BUTTON;
    e.is_down = false;
    view_input(h->view, &e);
    hand_build(h);
}

/* The pane over what is measured, as times; the GC has none here. */
static bool measured(const hand *h, double *begin_ms, double *end_ms)
{
    const gpu_box *run_box = NULL;
    for (size_t i = 0; i < h->frame.box_count && !run_box; i++) {
        view_box_ref ref;
        if (view_box_of(h->view, h->frame.boxes[i].id, &ref) && ref.kind == VIEW_BOX_CALL && ref.value == run && ref.depth == 0)
            run_box = &h->frame.boxes[i];
    }
    CHECK(run_box && h->frame.glass_count <= 1);
    if (h->frame.glass_count == 0)
        return false;
    const gpu_box *pane = h->frame.glass;
    double x_per_ms = (double)(run_box->high[0] - run_box->low[0]) / 100; /* it took [0, 100) */
    *begin_ms = (double)(pane->low[0] - run_box->low[0]) / x_per_ms;
    *end_ms = (double)(pane->high[0] - run_box->low[0]) / x_per_ms;
    return true;
}

TEST(a_drag_along_the_time_axis_measures_and_moves_nothing)
{
    hand h;
    double begin_ms, end_ms, was_begin_ms, was_end_ms;
    uint64_t range[2], range_after[2];
    hand_new(&h);
    view_range(h.view, &range[0], &range[1]);
    float axis_y = HEIGHT - 38 - 46; /* above the strip */
    CHECK(!measured(&h, &begin_ms, &end_ms));
    size_t quads = h.frame.quad_count;
    hand_drag(&h, 300, 700, axis_y, 0);
    CHECK(measured(&h, &begin_ms, &end_ms));
    double ms_per_px = (end_ms - begin_ms) / 400;
    CHECK(fabs(ms_per_px - 204.8 / (WIDTH - 2 * 28)) < 0.01 * ms_per_px); /* panels.h: PANELS_SIDE_PX; navigate.c: NOW_MARGIN */
    CHECK(fabs(begin_ms + 2.34 - (300 - 28) * ms_per_px) < 2 * ms_per_px); /* the film begins a little before the session */
    CHECK(h.frame.quad_count > quads + 6); /* its length is said */
    view_range(h.view, &range_after[0], &range_after[1]);
    CHECK(range_after[0] == range[0] && range_after[1] == range[1]);
    was_begin_ms = begin_ms, was_end_ms = end_ms;
    hand_drag(&h, 700, 300, axis_y, 0); /* from the right it is the same */
    CHECK(measured(&h, &begin_ms, &end_ms));
    CHECK(fabs(begin_ms - was_begin_ms) < ms_per_px && fabs(end_ms - was_end_ms) < ms_per_px);
    hand_drag(&h, 500, 900, 300, 0); /* elsewhere a drag is a drag */
    CHECK(measured(&h, &begin_ms, &end_ms));
    CHECK(fabs(begin_ms - was_begin_ms) < ms_per_px);
    hand_drag(&h, 500, 501, axis_y, 0); /* a click takes it away */
    CHECK(!measured(&h, &begin_ms, &end_ms));
    hand_delete(&h);
}

TEST(with_shift_a_drag_measures_anywhere_and_escape_and_f_know_it)
{
    for (int kind = 0; kind < 3; kind++) {
        hand h;
        double begin_ms, end_ms;
        uint64_t begin_ns, end_ns;
        static const view_key keys[] = {VIEW_KEY_1, VIEW_KEY_2, VIEW_KEY_3};
        hand_new(&h);
        hand_key(&h, keys[kind], 0);
        for (int i = 0; i < 20; i++)
            hand_build(&h);
        hand_drag(&h, 400, 800, 360, VIEW_MOD_SHIFT);
        CHECK(measured(&h, &begin_ms, &end_ms));
        CHECK(end_ms - begin_ms > 30 && end_ms - begin_ms < 120);
        hand_key(&h, VIEW_KEY_F, 0);
        for (int i = 0; i < 20; i++)
            hand_build(&h);
        view_range(h.view, &begin_ns, &end_ns);
        CHECK(begin_ns > ms(begin_ms - 60) && begin_ns < ms(begin_ms + 1));
        hand_key(&h, VIEW_KEY_F, 0); /* again: all */
        for (int i = 0; i < 20; i++)
            hand_build(&h);
        hand_key(&h, VIEW_KEY_ESC, 0);
        CHECK(!measured(&h, &begin_ms, &end_ms));
        hand_delete(&h);
    }
}
