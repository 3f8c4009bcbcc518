/* The walk tells exactly what the reference gives out: every span, state and pause, on any stream. */
#include "sim/reference.h"
#include "sim/walk.h"

#include "sim_stream.h"

typedef struct told {
    catalog *catalog;
    VEC(struct { VEC(sim_span) spans; }) tracks;
    uint64_t opened, closed;
} told;

static void tell(told *t, uint32_t track, sim_span span)
{
    while (t->tracks.count <= track) {
        CHECK(vec_push(&t->tracks));
        memset(&t->tracks.items[t->tracks.count - 1], 0, sizeof t->tracks.items[0]);
    }
    sim_span *place = vec_push(&t->tracks.items[track].spans);
    CHECK(place);
    *place = span;
}

static void reference_sink(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tell(context, track, spans[i]);
}

static int on_opened(void *context, walk_fiber *fiber)
{
    told *t = context;
    t->opened++;
    const walk_frame *top = &fiber->frames.items[fiber->frames.count - 1];
    CHECK_EQ(top->below_ns, 0);
    CHECK_EQ(catalog_fiber_at(t->catalog, fiber->id)->thread, fiber->thread);
    return 0;
}

static int on_closed(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed closed)
{
    told *t = context;
    t->closed++;
    tell(t, catalog_fiber_at(t->catalog, fiber->id)->track, (sim_span){
        .begin_ns = frame->begin_ns,
        .end_ns = end_ns,
        .value = frame->method & ~WALK_OPEN_AT_START,
        .depth = (uint32_t)fiber->frames.count,
        .closed = (uint8_t)closed,
        .open_at_start = (frame->method & WALK_OPEN_AT_START) != 0,
    });
    return 0;
}

static void on_gvl(void *context, uint32_t thread, sim_gvl state, uint64_t begin_ns, uint64_t end_ns)
{
    told *t = context;
    tell(t, catalog_thread_at(t->catalog, thread)->gvl_track, (sim_span){begin_ns, end_ns, state, 0, 0, 0, {0}});
}

static void on_gc(void *context, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
    told *t = context;
    if (end_ns > begin_ns) /* the reference leaves pauses without length out */
        tell(t, catalog_process_at(t->catalog, process)->gc_track, (sim_span){begin_ns, end_ns, 0, 0, 0, 0, {0}});
}

static void same_track(const told *a, uint32_t a_track, const told *b, uint32_t b_track, bool is_stack, uint64_t seed)
{
    size_t a_count = a_track < a->tracks.count ? a->tracks.items[a_track].spans.count : 0;
    size_t b_count = b_track < b->tracks.count ? b->tracks.items[b_track].spans.count : 0;
    if (a_count != b_count)
        TEST_FAILED("seed %" PRIu64 ": %zu spans, wanted %zu", seed, a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        sim_span x = a->tracks.items[a_track].spans.items[i], y = b->tracks.items[b_track].spans.items[i];
        if (!is_stack)
            y.closed = 0; /* states and pauses only end */
        if (memcmp(&x, &y, sizeof x) != 0)
            TEST_FAILED("seed %" PRIu64 ": span %zu: [%" PRIu64 ", %" PRIu64 ") value %u depth %u closed %u, wanted [%" PRIu64
                        ", %" PRIu64 ") value %u depth %u closed %u", seed, i, x.begin_ns, x.end_ns, x.value, x.depth, x.closed,
                        y.begin_ns, y.end_ns, y.value, y.depth, y.closed);
    }
}

/* Frees the events. */
static void compare_events(uint64_t seed, event_vec events)
{
    uint64_t state = seed * 31 + 7;
    told got = {0}, want = {0};
    walk *w;
    reference *r;
    CHECK_EQ(catalog_new(&got.catalog), 0);
    CHECK_EQ(catalog_new(&want.catalog), 0);
    CHECK_EQ(walk_new(&w, got.catalog, &(walk_listener){.opened = on_opened, .closed = on_closed, .gvl = on_gvl, .gc = on_gc, .context = &got}), 0);
    CHECK_EQ(reference_new(&r, &(sim_desc){.catalog = want.catalog, .sink = reference_sink, .context = &want}), 0);
    uint32_t process = catalog_process_add(got.catalog, 1, 1);
    CHECK_EQ(catalog_process_add(want.catalog, 1, 1), process);
    CHECK_EQ(walk_stream_open(w, process), reference_stream_open(r, process));
    for (size_t i = 0; i < events.count;) { /* in pieces, never within a DEFINE */
        size_t end = i, size = 1 + test_random_below(&state, 700);
        while (end < events.count && end - i < size)
            end += ev_slots(events.items[end]);
        CHECK_EQ(walk_run(w, 0, events.items + i, end - i), 0);
        i = end;
    }
    CHECK_EQ(reference_run(r, 0, events.items, events.count), 0);
    CHECK_EQ(walk_stream_close(w, 0, SIM_CLOSED_END), 0);
    CHECK_EQ(walk_stream_close(w, 0, SIM_CLOSED_END), 0); /* again: nothing */
    CHECK_EQ(reference_stream_close(r, 0), 0);

    CHECK_EQ(got.opened, got.closed);
    CHECK_EQ(catalog_thread_count(got.catalog), catalog_thread_count(want.catalog));
    CHECK_EQ(catalog_fiber_count(got.catalog), catalog_fiber_count(want.catalog));
    same_track(&got, catalog_process_at(got.catalog, 0)->gc_track, &want, catalog_process_at(want.catalog, 0)->gc_track, false, seed);
    for (uint32_t i = 0; i < catalog_thread_count(got.catalog); i++) {
        const catalog_thread *x = catalog_thread_at(got.catalog, i), *y = catalog_thread_at(want.catalog, i);
        CHECK_EQ(x->number, y->number);
        CHECK_EQ(x->end_ns, y->end_ns);
        same_track(&got, x->gvl_track, &want, y->gvl_track, false, seed);
    }
    for (uint32_t i = 0; i < catalog_fiber_count(got.catalog); i++) {
        const catalog_fiber *x = catalog_fiber_at(got.catalog, i), *y = catalog_fiber_at(want.catalog, i);
        CHECK_EQ(x->number, y->number);
        same_track(&got, x->track, &want, y->track, true, seed);
    }
    walk_delete(w);
    reference_delete(r);
    for (size_t i = 0; i < got.tracks.count; i++)
        vec_free(&got.tracks.items[i].spans);
    for (size_t i = 0; i < want.tracks.count; i++)
        vec_free(&want.tracks.items[i].spans);
    vec_free(&got.tracks);
    vec_free(&want.tracks);
    catalog_delete(got.catalog);
    catalog_delete(want.catalog);
    vec_free(&events);
}

static void compare(uint64_t seed, const stream_how *how)
{
    uint64_t state = seed;
    event_vec events = {0};
    stream_make(&events, &state, how);
    compare_events(seed, events);
}

TEST(it_tells_what_the_reference_gives_out)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 800; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = {
            .event_count = 1 + (uint32_t)test_random_below(&state, i % 40 ? 300 : 20000),
            .thread_count = 1 + (uint32_t)test_random_below(&state, 6),
            .fibers_per_thread = 1 + (uint32_t)test_random_below(&state, 4),
            .method_count = 1 + (uint32_t)test_random_below(&state, 30),
            .depth_max = 1 + (uint32_t)test_random_below(&state, 60),
            .oddity_per_mille = (uint32_t)test_random_below(&state, 3) * 60,
            .switch_per_mille = (uint32_t)test_random_below(&state, 3) * 40,
            .gc_per_mille = (uint32_t)test_random_below(&state, 3) * 10,
            .thread_per_mille = (uint32_t)test_random_below(&state, 3) * 20,
            .unwind_per_mille = (uint32_t)test_random_below(&state, 3) * 20,
            .define_per_mille = (uint32_t)test_random_below(&state, 3) * 10,
        };
        compare(seed, &how);
    }
}

TEST(pure_noise_agrees)
{
    uint64_t seed = test_seed(200000);
    for (int i = 0; i < 200; i++, seed++) {
        stream_how how = {.event_count = 800, .thread_count = 2, .fibers_per_thread = 2, .method_count = 3, .depth_max = 5,
                          .oddity_per_mille = 900, .switch_per_mille = 50};
        compare(seed, &how);
    }
}

TEST(threads_that_end_and_come_back_agree)
{
    uint64_t seed = test_seed(300000);
    for (int i = 0; i < 300; i++, seed++) {
        static const ev_kind kinds[] = {EV_THREAD_STARTED, EV_THREAD_READY, EV_THREAD_SUSPENDED, EV_THREAD_RESUMED, EV_THREAD_EXITED, EV_SWITCH, EV_CALL};
        uint64_t state = seed * 77 + 1;
        event_vec events = {0};
        for (uint64_t ticks = 100; events.count < 60; ticks += test_random_below(&state, 9)) {
            uint32_t thread = 1 + (uint32_t)test_random_below(&state, 3);
            stream_add(&events, ev_make(kinds[test_random_below(&state, 7)], ticks, thread, thread));
        }
        compare_events(seed, events);
    }
}

TEST(a_definition_that_is_not_all_there_is_left_out)
{
    catalog *c;
    walk *w;
    CHECK_EQ(catalog_new(&c), 0);
    CHECK_EQ(walk_new(&w, c, &(walk_listener){0}), 0);
    CHECK_EQ(walk_stream_open(w, catalog_process_add(c, 1, 0)), 0);
    ev *events = malloc(2 * sizeof *events); /* exactly as large, so that reading past it is seen */
    CHECK(events);
    events[0] = ev_make(EV_SWITCH, 10, 1, 1);
    events[1] = ev_make(EV_DEFINE, 11, ev_define_number(EV_DEFINE_METHOD, 1), sizeof(ev_method_def));
    CHECK_EQ(walk_run(w, 0, events, 2), 0);
    CHECK_EQ(catalog_method_limit(c, 0), 0);
    CHECK_EQ(walk_stream_info_of(w, 0).event_count, 2);
    free(events);
    walk_delete(w);
    catalog_delete(c);
}
