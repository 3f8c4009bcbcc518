/* A replay from a stored state gives exactly the spans that a replay from the start gives from there on. */
#include "record_stream.h"

#include "base/mem.h"
#include "sim/sim.h"

/* One replay: what came out, by track. */
typedef struct replay {
    catalog *catalog;
    sim *sim;
    uint32_t process, stream;
    VEC(struct { VEC(sim_span) spans; }) tracks;
} replay;

static void collect(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    replay *p = context;
    while (p->tracks.count <= track) {
        CHECK(vec_push(&p->tracks));
        memset(&p->tracks.items[p->tracks.count - 1], 0, sizeof p->tracks.items[0]);
    }
    for (size_t i = 0; i < count; i++) {
        sim_span *place = vec_push(&p->tracks.items[track].spans);
        CHECK(place);
        *place = spans[i];
    }
}

static void replay_new(replay *p)
{
    *p = (replay){0};
    CHECK_EQ(catalog_new(&p->catalog), 0);
    CHECK_EQ(sim_new(&p->sim, &(sim_desc){.catalog = p->catalog, .sink = collect, .context = p}), 0);
    p->process = catalog_process_add(p->catalog, 1, 1);
}

static void replay_free(replay *p)
{
    for (size_t i = 0; i < p->tracks.count; i++)
        vec_free(&p->tracks.items[i].spans);
    vec_free(&p->tracks);
    sim_delete(p->sim);
    catalog_delete(p->catalog);
}

static void run(replay *p, const ev *events, uint32_t count)
{
    CHECK_EQ(sim_run(p->sim, &(sim_block){p->stream, count, events}, 1), 0);
}

static size_t span_count(const replay *p, uint32_t track)
{
    return track < p->tracks.count ? p->tracks.items[track].spans.count : 0;
}

static void take_definition(void *context, ev head, const void *payload)
{
    replay *p = context;
    catalog_define(p->catalog, p->process, head, payload, 0);
}

/* How many spans each track of the whole replay had when a chunk began. */
typedef struct mark {
    uint32_t chunk;
    size_t counts[256];
} mark;

static void same_tail(const replay *whole, uint32_t track, size_t first, const replay *part, uint32_t part_track, uint64_t seed,
                      uint32_t chunk, const char *what)
{
    size_t want = span_count(whole, track) - first, got = span_count(part, part_track);
    for (size_t i = 0; i < want && i < got; i++) {
        const sim_span *a = &part->tracks.items[part_track].spans.items[i], *b = &whole->tracks.items[track].spans.items[first + i];
        if (memcmp(a, b, sizeof *a) != 0)
            TEST_FAILED("seed %" PRIu64 ", from chunk %u, %s, span %zu: [%" PRIu64 ", %" PRIu64 ") value %u depth %u closed %u, wanted [%"
                        PRIu64 ", %" PRIu64 ") value %u depth %u closed %u", seed, chunk, what, i, a->begin_ns, a->end_ns, a->value,
                        a->depth, a->closed, b->begin_ns, b->end_ns, b->value, b->depth, b->closed);
    }
    if (got != want)
        TEST_FAILED("seed %" PRIu64 ", from chunk %u, %s: %zu spans, wanted %zu", seed, chunk, what, got, want);
}

/* Tracks are numbered in order of appearance: compare by what they are. */
static void same_rest(const replay *whole, const mark *m, const replay *part, uint64_t seed)
{
    const catalog *a = whole->catalog, *b = part->catalog;
    uint32_t gc = catalog_process_at(a, 0)->gc_track;
    same_tail(whole, gc, m->counts[gc], part, catalog_process_at(b, 0)->gc_track, seed, m->chunk, "GC");
    CHECK_EQ(catalog_process_at(b, 0)->event_count, catalog_process_at(a, 0)->event_count);
    CHECK_EQ(catalog_process_at(b, 0)->begin_ns, catalog_process_at(a, 0)->begin_ns);
    CHECK_EQ(catalog_process_at(b, 0)->end_ns, catalog_process_at(a, 0)->end_ns);
    for (uint32_t i = 0; i < catalog_thread_count(a); i++) {
        const catalog_thread *x = catalog_thread_at(a, i);
        const catalog_thread *y = catalog_thread_at(b, catalog_thread_of(part->catalog, 0, x->number, 0));
        same_tail(whole, x->gvl_track, m->counts[x->gvl_track], part, y->gvl_track, seed, m->chunk, "GVL");
        if (x->number != 0) /* calls before any SWITCH: theirs begins with their block */
            CHECK_EQ(y->begin_ns, x->begin_ns);
        CHECK_EQ(y->end_ns, x->end_ns);
    }
    for (uint32_t i = 0; i < catalog_fiber_count(a); i++) {
        const catalog_fiber *x = catalog_fiber_at(a, i);
        uint32_t other = catalog_fiber_of(part->catalog, 0, x->number, 0, 0);
        same_tail(whole, x->track, m->counts[x->track], part, catalog_fiber_at(b, other)->track, seed, m->chunk, "fiber");
    }
}

typedef VEC(sim_state) state_vec;

/* As app/ does it; a state now and then, kept to compare. */
static void record(const char *path, const event_vec *events, uint64_t *random, size_t block_size, state_vec *states)
{
    replay live;
    replay_new(&live);
    live.stream = sim_stream_open(live.sim, live.process, 1);
    record_writer *w = open_writer(path);
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    for (size_t i = 0, end; i < events->count; i = end) {
        end = block_end(events, i, 1 + test_random_below(random, block_size));
        CHECK_EQ(record_writer_events(w, 0, events->items + i, end - i), 0);
        run(&live, events->items + i, (uint32_t)(end - i));
        if (test_random_below(random, 3) == 0) {
            sim_state state = {0};
            CHECK_EQ(sim_stream_state(live.sim, live.stream, &state), 0);
            CHECK_EQ(record_writer_state(w, 0, &state), 0);
            if (end == events->count) { /* nothing comes after it: it is in no chunk */
                sim_state_free(&state);
                break;
            }
            CHECK(vec_push(states));
            states->items[states->count - 1] = state;
        } else if (test_random_below(random, 3) == 0) {
            CHECK_EQ(record_writer_flush(w), 0);
        }
    }
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    replay_free(&live);
}

static ev *chunk_events(record_reader *r, uint32_t i, uint32_t *count)
{
    uint32_t slots = record_chunk_at(r, i).slot_count;
    ev *events = calloc(slots, sizeof *events);
    CHECK(events);
    CHECK_EQ(record_read_events(r, i, events, slots, count), 0);
    return events;
}

static void run_chunks(record_reader *r, replay *p, uint32_t first, void (*before)(void *, uint32_t), void *context)
{
    for (uint32_t i = first; i < record_chunk_count(r); i++) {
        uint32_t count;
        if (record_chunk_at(r, i).kind != RECORD_EVENTS)
            continue;
        if (before)
            before(context, i);
        ev *events = chunk_events(r, i, &count);
        run(p, events, count);
        free(events);
    }
    CHECK_EQ(sim_stream_close(p->sim, p->stream), 0);
}

typedef struct whole_replay {
    replay replay;
    record_reader *reader;
    VEC(mark) marks;
    state_vec written;
} whole_replay;

/* The state in the file is the one that was given. */
static void look(void *context, uint32_t chunk)
{
    whole_replay *whole = context;
    if (!record_chunk_at(whole->reader, chunk).has_state)
        return;
    sim_state got = {0};
    CHECK_EQ(record_read_state(whole->reader, chunk, &got), 0);
    CHECK(whole->marks.count < whole->written.count);
    CHECK(sim_state_equal(&got, &whole->written.items[whole->marks.count]));
    sim_state_free(&got);
    mark *m = vec_push(&whole->marks);
    CHECK(m);
    *m = (mark){.chunk = chunk};
    CHECK(catalog_track_count(whole->replay.catalog) <= 256);
    for (uint32_t t = 0; t < catalog_track_count(whole->replay.catalog); t++)
        m->counts[t] = span_count(&whole->replay, t);
}

static void replay_from(whole_replay *whole, const mark *m, uint64_t seed)
{
    replay part;
    sim_state state = {0};
    replay_new(&part);
    CHECK_EQ(record_definitions(whole->reader, 0, m->chunk, take_definition, &part), 0);
    CHECK_EQ(record_read_state(whole->reader, m->chunk, &state), 0);
    part.stream = sim_stream_resume(part.sim, part.process, 1, &state);
    CHECK(part.stream != SIM_STREAM_NONE);
    run_chunks(whole->reader, &part, m->chunk, NULL, NULL);
    same_rest(&whole->replay, m, &part, seed);
    sim_state_free(&state);
    replay_free(&part);
}

static void seek(uint64_t seed, const stream_how *how, size_t block_size)
{
    uint64_t random = seed;
    event_vec events = {0};
    stream_make(&events, &random, how);
    whole_replay whole = {0};
    record(temp_file("seek.rrt"), &events, &random, block_size, &whole.written);
    whole.reader = open_reader(temp_file("seek.rrt"));
    replay_new(&whole.replay);
    whole.replay.stream = sim_stream_open(whole.replay.sim, whole.replay.process, 1);
    run_chunks(whole.reader, &whole.replay, 0, look, &whole);
    CHECK_EQ(whole.marks.count, whole.written.count);
    for (size_t i = 0; i < whole.marks.count; i++) {
        replay_from(&whole, &whole.marks.items[i], seed);
        sim_state_free(&whole.written.items[i]);
    }
    vec_free(&whole.written);
    record_close(whole.reader);
    replay_free(&whole.replay);
    vec_free(&whole.marks);
    vec_free(&events);
}

TEST(every_state_is_as_good_as_the_start_in_random_streams)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 250; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = random_how(&state, 50 + (uint32_t)test_random_below(&state, 2000));
        seek(seed, &how, 1 + test_random_below(&state, 200));
    }
    temp_remove();
}

TEST(every_state_is_as_good_as_the_start_in_noise)
{
    uint64_t seed = test_seed(5000);
    for (int i = 0; i < 60; i++, seed++) {
        stream_how how = {.event_count = 600, .thread_count = 3, .fibers_per_thread = 3, .method_count = 3, .depth_max = 5,
                          .oddity_per_mille = 700, .switch_per_mille = 50, .thread_per_mille = 100, .define_per_mille = 20};
        seek(seed, &how, 40);
    }
    temp_remove();
}

/* 1,000 fibers, each 24 frames deep, in turn. */
static void make_fibers(event_vec *v, uint32_t rounds)
{
    uint64_t ticks = 1000, random = 7;
    stream_add_clock(v, ticks, 1000);
    stream_add_clock(v, ticks + 10, 1010);
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t f = 0; f < 1000; f++) {
            uint32_t base = 0x70000000u + f * 0x10000u;
            stream_add(v, ev_make(EV_SWITCH, ticks += 40, f + 1, 1));
            for (uint32_t d = round ? 20 : 0; d < 24; d++)
                stream_add(v, ev_make(EV_CALL, ticks += 20 + test_random_below(&random, 400), 1 + d * 7 + f % 5, base - d * 56u));
            for (uint32_t d = 24; d-- > 20;)
                stream_add(v, ev_make(EV_RETURN, ticks += 20 + test_random_below(&random, 400), 0, base - d * 56u));
        }
}

TEST(states_of_a_thousand_deep_fibers_take_a_small_part_of_the_file)
{
    event_vec events = {0};
    make_fibers(&events, 600);
    replay live;
    sim_state state = {0};
    replay_new(&live);
    live.stream = sim_stream_open(live.sim, live.process, 1);
    record_writer *w = open_writer(temp_file("fibers.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    uint32_t states = 0;
    for (size_t i = 0, end; i < events.count; i = end) {
        end = block_end(&events, i, 16384);
        CHECK_EQ(record_writer_events(w, 0, events.items + i, end - i), 0);
        run(&live, events.items + i, (uint32_t)(end - i));
        for (size_t t = 0; t < live.tracks.count; t++)
            live.tracks.items[t].spans.count = 0;
        if (record_writer_wants_state(w, 0)) {
            CHECK_EQ(sim_stream_state(live.sim, live.stream, &state), 0);
            CHECK_EQ(record_writer_state(w, 0, &state), 0);
            CHECK_EQ(state.fibers.count, 1000);
            states++;
        }
    }
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("fibers.rrt"));
    uint64_t with_state = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < record_chunk_count(r); i++)
        if (record_chunk_at(r, i).has_state) {
            sim_state back = {0};
            CHECK_EQ(record_read_state(r, i, &back), 0);
            CHECK_EQ(back.frames.count >= 20000, true);
            sim_state_free(&back);
            found++;
        }
    /* What is left of the chunk when its state is taken away is not told: compare with the same stream without states. */
    uint64_t bytes = record_info_of(r).file_bytes;
    record_close(r);
    w = open_writer(temp_file("fibers.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    CHECK_EQ(record_writer_events(w, 0, events.items, events.count), 0);
    record_writer_close(w);
    r = open_reader(temp_file("fibers.rrt"));
    with_state = bytes - record_info_of(r).file_bytes;
    fprintf(stderr, "%zu events, %u states, %" PRIu64 " of %" PRIu64 " bytes for them\n", events.count, found, with_state, bytes);
    CHECK(found >= 2);
    CHECK(found == states || found + 1 == states); /* the last one may have no events behind it */
    CHECK(with_state < bytes / 10);
    record_close(r);
    sim_state_free(&state);
    replay_free(&live);
    vec_free(&events);
    temp_remove();
}

TEST(a_state_with_wrong_counts_is_refused)
{
    replay p;
    replay_new(&p);
    sim_state state = {.clock.line.ns_per_tick_q32 = 1, .gc = SIM_STATE_CLOSED};
    CHECK(sim_stream_resume(p.sim, p.process, 1, &state) != SIM_STREAM_NONE);
    sim_state_fiber *f = vec_push(&state.fibers);
    CHECK(f);
    *f = (sim_state_fiber){.number = 1, .frame_count = 3};
    CHECK_EQ(sim_stream_resume(p.sim, p.process, 1, &state), SIM_STREAM_NONE);
    f->frame_count = 0; /* a fiber of no thread */
    CHECK_EQ(sim_stream_resume(p.sim, p.process, 1, &state), SIM_STREAM_NONE);
    sim_state_thread *t = vec_push(&state.threads);
    CHECK(t);
    *t = (sim_state_thread){.number = 1, .fiber_count = 1, .gvl = 3};
    CHECK_EQ(sim_stream_resume(p.sim, p.process, 1, &state), SIM_STREAM_NONE); /* no such state of a thread */
    t->gvl = SIM_GVL_BLOCKED;
    CHECK(sim_stream_resume(p.sim, p.process, 1, &state) != SIM_STREAM_NONE);
    sim_state_free(&state);
    replay_free(&p);
}
