/* The parallel scan equals the sequential reference: on any stream, at any block size, with any number of threads. */
#include "sim/reference.h"
#include "sim/sim.h"

#include "base/workers.h"
#include "sim_stream.h"

/* What came out of one simulation, by track. */
typedef struct collected {
    catalog *catalog;
    VEC(struct { VEC(sim_span) spans; }) tracks;
    VEC(sim_note) notes;
} collected;

static void collect(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    collected *c = context;
    while (c->tracks.count <= track) {
        CHECK(vec_push(&c->tracks));
        memset(&c->tracks.items[c->tracks.count - 1], 0, sizeof c->tracks.items[0]);
    }
    for (size_t i = 0; i < count; i++) {
        sim_span *place = vec_push(&c->tracks.items[track].spans);
        CHECK(place);
        *place = spans[i];
    }
}

static void collect_note(void *context, const sim_note *note)
{
    sim_note *place = vec_push(&((collected *)context)->notes);
    CHECK(place);
    *place = *note;
    /* Threads' ids are given in order of appearance, which blocks may change. */
    if (note->thread != SIM_TRACK_NONE)
        place->thread = catalog_thread_at(((collected *)context)->catalog, note->thread)->number;
}

static void collected_free(collected *c)
{
    for (size_t i = 0; i < c->tracks.count; i++)
        vec_free(&c->tracks.items[i].spans);
    vec_free(&c->tracks);
    vec_free(&c->notes);
    catalog_delete(c->catalog);
}

static const sim_span *spans_of(const collected *c, uint32_t track, size_t *count)
{
    *count = track < c->tracks.count ? c->tracks.items[track].spans.count : 0;
    return *count ? c->tracks.items[track].spans.items : NULL;
}

typedef struct pair {
    collected got, want;
    const sim *sim;
    const reference *reference;
    uint64_t seed;
} pair;

static void same_spans(const sim_span *a, size_t a_count, const sim_span *b, size_t b_count, const char *what, uint64_t seed)
{
    for (size_t i = 0; i < a_count && i < b_count; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            TEST_FAILED("seed %" PRIu64 ", %s, span %zu: [%" PRIu64 ", %" PRIu64 ") value %u depth %u closed %u, wanted [%" PRIu64
                        ", %" PRIu64 ") value %u depth %u closed %u", seed, what, i, a[i].begin_ns, a[i].end_ns, a[i].value,
                        a[i].depth, a[i].closed, b[i].begin_ns, b[i].end_ns, b[i].value, b[i].depth, b[i].closed);
    if (a_count != b_count)
        TEST_FAILED("seed %" PRIu64 ", %s: %zu spans, wanted %zu", seed, what, a_count, b_count);
}

static void same_track(const pair *p, uint32_t got, uint32_t want, const char *what)
{
    size_t got_count, want_count;
    const sim_span *a = spans_of(&p->got, got, &got_count), *b = spans_of(&p->want, want, &want_count);
    same_spans(a, got_count, b, want_count, what, p->seed);
    sim_span open_a[600], open_b[600];
    memset(open_a, 0, sizeof open_a);
    memset(open_b, 0, sizeof open_b);
    got_count = sim_open_frames(p->sim, got, 0, open_a, 600);
    want_count = reference_open_frames(p->reference, want, open_b, 600);
    same_spans(open_a, got_count, open_b, want_count, "open frames", p->seed);
    CHECK_EQ(sim_open_depth(p->sim, got), want_count);
}

/* Tracks are numbered in order of appearance, which blocks may change: compare by what they are. */
static void same_session(const pair *p, uint32_t process)
{
    const catalog *a = p->got.catalog, *b = p->want.catalog;
    same_track(p, catalog_process_at(a, process)->gc_track, catalog_process_at(b, process)->gc_track, "GC");
    CHECK_EQ(catalog_thread_count(a), catalog_thread_count(b));
    CHECK_EQ(catalog_fiber_count(a), catalog_fiber_count(b));
    uint32_t threads = 0, fibers = 0;
    for (uint32_t t = catalog_process_at(a, process)->first_thread; t != CATALOG_NONE; t = catalog_thread_at(a, t)->next, threads++) {
        const catalog_thread *x = catalog_thread_at(a, t);
        const catalog_thread *y = catalog_thread_at(b, catalog_thread_of(p->want.catalog, process, x->number, 0));
        same_track(p, x->gvl_track, y->gvl_track, "GVL");
        CHECK_EQ(x->end_ns, y->end_ns);
        for (uint32_t f = x->first_fiber; f != CATALOG_NONE; f = catalog_fiber_at(a, f)->next, fibers++) {
            const catalog_fiber *fiber = catalog_fiber_at(a, f);
            uint32_t other = catalog_fiber_of(p->want.catalog, process, fiber->number, 0, 0);
            same_track(p, fiber->track, catalog_fiber_at(b, other)->track, "fiber");
        }
    }
    CHECK_EQ(p->got.notes.count, p->want.notes.count);
    for (size_t i = 0; i < p->got.notes.count; i++)
        if (memcmp(&p->got.notes.items[i], &p->want.notes.items[i], sizeof(sim_note)) != 0)
            TEST_FAILED("seed %" PRIu64 ", note %zu: thread %u at %" PRIu64 ", wanted thread %u at %" PRIu64, p->seed, i, p->got.notes.items[i].thread,
                        p->got.notes.items[i].at_ns, p->want.notes.items[i].thread, p->want.notes.items[i].at_ns);
    CHECK_EQ(threads, catalog_thread_count(b));
    CHECK_EQ(fibers, catalog_fiber_count(b));
}

/* Cut events[first…] at about block_size, never within a DEFINE. */
static size_t block_end(const event_vec *v, size_t first, size_t block_size)
{
    size_t i = first;
    while (i < v->count && i - first < block_size)
        i += ev_slots(v->items[i]);
    return i;
}

static void compare(uint64_t seed, const stream_how *how, size_t block_size, unsigned threads)
{
    uint64_t state = seed;
    event_vec events = {0};
    stream_make(&events, &state, how);

    pair p = {.seed = seed};
    workers *w = NULL;
    sim *s;
    reference *r;
    CHECK_EQ(catalog_new(&p.got.catalog), 0);
    CHECK_EQ(catalog_new(&p.want.catalog), 0);
    CHECK_EQ(workers_new(&w, threads), 0);
    CHECK_EQ(sim_new(&s, &(sim_desc){.workers = w, .catalog = p.got.catalog, .sink = collect, .note = collect_note, .context = &p.got}), 0);
    CHECK_EQ(reference_new(&r, &(sim_desc){.catalog = p.want.catalog, .sink = collect, .note = collect_note, .context = &p.want}), 0);
    uint32_t process = catalog_process_add(p.got.catalog, 1, 1);
    catalog_process_add(p.want.catalog, 1, 1);
    uint32_t stream = sim_stream_open(s, process, 1);
    CHECK_EQ(reference_stream_open(r, process), stream);
    p.sim = s;
    p.reference = r;

    VEC(sim_block) blocks = {0};
    size_t stop = test_random_below(&state, events.count + 1); /* compare once in the middle, too */
    for (size_t i = 0, end; i < events.count; i = end) {
        end = block_end(&events, i, 1 + test_random_below(&state, block_size));
        sim_block *block = vec_push(&blocks);
        CHECK(block);
        *block = (sim_block){stream, (uint32_t)(end - i), events.items + i};
        if (test_random_below(&state, 8) == 0 || end >= events.count || (i <= stop && stop < end)) {
            CHECK_EQ(sim_run(s, blocks.items, blocks.count), 0);
            CHECK_EQ(reference_run(r, stream, blocks.items[0].events, (size_t)(events.items + end - blocks.items[0].events)), 0);
            CHECK_EQ(sim_stream_now_ns(s, stream) > 0, true);
            blocks.count = 0;
            if (i <= stop && stop < end)
                same_session(&p, process);
        }
    }
    same_session(&p, process);
    CHECK_EQ(sim_stream_close(s, stream), 0);
    CHECK_EQ(reference_stream_close(r, stream), 0);
    same_session(&p, process);

    vec_free(&blocks);
    vec_free(&events);
    sim_delete(s);
    reference_delete(r);
    workers_delete(w);
    collected_free(&p.got);
    collected_free(&p.want);
}

static stream_how random_how(uint64_t *state, uint32_t event_count)
{
    return (stream_how){
        .event_count = event_count,
        .thread_count = 1 + (uint32_t)test_random_below(state, 6),
        .fibers_per_thread = 1 + (uint32_t)test_random_below(state, 4),
        .method_count = 1 + (uint32_t)test_random_below(state, 30),
        .depth_max = 1 + (uint32_t)test_random_below(state, 60),
        .oddity_per_mille = (uint32_t)test_random_below(state, 3) * 60,
        .switch_per_mille = (uint32_t)test_random_below(state, 3) * 40,
        .gc_per_mille = (uint32_t)test_random_below(state, 3) * 10,
        .thread_per_mille = (uint32_t)test_random_below(state, 3) * 20,
        .unwind_per_mille = (uint32_t)test_random_below(state, 3) * 20,
        .define_per_mille = (uint32_t)test_random_below(state, 3) * 10,
    };
}

TEST(short_streams_agree_at_tiny_blocks)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < test_rounds(1500); i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = random_how(&state, 1 + (uint32_t)test_random_below(&state, 60));
        compare(seed, &how, 1 + test_random_below(&state, 6), 1);
    }
}

TEST(long_streams_agree_at_any_block_size_on_several_threads)
{
    uint64_t seed = test_seed(100000);
    for (int i = 0; i < test_rounds(60); i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = random_how(&state, 2000 + (uint32_t)test_random_below(&state, 20000));
        compare(seed, &how, 1 + test_random_below(&state, 3000), 1 + (unsigned)test_random_below(&state, 3));
    }
}

TEST(pure_noise_agrees)
{
    uint64_t seed = test_seed(200000);
    for (int i = 0; i < test_rounds(200); i++, seed++) {
        stream_how how = {.event_count = 800, .thread_count = 2, .fibers_per_thread = 2, .method_count = 3, .depth_max = 5,
                          .oddity_per_mille = 900, .switch_per_mille = 50};
        compare(seed, &how, 40, 2);
    }
}
