/* The history at its limits: full budgets, many rows, no memory. */
#include "base/mem.h"
#include "history/store.h"
#include "test.h"

#include <errno.h>

#define DEPTHS 24u

/* A program whose stack depth walks at random. */
typedef struct program {
    uint64_t state, now_ns;
    uint64_t open_ns[DEPTHS];
    uint32_t depth;
    uint64_t busy_ns[DEPTHS], count[DEPTHS]; /* of what it gave out, by depth */
} program;

static void program_run(program *p, sim_span *spans, size_t count)
{
    for (size_t i = 0; i < count;) {
        uint64_t r = test_random(&p->state);
        p->now_ns += 1 + (r & 127);
        if (p->depth == 0 || (p->depth < DEPTHS && (r >> 32 & 1))) {
            p->open_ns[p->depth++] = p->now_ns;
            continue;
        }
        uint32_t depth = --p->depth;
        spans[i++] = (sim_span){.begin_ns = p->open_ns[depth], .end_ns = p->now_ns, .value = (uint32_t)(r >> 40 & 255), .depth = depth};
        p->busy_ns[depth] += p->now_ns - p->open_ns[depth];
        p->count[depth]++;
    }
}

/* Every row still tells the busy time of all spans ever, at any resolution. */
static void check_sums(const history *h, uint32_t track, const program *p)
{
    static history_node out[1 << 16];
    for (uint32_t depth = 0; depth < DEPTHS; depth++)
        for (uint64_t pixels = 1; pixels <= 10000; pixels *= 100) {
            size_t count = history_query(h, track, depth, 0, UINT64_MAX, p->now_ns / pixels + 1, out, 1 << 16);
            CHECK(count < 1 << 16);
            uint64_t busy = 0, spans = 0, end_ns = 0;
            for (size_t i = 0; i < count; i++) {
                CHECK(out[i].begin_ns >= end_ns && out[i].end_ns >= out[i].begin_ns);
                CHECK(out[i].busy_ns <= out[i].end_ns - out[i].begin_ns && out[i].longest_ns <= out[i].busy_ns);
                end_ns = out[i].end_ns;
                busy += out[i].busy_ns;
                spans += out[i].span_count;
            }
            CHECK_EQ(busy, p->busy_ns[depth]);
            CHECK_EQ(spans, p->count[depth]);
        }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static size_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long total = 0, resident = 0;
    CHECK(f && fscanf(f, "%lu %lu", &total, &resident) == 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_THREAD__)
enum { RUN = 5000, RUNS = 1500 }; /* slow there, and there is one thread only */
#else
enum { RUN = 5000, RUNS = 10000 };
#endif

TEST(fifty_million_spans_stay_inside_the_budget_and_keep_their_sums)
{
    static sim_span run[RUN];
    size_t budget = (size_t)32 << 20, before = resident_bytes(), least_used = SIZE_MAX;
    program p = {.state = test_seed(5), .now_ns = 1};
    history *h;
    CHECK_EQ(history_new(&h, budget), 0);
    for (int i = 0; i < RUNS; i++) {
        program_run(&p, run, RUN);
        CHECK_EQ(history_append(h, 0, run, RUN), 0);
        history_stats s = history_stats_of(h);
        CHECK(s.used_bytes <= budget);
        least_used = i > RUNS / 2 && s.used_bytes < least_used ? s.used_bytes : least_used;
    }
    history_stats s = history_stats_of(h);
    CHECK(least_used > budget - budget / 8); /* it is used, too */
    CHECK_EQ(s.span_count, (uint64_t)RUN * RUNS);
    CHECK(s.span_count - s.evicted_count > 500 * 1000); /* a good share of it for detail: a third is 900,000 spans */
    CHECK(s.evicted_end_ns > p.now_ns / 2 && s.evicted_end_ns < p.now_ns);
    size_t grown = resident_bytes() - before;
    CHECK(grown < budget + budget / 10 || SANITIZED); /* what the sanitizers add is no business of the store's */
    check_sums(h, 0, &p);
    history_delete(h);
}

TEST(the_oldest_detail_goes_first_across_rows)
{
    history *h;
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), 0);
    /* Track 0 stops early, in the midst of a chunk; track 1 goes on. */
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_EQ(history_append(h, 0, &(sim_span){.begin_ns = i * 10, .end_ns = i * 10 + 5}, 1), 0);
    for (uint64_t i = 1000; i < 200000; i++)
        CHECK_EQ(history_append(h, 1, &(sim_span){.begin_ns = i * 10, .end_ns = i * 10 + 5}, 1), 0);
    history_stats s = history_stats_of(h);
    CHECK(s.evicted_count > 100000 && s.evicted_end_ns > 10000);
    /* Everything that ended before the oldest detail of track 1 is merged, but for the last group of track 0. */
    static history_node out[1000];
    size_t count = history_query(h, 0, 0, 0, UINT64_MAX, 1, out, 1000);
    CHECK(count < 1000);
    uint64_t singles = 0, spans = 0;
    for (size_t i = 0; i < count; i++) {
        singles += out[i].span_count == 1;
        spans += out[i].span_count;
        CHECK((out[i].span_count > 1) == (out[i].flags == HISTORY_EVICTED));
    }
    CHECK_EQ(spans, 1000);
    CHECK(singles <= 16);
    /* No detail is missing after evicted_end_ns. */
    count = history_query(h, 1, 0, s.evicted_end_ns, s.evicted_end_ns + 5000, 1, out, 1000);
    CHECK(count == 500 || count == 499);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(out[i].flags, 0);
    history_delete(h);
}

TEST(a_row_that_was_idle_goes_on_after_its_tail_was_evicted)
{
    history *h;
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), 0);
    uint64_t now = 0, busy = 0, state = 3, idle_count = 0;
    for (int round = 0; round < 40; round++) {
        uint64_t burst = 1 + test_random_below(&state, 400);
        for (uint64_t i = 0; i < burst; i++, now += 10, busy += 7, idle_count++)
            CHECK_EQ(history_append(h, 0, &(sim_span){.begin_ns = now, .end_ns = now + 7}, 1), 0);
        for (int i = 0; i < 60000; i++, now += 10)
            CHECK_EQ(history_append(h, 1, &(sim_span){.begin_ns = now, .end_ns = now + 7}, 1), 0);
    }
    static history_node out[20000];
    size_t count = history_query(h, 0, 0, 0, UINT64_MAX, 1, out, 20000);
    uint64_t sum = 0, spans = 0;
    for (size_t i = 0; i < count; i++) {
        sum += out[i].busy_ns;
        spans += out[i].span_count;
    }
    CHECK_EQ(sum, busy);
    CHECK_EQ(spans, idle_count);
    CHECK(history_stats_of(h).used_bytes <= HISTORY_BUDGET_MIN);
    history_delete(h);
}

TEST(deep_stacks_cost_little_a_row)
{
    enum { DEEP = 100000 };
    history *h;
    CHECK_EQ(history_new(&h, (size_t)64 << 20), 0);
    for (uint32_t depth = DEEP; depth-- > 0;)
        CHECK_EQ(history_append(h, 0, &(sim_span){.begin_ns = depth, .end_ns = 2 * DEEP - depth, .value = depth, .depth = depth}, 1), 0);
    history_stats s = history_stats_of(h);
    CHECK_EQ(history_rows(h, 0), DEEP);
    CHECK_EQ(s.row_count, DEEP);
    CHECK(s.used_bytes / DEEP < 160);
    for (uint32_t depth = 0; depth < DEEP; depth += 99) {
        history_node n;
        CHECK_EQ(history_query(h, 0, depth, 0, UINT64_MAX, 1, &n, 1), 1);
        CHECK(n.value == depth && n.begin_ns == depth && n.end_ns == 2 * DEEP - depth);
    }
    history_delete(h);
}

TEST(thousands_of_tracks_cost_little_each)
{
    enum { MANY = 5000 };
    history *h;
    CHECK_EQ(history_new(&h, (size_t)64 << 20), 0);
    for (uint32_t track = 0; track < MANY; track++)
        for (uint32_t depth = 0; depth < 3; depth++)
            CHECK_EQ(history_append(h, track, &(sim_span){.begin_ns = track, .end_ns = track + 1, .depth = depth}, 1), 0);
    CHECK(history_stats_of(h).used_bytes / MANY < 1024);
    CHECK_EQ(history_rows(h, MANY - 1), 3);
    history_delete(h);
}

TEST(insane_depths_are_counted_not_kept)
{
    history *h;
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), 0);
    sim_span spans[] = {{.end_ns = 1, .depth = UINT32_MAX - 1}, {.end_ns = 1, .depth = STORE_ROWS_MAX}, {.end_ns = 1, .depth = STORE_ROWS_MAX - 1}, {.end_ns = 1}};
    CHECK_EQ(history_append(h, 0, spans, 4), 0);
    history_stats s = history_stats_of(h);
    CHECK_EQ(s.span_count, 4);
    CHECK_EQ(s.evicted_count, 2);
    CHECK_EQ(s.row_count, 2);
    CHECK_EQ(history_rows(h, 0), STORE_ROWS_MAX);
    CHECK(s.used_bytes <= s.budget_bytes);
    history_node n;
    CHECK_EQ(history_query(h, 0, STORE_ROWS_MAX - 1, 0, 10, 1, &n, 1), 1);
    CHECK_EQ(history_query(h, 0, 5000, 0, 10, 1, &n, 1), 0);
    CHECK_EQ(history_query(h, 0, UINT32_MAX, 0, 10, 1, &n, 1), 0);
    history_delete(h);
}

/* Spans of many rows, one by one, some refused: what was taken must be there, and nothing else. */
/* How many were refused. */
static uint64_t run_without_memory(uint64_t seed, unsigned every, size_t budget_bytes, uint32_t tracks, uint32_t depths, size_t span_count)
{
    uint64_t state = seed * 1000 + every + 1, refused = 0, forgotten = 0;
    uint64_t *busy = calloc((size_t)tracks * depths, sizeof *busy), *now = calloc((size_t)tracks * depths, sizeof *now);
    CHECK(busy && now);
    history *h;
    mem_fail_every(0);
    CHECK_EQ(history_new(&h, budget_bytes), 0);
    mem_fail_every(every);
    for (size_t i = 0; i < span_count; i++) {
        uint32_t track = (uint32_t)test_random_below(&state, tracks), depth = (uint32_t)test_random_below(&state, depths);
        size_t at = (size_t)track * depths + depth;
        sim_span s = {.begin_ns = now[at] + test_random_below(&state, 100), .depth = depth, .value = (uint32_t)i};
        s.end_ns = s.begin_ns + test_random_below(&state, test_random_below(&state, 50) ? 100 : UINT64_C(1) << 34);
        int error = history_append(h, track, &s, 1);
        CHECK(error == 0 || error == -ENOMEM);
        refused += error != 0;
        if (error == 0) {
            busy[at] += s.end_ns - s.begin_ns;
            now[at] = s.end_ns;
        }
        if (i % 1000 == 0)
            CHECK(history_stats_of(h).used_bytes <= budget_bytes);
        /* Tracks that were forgotten before this append have lost everything, and may have begun anew. */
        for (; forgotten < h->forgotten_count; forgotten = h->forgotten_count)
            for (uint32_t t = 0; t < tracks; t++)
                if (t != track && history_rows(h, t) == 0)
                    memset(&busy[(size_t)t * depths], 0, depths * sizeof *busy);
    }
    mem_fail_every(0);
    history_stats s = history_stats_of(h);
    CHECK_EQ(s.span_count, span_count);
    CHECK(s.evicted_count >= refused);
    static history_node out[1 << 16];
    for (uint32_t track = 0; track < tracks; track++)
        for (uint32_t depth = 0; depth < depths; depth++)
            for (uint64_t resolution_ns = 1; resolution_ns < UINT64_C(1) << 40; resolution_ns <<= 19) {
                size_t count = history_query(h, track, depth, 0, UINT64_MAX, resolution_ns, out, 1 << 16);
                uint64_t sum = 0;
                for (size_t i = 0; i < count; i++)
                    sum += out[i].busy_ns;
                if (sum != busy[(size_t)track * depths + depth])
                    TEST_FAILED("track %u depth %u: %" PRIu64 " ns, wanted %" PRIu64 " (seed %" PRIu64 ", every %u)", track, depth, sum,
                                busy[(size_t)track * depths + depth], seed, every);
            }
    history_delete(h);
    free(busy);
    free(now);
    return refused;
}

TEST(the_store_stays_sound_when_allocations_fail)
{
    uint64_t seed = test_seed(1);
    for (unsigned every = 1; every < 20; every++) {
        run_without_memory(seed, every, (size_t)8 << 20, 5, 9, 20000);
        run_without_memory(seed, every, (size_t)8 << 20, 700, 60, 20000);
    }
}

TEST(a_budget_that_rows_alone_use_up_refuses_spans_and_stays_sound)
{
    uint64_t seed = test_seed(1);
    CHECK(run_without_memory(seed, 0, HISTORY_BUDGET_MIN, 1, 20000, 60000) > 0);
    CHECK(run_without_memory(seed, 3, HISTORY_BUDGET_MIN, 1, 2000, 60000) > 0);
    for (uint32_t depths = 100; depths < 900; depths += 200) /* tails grow, are trimmed and grow again, or cannot */
        (void)run_without_memory(seed, depths % 3 * 3, HISTORY_BUDGET_MIN, 1, depths, 60000);
    CHECK_EQ(run_without_memory(seed, 0, HISTORY_BUDGET_MIN, 1, 100, 100000), 0);
}

TEST(tracks_without_end_make_the_oldest_ones_go)
{
    uint64_t seed = test_seed(1);
    CHECK_EQ(run_without_memory(seed, 0, HISTORY_BUDGET_MIN, 1000, 9, 30000), 0);
    CHECK_EQ(run_without_memory(seed, 0, HISTORY_BUDGET_MIN, 30, 1000, 60000), 0);
    (void)run_without_memory(seed, 3, HISTORY_BUDGET_MIN, 100, 20, 60000);

    /* A thread for every request, each with 20 rows of 20 spans, beside one that lives on. */
    history *h;
    uint64_t now = 0, busy = 0;
    CHECK_EQ(history_new(&h, (size_t)4 << 20), 0);
    for (uint32_t request = 1; request < 2500; request++) {
        for (uint32_t i = 0; i < 20; i++)
            for (uint32_t depth = 0; depth < 20; depth++, now += 10)
                CHECK_EQ(history_append(h, request, &(sim_span){.begin_ns = now, .end_ns = now + 5, .depth = depth}, 1), 0);
        CHECK_EQ(history_append(h, 0, &(sim_span){.begin_ns = now, .end_ns = now + 5}, 1), 0);
        busy += 5;
    }
    history_node n;
    uint64_t begin_ns, end_ns;
    CHECK_EQ(history_query(h, 0, 0, 0, UINT64_MAX, UINT64_MAX, &n, 1), 1);
    CHECK(n.busy_ns == busy && n.span_count == 2499);
    CHECK_EQ(history_rows(h, 1), 0);
    CHECK(!history_extent(h, 1, &begin_ns, &end_ns));
    CHECK_EQ(history_rows(h, 2499), 20);
    uint32_t oldest = 2499;
    while (history_rows(h, oldest) == 20)
        oldest--;
    CHECK(2499 - oldest > 100 && 2499 - oldest < 1000); /* half of the memory at least is used for them */
    for (; oldest > 0; oldest--)
        CHECK_EQ(history_rows(h, oldest), 0); /* in the order of their ends */
    CHECK(history_stats_of(h).used_bytes <= (size_t)4 << 20);
    history_delete(h);
}

TEST(no_memory_at_the_start_is_an_answer)
{
    history *h;
    mem_fail_every(1);
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), -ENOMEM);
    CHECK(!h);
    mem_fail_every(0);
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), 0);
    mem_fail_every(1);
    CHECK_EQ(history_append(h, 3, &(sim_span){.end_ns = 1}, 1), -ENOMEM);
    CHECK_EQ(history_append(h, 3, &(sim_span){.end_ns = 1}, 1), -ENOMEM);
    CHECK_EQ(history_stats_of(h).evicted_count, 2);
    mem_fail_every(0);
    CHECK_EQ(history_append(h, 3, &(sim_span){.end_ns = 1}, 1), 0);
    history_delete(h);
}
