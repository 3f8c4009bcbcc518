/* The history against a slow obvious one: arrays of every span, walked from end to end. */
#include "base/mem.h"
#include "history/store.h"
#include "test.h"

#include <errno.h>

/* --- the obvious one ------------------------------------------------------------------------------------------- */

typedef struct plain_span {
    uint64_t begin_ns, end_ns;
    uint32_t value, flags;
} plain_span;

typedef struct plain_row {
    plain_span *spans;
    size_t count, limit;
    uint64_t last_end_ns;
} plain_row;

#define TRACKS 3u
#define ROWS 8u
typedef struct plain {
    plain_row rows[TRACKS][ROWS];
} plain;

static void plain_append(plain *p, uint32_t track, const sim_span *s)
{
    plain_row *r = &p->rows[track][s->depth];
    if (r->count == r->limit) {
        r->limit = r->limit ? r->limit * 2 : 64;
        r->spans = realloc(r->spans, r->limit * sizeof *r->spans);
        CHECK(r->spans);
    }
    uint64_t begin_ns = s->begin_ns > r->last_end_ns ? s->begin_ns : r->last_end_ns;
    uint64_t end_ns = s->end_ns > begin_ns ? s->end_ns : begin_ns;
    uint32_t flags = (s->closed != SIM_CLOSED_RETURN ? HISTORY_UNWOUND : 0u) | (s->open_at_start ? HISTORY_OPEN_AT_START : 0u);
    r->spans[r->count++] = (plain_span){begin_ns, end_ns, s->value, flags};
    r->last_end_ns = end_ns;
}

static void plain_free(plain *p)
{
    for (uint32_t t = 0; t < TRACKS; t++)
        for (uint32_t d = 0; d < ROWS; d++)
            free(p->rows[t][d].spans);
}

/* --- what must hold of an answer -------------------------------------------------------------------------------- */

#define SHOW " (seed %" PRIu64 ", track %u, depth %u, [%" PRIu64 ", %" PRIu64 ") at %" PRIu64 ")"
typedef struct asked {
    uint64_t seed, begin_ns, end_ns, resolution_ns;
    uint32_t track, depth;
} asked;
#define MUST(x, a)                                                                                                       \
    do {                                                                                                                 \
        if (!(x))                                                                                                        \
            TEST_FAILED("not true: %s" SHOW, #x, (a)->seed, (a)->track, (a)->depth, (a)->begin_ns, (a)->end_ns,          \
                        (a)->resolution_ns);                                                                             \
    } while (0)

/* The node is exactly the sum of some spans that follow one another, from *next on. */
static void check_node(const plain_row *r, const history_node *n, size_t *next, const asked *a)
{
    MUST(*next < r->count && n->span_count >= 1 && *next + n->span_count <= r->count, a);
    const plain_span *first = &r->spans[*next], *last = first + n->span_count - 1;
    uint64_t busy = 0, longest = 0;
    bool has_value = false;
    for (const plain_span *s = first; s <= last; s++) {
        uint64_t duration = s->end_ns - s->begin_ns;
        busy += duration;
        longest = duration > longest ? duration : longest;
        has_value |= s->value == n->value;
    }
    MUST(n->begin_ns == first->begin_ns && n->end_ns == last->end_ns, a);
    MUST(n->busy_ns == busy && n->longest_ns == longest, a);
    MUST(has_value, a);
    if (n->span_count == 1 && !(n->flags & HISTORY_EVICTED))
        MUST(n->flags == first->flags, a);
    else if (!(n->flags & HISTORY_EVICTED))
        MUST(n->end_ns - n->begin_ns <= a->resolution_ns && n->flags == 0, a);
    *next += n->span_count;
}

/* Which span does an answer begin with? At or before first; before it only when detail is gone. */
static size_t first_of_answer(const plain_row *r, const history_node *n, size_t first)
{
    if (!(n->flags & HISTORY_EVICTED))
        return first;
    /* Empty spans may share a begin: it is a node, so it begins at a 16th and ends where it says. */
    for (size_t i = 0; i <= first; i += STORE_GROUP)
        if (r->spans[i].begin_ns == n->begin_ns && i + n->span_count <= r->count && i + n->span_count > first &&
            r->spans[i + n->span_count - 1].end_ns == n->end_ns)
            return i;
    return SIZE_MAX;
}

static void check_query(const history *h, const plain_row *r, const asked *a)
{
    static history_node out[1 << 20];
    uint64_t visited;
    size_t max = sizeof out / sizeof *out;
    size_t count = history_query_counted(h, a->track, a->depth, a->begin_ns, a->end_ns, a->resolution_ns, out, max, &visited);
    MUST(count < max, a);

    size_t first = 0, end; /* the spans that it must speak of: they intersect the window */
    while (first < r->count && r->spans[first].end_ns <= a->begin_ns)
        first++;
    for (end = first; end < r->count && r->spans[end].begin_ns < a->end_ns; end++)
        ;
    if (first >= end) {
        for (size_t i = 0; i < count; i++)
            MUST(out[i].flags & HISTORY_EVICTED, a);
        return;
    }
    MUST(count > 0, a);
    size_t next = first_of_answer(r, &out[0], first);
    MUST(next == first || (out[0].flags & HISTORY_EVICTED), a);
    for (size_t i = 0; i < count; i++) {
        check_node(r, &out[i], &next, a);
        MUST(out[i].begin_ns < a->end_ns && out[i].end_ns > a->begin_ns, a);
        if (i > 0)
            MUST(out[i].begin_ns >= out[i - 1].end_ns && out[i].end_ns - out[i - 1].begin_ns > a->resolution_ns, a);
    }
    MUST(next >= end, a);
    MUST(next == end || (out[count - 1].flags & HISTORY_EVICTED), a);

    /* Cost: by pixels and levels, whatever lies below. */
    uint64_t from = r->spans[first].begin_ns > a->begin_ns ? r->spans[first].begin_ns : a->begin_ns;
    uint64_t to = r->spans[end - 1].end_ns < a->end_ns ? r->spans[end - 1].end_ns : a->end_ns;
    uint64_t pixels = (to - from) / a->resolution_ns, levels = row_level_count(history_row(h, a->track, a->depth));
    MUST(count <= 2 * pixels + 4, a);
    MUST(visited / (STORE_FANOUT * levels + STORE_GROUP) <= pixels + 4, a);
}

/* --- random rows ------------------------------------------------------------------------------------------------ */

typedef struct source {
    uint64_t state;
    uint64_t scale_ns;    /* usual length of a span */
    uint64_t now_ns[TRACKS][ROWS];
} source;

/* A power of two at most, so that lengths differ by magnitudes. */
static uint64_t random_length(uint64_t *state, uint64_t scale_ns)
{
    uint64_t kind = test_random_below(state, 64);
    if (kind == 0)
        return test_random(state) >> (8 + test_random_below(state, 56)) >> 8; /* up to years */
    if (kind < 8)
        return 0;
    if (kind < 16)
        return test_random_below(state, 64 * scale_ns);
    return test_random_below(state, scale_ns);
}

static sim_span random_span(source *s, uint32_t track)
{
    uint64_t *state = &s->state;
    sim_span span = {.depth = (uint32_t)test_random_below(state, ROWS)};
    span.depth = span.depth * span.depth / ROWS; /* shallow rows get more */
    uint64_t *now = &s->now_ns[track][span.depth];
    uint64_t gap = random_length(state, s->scale_ns), length = random_length(state, s->scale_ns);
    if (*now > UINT64_MAX / 2) /* years add up */
        gap = length = 1;
    span.begin_ns = *now + gap;
    span.end_ns = span.begin_ns + length;
    *now = span.end_ns;
    if (test_random_below(state, 32) == 0) /* runs backwards */
        span.begin_ns -= test_random_below(state, span.begin_ns + 1);
    if (test_random_below(state, 64) == 0)
        span.end_ns = span.begin_ns - test_random_below(state, span.begin_ns + 1);
    span.value = test_random_below(state, 200) ? (uint32_t)test_random_below(state, 5) : (uint32_t)test_random(state);
    span.closed = test_random_below(state, 16) ? SIM_CLOSED_RETURN : (uint8_t)test_random_below(state, 3);
    span.open_at_start = test_random_below(state, 64) == 0;
    return span;
}

static uint64_t some_time(uint64_t *state, const plain_row *r)
{
    const plain_span *s = &r->spans[test_random_below(state, r->count)];
    switch (test_random_below(state, 4)) {
    case 0: return s->begin_ns;
    case 1: return s->end_ns;
    case 2: return s->begin_ns + (s->end_ns - s->begin_ns) / 2;
    default: return test_random(state) >> test_random_below(state, 64);
    }
}

static void check_all(const history *h, const plain *p, uint64_t seed, uint64_t *state, int query_count)
{
    for (int i = 0; i < query_count; i++) {
        asked a = {.seed = seed, .track = (uint32_t)test_random_below(state, TRACKS)};
        a.depth = (uint32_t)test_random_below(state, ROWS);
        const plain_row *r = &p->rows[a.track][a.depth];
        if (r->count == 0)
            continue;
        uint64_t x = some_time(state, r), y = some_time(state, r);
        a.begin_ns = x < y ? x : y;
        a.end_ns = x < y ? y : x;
        if (test_random_below(state, 4) == 0) {
            a.begin_ns = 0;
            a.end_ns = UINT64_MAX;
        }
        uint64_t pixels = 1 + test_random_below(state, 5000);
        a.resolution_ns = test_random_below(state, 3) ? (a.end_ns - a.begin_ns) / pixels + 1 : 1 + (test_random(state) >> test_random_below(state, 64));
        if (a.begin_ns < a.end_ns && (a.end_ns - a.begin_ns) / a.resolution_ns < (1u << 18))
            check_query(h, r, &a);
    }
}

/* budget_bytes small: most is evicted. */
static void run_random(uint64_t seed, size_t budget_bytes, size_t span_count, int query_count)
{
    source s = {.state = seed * 2654435761u + 1, .scale_ns = UINT64_C(1) << (seed % 24)};
    static plain p;
    memset(&p, 0, sizeof p);
    history *h;
    CHECK_EQ(history_new(&h, budget_bytes), 0);
    for (size_t done = 0; done < span_count;) {
        uint32_t track = (uint32_t)test_random_below(&s.state, TRACKS);
        sim_span run[64];
        size_t count = 1 + test_random_below(&s.state, 64);
        for (size_t i = 0; i < count; i++) {
            run[i] = random_span(&s, track);
            plain_append(&p, track, &run[i]);
        }
        CHECK_EQ(history_append(h, track, run, count), 0);
        done += count;
        if (test_random_below(&s.state, span_count / 512 + 1) == 0)
            check_all(h, &p, seed, &s.state, 2);
    }
    check_all(h, &p, seed, &s.state, query_count);
    history_stats stats = history_stats_of(h);
    CHECK(stats.used_bytes <= stats.budget_bytes);
    size_t total = 0;
    for (uint32_t t = 0; t < TRACKS; t++)
        for (uint32_t d = 0; d < ROWS; d++) {
            total += p.rows[t][d].count;
            CHECK(p.rows[t][d].count == 0 || d < history_rows(h, t));
        }
    CHECK_EQ(stats.span_count, total);
    if (budget_bytes > span_count * 64)
        CHECK_EQ(stats.evicted_count, 0);
    history_delete(h);
    plain_free(&p);
}

TEST(every_answer_is_the_exact_sum_of_the_spans_in_its_window)
{
    uint64_t first = test_seed(1), count = getenv("TEST_SEED") ? 1 : 60;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_random(seed, (size_t)64 << 20, 1 + seed % 7 * seed % 11 * 400, 60);
}

TEST(sums_stay_exact_after_eviction)
{
    uint64_t first = test_seed(1), count = getenv("TEST_SEED") ? 1 : 12;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_random(seed, HISTORY_BUDGET_MIN, 200000, 60);
}
