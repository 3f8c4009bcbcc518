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
    static const uint32_t hows[] = {0, HISTORY_UNWOUND, HISTORY_NOT_ENDED, HISTORY_NOT_ENDED}; /* by sim_closed */
    uint32_t flags = hows[s->closed] | (s->open_at_start ? HISTORY_OPEN_AT_START : 0u);
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
    size_t count = history_query_counted(h, a->track, a->depth, a->begin_ns, a->end_ns, a->resolution_ns, false, out, max, &visited);
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

/* The same of an answer by cells: at most two nodes begin in one, and the last node may hold spans from behind the window
 * that begin within a cell of its end. */
static void check_cells(const history *h, const plain_row *r, const asked *a)
{
    static history_node out[1 << 20];
    size_t max = sizeof out / sizeof *out, first = 0, end, next;
    size_t count = history_query_cells(h, a->track, a->depth, a->begin_ns, a->end_ns, a->resolution_ns, out, max);
    MUST(count < max, a);
    while (first < r->count && r->spans[first].end_ns <= a->begin_ns)
        first++;
    for (end = first; end < r->count && r->spans[end].begin_ns < a->end_ns; end++)
        ;
    bool has_spans = history_has_spans(h, a->track, a->depth, a->begin_ns, a->end_ns);
    if (first >= end) {
        for (size_t i = 0; i < count; i++)
            MUST(out[i].flags & HISTORY_EVICTED, a);
        MUST(has_spans == (count > 0), a);
        return;
    }
    MUST(count > 0 && has_spans, a);
    next = first_of_answer(r, &out[0], first);
    MUST(next == first || (out[0].flags & HISTORY_EVICTED), a);
    for (size_t i = 0; i < count; i++) {
        check_node(r, &out[i], &next, a);
        MUST(out[i].begin_ns < a->end_ns && out[i].end_ns > a->begin_ns, a);
        MUST(i == 0 || out[i].begin_ns >= out[i - 1].end_ns, a);
        MUST(i < 2 || out[i].begin_ns / a->resolution_ns != out[i - 2].begin_ns / a->resolution_ns, a);
    }
    MUST(next >= end, a);
    MUST(next == end || (out[count - 1].flags & HISTORY_EVICTED) || r->spans[next - 1].begin_ns - a->end_ns < a->resolution_ns, a);
}

/* Two windows whose ends are on cells: where both have cells before, they say the same. */
static void check_sliding(const history *h, const asked *a, uint64_t *state)
{
    static history_node wide[1 << 18], narrow[1 << 18];
    uint64_t cell = a->resolution_ns, cells = (a->end_ns - a->begin_ns) / cell;
    if (cells < 4 || cells > (1 << 16) || a->end_ns > UINT64_MAX / 2)
        return;
    uint64_t begin_ns = a->begin_ns / cell * cell, end_ns = begin_ns + cells * cell;
    uint64_t later_ns = begin_ns + cell * test_random_below(state, cells / 2), earlier_ns = end_ns - cell * test_random_below(state, cells / 2 - 1);
    size_t wide_count = history_query_cells(h, a->track, a->depth, begin_ns, end_ns, cell, wide, 1 << 18), i = 0;
    size_t narrow_count = history_query_cells(h, a->track, a->depth, later_ns, earlier_ns, cell, narrow, 1 << 18), k = 0;
    while (i < wide_count && wide[i].begin_ns < later_ns + cell)
        i++;
    while (k < narrow_count && narrow[k].begin_ns < later_ns + cell)
        k++;
    for (; k < narrow_count; i++, k++)
        MUST(i < wide_count && memcmp(&wide[i], &narrow[k], sizeof wide[i]) == 0, a);
    MUST(i == wide_count || wide[i].begin_ns >= earlier_ns, a);
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
    span.closed = test_random_below(state, 16) ? SIM_CLOSED_RETURN : (uint8_t)test_random_below(state, 4);
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
        if (a.begin_ns < a.end_ns && (a.end_ns - a.begin_ns) / a.resolution_ns < (1u << 18)) {
            check_query(h, r, &a);
            check_cells(h, r, &a);
            check_sliding(h, &a, state);
        }
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

/* --- one thing at a time ------------------------------------------------------------------------------------------ */

static sim_span span_of(uint64_t begin_ns, uint64_t end_ns, uint32_t value, uint32_t depth)
{
    return (sim_span){.begin_ns = begin_ns, .end_ns = end_ns, .value = value, .depth = depth};
}

static history *filled(const sim_span *spans, size_t count)
{
    history *h;
    CHECK_EQ(history_new(&h, (size_t)16 << 20), 0);
    CHECK_EQ(history_append(h, 0, spans, count), 0);
    return h;
}

TEST(too_small_a_budget_is_refused)
{
    history *h;
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN - 1), -EINVAL);
    CHECK(!h);
    history_delete(NULL);
}

TEST(an_empty_history_answers_nothing)
{
    history *h = filled(NULL, 0);
    history_node out;
    uint64_t begin_ns, end_ns;
    CHECK_EQ(history_query(h, 0, 0, 0, UINT64_MAX, 1, &out, 1), 0);
    CHECK_EQ(history_rows(h, 0), 0);
    CHECK_EQ(history_rows(h, SIM_TRACK_NONE), 0);
    CHECK(!history_extent(h, 0, &begin_ns, &end_ns));
    CHECK_EQ(history_append(h, SIM_TRACK_NONE, &(sim_span){.end_ns = 1}, 1), -ENOMEM);
    CHECK_EQ(history_stats_of(h).evicted_count, 1);
    history_delete(h);
}

TEST(spans_that_only_touch_the_window_are_left_out)
{
    sim_span spans[] = {span_of(10, 20, 1, 0), span_of(20, 30, 2, 0), span_of(30, 30, 3, 0), span_of(30, 40, 4, 0)};
    history *h = filled(spans, 4);
    history_node out[4];
    CHECK_EQ(history_query(h, 0, 0, 20, 30, 1, out, 4), 1);
    CHECK_EQ(out[0].value, 2);
    CHECK_EQ(history_query(h, 0, 0, 19, 31, 1, out, 4), 4);
    CHECK_EQ(history_query(h, 0, 0, 25, 25, 1, out, 4), 0);
    CHECK_EQ(history_query(h, 0, 0, 30, 20, 1, out, 4), 0);
    CHECK_EQ(history_query(h, 0, 1, 0, 100, 1, out, 4), 0);
    CHECK_EQ(history_query(h, 1, 0, 0, 100, 1, out, 4), 0);
    CHECK_EQ(history_query(h, 0, 0, 0, 100, 1, out, 0), 0);
    history_delete(h);
}

TEST(overlapping_spans_are_moved_up)
{
    sim_span spans[] = {span_of(10, 20, 1, 0), span_of(15, 30, 2, 0), span_of(5, 12, 3, 0), span_of(50, 40, 4, 0)};
    history *h = filled(spans, 4);
    history_node out[4];
    CHECK_EQ(history_query(h, 0, 0, 0, 100, 1, out, 4), 4);
    CHECK(out[1].begin_ns == 20 && out[1].end_ns == 30);
    CHECK(out[2].begin_ns == 30 && out[2].end_ns == 30);
    CHECK(out[3].begin_ns == 50 && out[3].end_ns == 50);
    uint64_t begin_ns, end_ns;
    CHECK(history_extent(h, 0, &begin_ns, &end_ns) && begin_ns == 10 && end_ns == 50);
    history_delete(h);
}

TEST(numbers_of_any_size_come_back_whole)
{
    uint64_t year = UINT64_C(1) << 55;
    sim_span spans[] = {span_of(1, 2, UINT32_MAX, 0), span_of(3, year, UINT32_MAX - 1, 0), span_of(year, UINT64_MAX, 0, 0)};
    spans[1].closed = SIM_CLOSED_UNWOUND;
    spans[1].open_at_start = 1;
    spans[2].closed = SIM_CLOSED_END;
    history *h = filled(spans, 3);
    history_node out[3];
    CHECK_EQ(history_query(h, 0, 0, 0, UINT64_MAX, 1, out, 3), 3);
    CHECK(out[0].value == UINT32_MAX && out[0].flags == 0 && out[0].end_ns == 2);
    CHECK(out[1].value == UINT32_MAX - 1 && out[1].flags == (HISTORY_UNWOUND | HISTORY_OPEN_AT_START));
    CHECK(out[1].begin_ns == 3 && out[1].end_ns == year && out[1].longest_ns == year - 3);
    CHECK(out[2].value == 0 && out[2].flags == HISTORY_NOT_ENDED && out[2].begin_ns == year && out[2].end_ns == UINT64_MAX);
    history_delete(h);
}

/* The time that the answer's value takes of the spans [first, first + n->span_count), and the most that any takes. */
static void value_times(const sim_span *first, const history_node *n, uint64_t *its, uint64_t *most)
{
    *its = *most = 0;
    for (uint64_t i = 0; i < n->span_count; i++) {
        uint64_t sum = 0;
        for (uint64_t j = 0; j < n->span_count; j++)
            if (first[j].value == first[i].value)
                sum += first[j].end_ns - first[j].begin_ns;
        *most = sum > *most ? sum : *most;
        if (first[i].value == n->value)
            *its = sum;
    }
}

TEST(the_dominant_of_sixteen_spans_is_exact)
{
    uint64_t first_seed = test_seed(1);
    for (uint64_t seed = first_seed; seed < first_seed + 2000; seed++) {
        uint64_t state = seed * 77 + 1, now = test_random(&state) >> 20;
        uint64_t longest = UINT64_C(1) << test_random_below(&state, 36), gap = test_random_below(&state, 2) * 10;
        uint32_t values = 1 + (uint32_t)test_random_below(&state, 16);
        sim_span spans[17];
        for (int i = 0; i < 17; i++) {
            now += gap;
            spans[i] = span_of(now, now + test_random_below(&state, longest), (uint32_t)test_random_below(&state, values), 0);
            spans[i].closed = (uint8_t)test_random_below(&state, 2); /* flags share the value's word */
            now = spans[i].end_ns;
        }
        spans[16].begin_ns += UINT64_C(1) << 60; /* far away, and the group before it gets its node */
        spans[16].end_ns = spans[16].begin_ns + 1;
        history *h = filled(spans, 17);
        history_node out[2];
        CHECK_EQ(history_query(h, 0, 0, 0, UINT64_MAX, UINT64_C(1) << 59, out, 2), 2);
        uint64_t its, most;
        value_times(spans, &out[0], &its, &most);
        if (out[0].span_count != 16 || its != most)
            TEST_FAILED("value %u takes %" PRIu64 " ns, another %" PRIu64 " (seed %" PRIu64 ")", out[0].value, its, most, seed);
        history_delete(h);
    }
}

TEST(what_values_0_and_1_take_is_known_at_every_level)
{
    enum { SPANS = 5000 };
    static sim_span spans[SPANS];
    static history_node out[SPANS + 1];
    uint64_t first_seed = test_seed(1);
    for (uint64_t seed = first_seed; seed < first_seed + 20; seed++) {
        uint64_t state = seed * 55 + 3, now = test_random(&state) >> 20, longest = UINT64_C(1) << (4 + test_random_below(&state, 32));
        for (int i = 0; i < SPANS; i++) {
            spans[i] = span_of(now, now + 1 + test_random_below(&state, longest), (uint32_t)test_random_below(&state, HISTORY_STATE_MAX + 1), 0);
            now = spans[i].end_ns;
        }
        history *h = filled(spans, SPANS);
        for (uint64_t resolution_ns = 1; resolution_ns < now; resolution_ns = resolution_ns * 7 + 1) {
            size_t count = history_query(h, 0, 0, 0, UINT64_MAX, resolution_ns, out, SPANS + 1), at = 0;
            for (size_t i = 0; i < count; i++) {
                double want[2] = {0, 0}, slack = 4 + (double)out[i].busy_ns * 1e-4;
                for (uint64_t n = 0; n < out[i].span_count; n++, at++)
                    if (spans[at].value < 2)
                        want[spans[at].value] += (double)(spans[at].end_ns - spans[at].begin_ns);
                for (int value = 0; value < 2; value++) {
                    double off = (double)out[i].of_ns[value] - want[value];
                    if (off > slack || -off > slack)
                        TEST_FAILED("value %d takes %" PRIu64 " ns, not %.0f (seed %" PRIu64 ")", value, out[i].of_ns[value], want[value], seed);
                }
            }
            CHECK_EQ(at, SPANS);
        }
        history_delete(h);
    }
}

TEST(empty_spans_alone_give_one_of_their_values)
{
    sim_span spans[300];
    for (uint32_t i = 0; i < 300; i++)
        spans[i] = span_of(10, 10, 5 + i % 2, 0);
    history *h = filled(spans, 300);
    history_node out[2];
    CHECK_EQ(history_query(h, 0, 0, 0, 20, 1, out, 2), 1);
    CHECK(out[0].span_count == 300 && out[0].busy_ns == 0 && (out[0].value == 5 || out[0].value == 6));
    history_delete(h);
}

TEST(at_a_resolution_of_nothing_each_span_comes_by_itself)
{
    enum { COUNT = 5000 };
    static sim_span spans[COUNT];
    static history_node out[COUNT + 1];
    for (uint32_t i = 0; i < COUNT; i++) /* two of no length, one of 1 ns, one after another */
        spans[i] = span_of(10 + i / 3, 10 + i / 3 + (i % 3 == 2), i, 0);
    history *h = filled(spans, COUNT);
    CHECK_EQ(history_query(h, 0, 0, 0, UINT64_MAX, 0, out, COUNT + 1), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_EQ(out[i].span_count, 1);
        CHECK_EQ(out[i].value, i);
    }
    CHECK(history_query(h, 0, 0, 0, UINT64_MAX, 1, out, COUNT + 1) < COUNT);
    history_delete(h);
}

TEST(a_busy_value_dominates_all_the_way_up)
{
    history *h;
    CHECK_EQ(history_new(&h, (size_t)64 << 20), 0);
    for (uint64_t i = 0; i < 100000; i++) { /* 7 takes a third of the time, 200 others share the rest */
        sim_span s = i % 3 ? span_of(i * 10, i * 10 + 9, 100 + (uint32_t)(i * 7919 % 200), 0) : span_of(i * 10, i * 10 + 9, 7, 0);
        CHECK_EQ(history_append(h, 0, &s, 1), 0);
    }
    history_node out[64];
    size_t count = history_query(h, 0, 0, 0, UINT64_MAX, 100000, out, 64);
    CHECK(count >= 10 && count < 64);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(out[i].value, 7);
    history_delete(h);
}

TEST(asking_on_from_the_last_end_gives_the_same_answer_in_parts)
{
    history *h;
    uint64_t state = 99, now = 0;
    CHECK_EQ(history_new(&h, (size_t)64 << 20), 0);
    for (int i = 0; i < 20000; i++) {
        now += test_random_below(&state, 50);
        sim_span s = span_of(now, now + 1 + test_random_below(&state, 1000), 0, 0);
        now = s.end_ns;
        CHECK_EQ(history_append(h, 0, &s, 1), 0);
    }
    uint64_t resolutions[] = {1, 700, 20000};
    for (int r = 0; r < 3; r++) {
        static history_node all[40000], part[7];
        size_t count = history_query(h, 0, 0, 100, now, resolutions[r], all, 40000), done = 0, got;
        uint64_t from = 100;
        do {
            got = history_query(h, 0, 0, from, now, resolutions[r], part, 7);
            CHECK(done + got <= count);
            for (size_t i = 0; i < got; i++)
                CHECK(memcmp(&all[done + i], &part[i], sizeof part[i]) == 0);
            done += got;
            from = got ? part[got - 1].end_ns : now;
        } while (got == 7);
        CHECK_EQ(done, count);
    }
    history_delete(h);
}

TEST(a_dense_row_costs_a_few_nodes_a_pixel_at_any_zoom)
{
    history *h;
    CHECK_EQ(history_new(&h, (size_t)256 << 20), 0);
    enum { RUN = 1000 };
    sim_span run[RUN];
    uint64_t now = 0;
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < RUN; j++, now += 10)
            run[j] = span_of(now, now + 8, (uint32_t)j, 0);
        CHECK_EQ(history_append(h, 0, run, RUN), 0);
    }
    static history_node out[5000];
    for (uint64_t width = now; width > 2000 * 160; width = width / 3 * 2) {
        uint64_t visited, begin_ns = (now - width) / 2;
        size_t count = history_query_counted(h, 0, 0, begin_ns, begin_ns + width, width / 1000, false, out, 5000, &visited);
        CHECK(count >= 500 && count <= 2100);
        CHECK(visited <= 8000 && visited >= count);
    }
    history_delete(h);
}
