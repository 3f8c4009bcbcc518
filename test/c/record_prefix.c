/* A recording that starts in the middle tells the same story from there on. */
#include "record_stream.h"

#include "record/prefix.h"
#include "sim/sim.h"

typedef struct film {
    catalog *catalog;
    sim *sim;
    uint32_t stream;
    VEC(sim_span) spans;
    VEC(uint32_t) tracks;
} film;

static void collect(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    film *f = context;
    for (size_t i = 0; i < count; i++) {
        sim_span *span = vec_push(&f->spans);
        uint32_t *place = vec_push(&f->tracks);
        CHECK(span && place);
        *span = spans[i];
        *place = track;
    }
}

static void film_new(film *f)
{
    *f = (film){0};
    CHECK_EQ(catalog_new(&f->catalog), 0);
    CHECK_EQ(sim_new(&f->sim, &(sim_desc){.catalog = f->catalog, .sink = collect, .context = f}), 0);
    f->stream = sim_stream_open(f->sim, catalog_process_add(f->catalog, 1, 1), 1);
}

static void film_free(film *f)
{
    vec_free(&f->spans);
    vec_free(&f->tracks);
    sim_delete(f->sim);
    catalog_delete(f->catalog);
}

static void run(film *f, const ev *events, size_t count)
{
    CHECK_EQ(sim_run(f->sim, &(sim_block){f->stream, (uint32_t)count, events}, 1), 0);
}

/* The next span at or after *i of one track. */
static const sim_span *next_of(const film *f, uint32_t track, size_t *i)
{
    while (*i < f->spans.count && f->tracks.items[*i] != track)
        ++*i;
    return *i < f->spans.count ? &f->spans.items[(*i)++] : NULL;
}

static void same_fiber(const film *whole, size_t first, uint32_t track, const film *late, uint32_t late_track, uint64_t begin_ns, uint64_t seed)
{
    size_t i = first, k = 0;
    for (;;) {
        const sim_span *want = next_of(whole, track, &i), *got = next_of(late, late_track, &k);
        if (!want || !got) {
            if (want || got)
                TEST_FAILED("seed %" PRIu64 ": a span too %s", seed, want ? "few" : "many");
            return;
        }
        /* Open by then: as a FRAME from the start on. Begun later: as it was, even where a random stream's clock goes back. */
        bool was_open = got->begin_ns != want->begin_ns;
        CHECK(!was_open || (want->begin_ns < begin_ns && got->begin_ns == begin_ns && got->open_at_start));
        CHECK_EQ(got->end_ns, want->end_ns > got->begin_ns ? want->end_ns : got->begin_ns);
        CHECK_EQ(got->value, want->value);
        CHECK_EQ(got->depth, want->depth);
        CHECK_EQ(got->closed, want->closed);
    }
}

/* Calibrations of later on measure from the first one, and that is another in a late start: times would differ a little. */
static void leave_out_clocks(event_vec *v, size_t from)
{
    size_t to = from;
    for (size_t i = from, end; i < v->count; i = end) {
        ev e = v->items[i];
        end = i + ev_slots(e);
        if (ev_kind_of(e) == EV_DEFINE && ev_define_what(e) == EV_DEFINE_CLOCK)
            continue;
        memmove(v->items + to, v->items + i, (end - i) * sizeof(ev));
        to += end - i;
    }
    v->count = to;
}

TEST(what_comes_after_a_late_start_is_as_in_the_whole)
{
    uint64_t seed = test_seed(1);
    size_t compared = 0;
    for (int round = 0; round < test_rounds(200); round++, seed++) {
        uint64_t random = seed * 77 + 1;
        event_vec events = {0};
        stream_how how = random_how(&random, 200 + (uint32_t)test_random_below(&random, 5000));
        how.oddity_per_mille = 0; /* a clock that goes back puts what comes later before the start */
        stream_make(&events, &random, &how);
        size_t half = block_end(&events, 0, 1 + test_random_below(&random, events.count));
        leave_out_clocks(&events, half);
        film whole, late;
        film_new(&whole);
        run(&whole, events.items, half);
        sim_state state = {0};
        CHECK_EQ(sim_stream_state(whole.sim, whole.stream, &state), 0);
        prefix_events prefix = {0};
        CHECK_EQ(prefix_make(&prefix, whole.catalog, 0, &state), 0);
        size_t first = whole.spans.count;
        run(&whole, events.items + half, events.count - half);
        CHECK_EQ(sim_stream_close(whole.sim, whole.stream), 0);

        film_new(&late);
        run(&late, prefix.items, prefix.count);
        CHECK_EQ(late.spans.count, 0); /* the beginning itself makes nothing up */
        CHECK_EQ(sim_stream_now_ns(late.sim, late.stream), state.last_ns);
        run(&late, events.items + half, events.count - half);
        CHECK_EQ(sim_stream_close(late.sim, late.stream), 0);
        for (uint32_t id = 0; id < catalog_fiber_count(whole.catalog); id++) {
            const catalog_fiber *f = catalog_fiber_at(whole.catalog, id);
            uint32_t other = catalog_find_fiber(late.catalog, 0, f->number);
            if (other == CATALOG_NONE) { /* nothing was open, and nothing came */
                size_t i = first;
                CHECK(!next_of(&whole, f->track, &i));
                continue;
            }
            uint32_t thread = catalog_thread_at(whole.catalog, f->thread)->number;
            if (catalog_thread_at(late.catalog, catalog_fiber_at(late.catalog, other)->thread)->number != thread)
                continue; /* it had nothing open and goes on in another thread, as in Ruby no fiber does: it ends with that one */
            compared++;
            same_fiber(&whole, first, f->track, &late, catalog_fiber_at(late.catalog, other)->track, state.last_ns, seed);
        }
        for (uint32_t i = 0; i < catalog_method_limit(whole.catalog, 0); i++) {
            const catalog_method *m = catalog_method_known(whole.catalog, 0, i), *n = catalog_method_known(late.catalog, 0, i);
            CHECK_EQ(!m, !n);
            if (m)
                CHECK(m->name_bytes == n->name_bytes && memcmp(m->name, n->name, m->name_bytes) == 0 && m->line == n->line && strcmp(m->path, n->path) == 0);
        }
        sim_state_free(&state);
        vec_free(&prefix);
        vec_free(&events);
        film_free(&whole);
        film_free(&late);
    }
    CHECK(compared > 200);
}
