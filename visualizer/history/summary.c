#include "history/store.h"

#include <string.h>

/* Four lanes at once. Written out, as gcc 12 unrolls the plain loops before it could make vectors of them: 5 times faster. */
typedef uint32_t quad __attribute__((vector_size(16)));
typedef int32_t quad_mask __attribute__((vector_size(16)));
#define QUADS (STORE_GROUP / 4)

/* Durations below this sum up within a group to less than 2^31, so that quads compare as signed numbers. */
#define GROUP_DURATION_LIMIT (UINT32_C(1) << 27)

static quad load(const uint32_t *words)
{
    quad q;
    memcpy(&q, words, sizeof q);
    return q;
}

static quad fill(uint32_t x) { return (quad){x, x, x, x}; }
static quad choose(quad mask, quad a, quad b) { return (mask & a) | (~mask & b); }
static quad is_greater(quad a, quad b) { return (quad)((quad_mask)a > (quad_mask)b); }

static uint32_t sum_of(quad q) { return q[0] + q[1] + q[2] + q[3]; }

/* The greatest of four lanes, and what lies beside it. */
static uint32_t greatest_of(quad q, quad beside, uint32_t *its)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < 4; i++)
        best = q[i] > q[best] ? i : best;
    *its = beside[best];
    return q[best];
}

/* Which value takes the most time when none takes half of it: every lane sums the durations of all that have its value. */
static uint32_t dominant_of(const quad *value, const uint32_t *value_words, uint32_t *most)
{
    quad time[QUADS] = {{0}};
    const uint32_t *durations = value_words - STORE_GROUP;
    for (uint32_t lane = 0; lane < STORE_GROUP; lane++) {
        quad its_value = fill(value_words[lane] >> STORE_FLAG_BITS), its_duration = fill(durations[lane]);
        for (uint32_t i = 0; i < QUADS; i++)
            time[i] += (quad)(value[i] == its_value) & its_duration;
    }
    quad best_time = time[0], best_value = value[0];
    for (uint32_t i = 1; i < QUADS; i++) {
        quad better = is_greater(time[i], best_time);
        best_time = choose(better, time[i], best_time);
        best_value = choose(better, value[i], best_value);
    }
    uint32_t its;
    *most = greatest_of(best_time, best_value, &its);
    return its;
}

static uint16_t share_of(uint64_t part_ns, uint64_t busy_ns)
{
    return busy_ns ? (uint16_t)((double)part_ns / (double)busy_ns * 65535 + 0.5) : 0;
}

static void set_shares(node *out, uint64_t first_ns, uint64_t second_ns)
{
    out->of_share[0] = share_of(first_ns, out->busy_ns);
    out->of_share[1] = share_of(second_ns, out->busy_ns);
}

static uint32_t time_of(uint32_t its_value, const quad *value, const quad *duration)
{
    quad time = {0};
    for (uint32_t i = 0; i < QUADS; i++)
        time += (quad)(value[i] == fill(its_value)) & duration[i];
    return sum_of(time);
}

/* The usual case: 16 spans, all in 32 bits, durations below GROUP_DURATION_LIMIT. */
static void summary_of_group(node *out, const uint32_t *words, uint64_t base_ns)
{
    const uint32_t *durations = words + STORE_GROUP, *value_words = words + 2 * STORE_GROUP;
    quad duration[QUADS] = {load(durations)}, value[QUADS] = {load(value_words) >> STORE_FLAG_BITS};
    quad busy_quad = duration[0], longest_quad = duration[0], longest_value = value[0];
    for (uint32_t i = 1; i < QUADS; i++) {
        duration[i] = load(durations + 4 * i);
        value[i] = load(value_words + 4 * i) >> STORE_FLAG_BITS;
        busy_quad += duration[i];
        quad longer = is_greater(duration[i], longest_quad);
        longest_quad = choose(longer, duration[i], longest_quad);
        longest_value = choose(longer, value[i], longest_value);
    }
    uint32_t dominant, longest = greatest_of(longest_quad, longest_value, &dominant), busy = sum_of(busy_quad);
    /* Lengths of calls differ by magnitudes: the value of the longest one often has half of the time, and then it is found. */
    uint32_t time = time_of(dominant, value, duration);
    if (time < busy - time)
        dominant = dominant_of(value, value_words, &time);
    *out = (node){.begin_ns = base_ns + words[0], .busy_ns = busy, .longest_ns = longest, .value_ns = time, .value = dominant};
    out->end_ns = base_ns + words[STORE_GROUP - 1] + durations[STORE_GROUP - 1];
    if (dominant <= HISTORY_STATE_MAX)
        set_shares(out, time_of(0, value, duration), time_of(1, value, duration));
}

/* Sums of times by value, for a group at most. */
typedef struct tally {
    uint32_t values[STORE_GROUP];
    uint64_t times[STORE_GROUP];
    uint32_t count;
} tally;

static void tally_add(tally *t, uint32_t value, uint64_t time)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->values[i] == value) {
            t->times[i] += time;
            return;
        }
    t->values[t->count] = value;
    t->times[t->count++] = time;
}

static void tally_end(const tally *t, node *out)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < t->count; i++)
        best = t->times[i] > t->times[best] ? i : best;
    out->value = t->values[best];
    out->value_ns = t->times[best];
}

static uint64_t tally_of(const tally *t, uint32_t value)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->values[i] == value)
            return t->times[i];
    return 0;
}

void summary_of_spans(node *out, const row_spans *spans)
{
    if (!spans->wide && spans->lanes == STORE_GROUP && spans->first == 0 && spans->end == STORE_GROUP) {
        uint32_t all = 0;
        for (uint32_t i = 0; i < STORE_GROUP; i++)
            all |= spans->words[STORE_GROUP + i];
        if (all < GROUP_DURATION_LIMIT) {
            summary_of_group(out, spans->words, spans->base_ns);
            return;
        }
    }
    tally t = {.count = 0};
    uint32_t last = spans->end - 1;
    *out = (node){.begin_ns = row_spans_begin(spans, spans->first)};
    out->end_ns = row_spans_begin(spans, last) + row_spans_duration(spans, last);
    for (uint32_t i = spans->first; i < spans->end; i++) {
        uint64_t duration = row_spans_duration(spans, i);
        out->busy_ns += duration;
        out->longest_ns = duration > out->longest_ns ? duration : out->longest_ns;
        tally_add(&t, row_spans_value(spans, i), duration);
    }
    tally_end(&t, out);
    if (out->value <= HISTORY_STATE_MAX)
        set_shares(out, tally_of(&t, 0), tally_of(&t, 1));
}

void summary_of_nodes(node *out, const node *nodes, uint32_t count)
{
    tally t = {.count = 0};
    double of_ns[2] = {0, 0}; /* times 65535 */
    *out = (node){.begin_ns = nodes[0].begin_ns, .end_ns = nodes[count - 1].end_ns};
    for (uint32_t i = 0; i < count; i++) {
        const node *n = &nodes[i];
        out->busy_ns += n->busy_ns;
        out->longest_ns = n->longest_ns > out->longest_ns ? n->longest_ns : out->longest_ns;
        tally_add(&t, n->value, n->value_ns);
        if (n->value <= HISTORY_STATE_MAX)
            for (int state = 0; state < 2; state++)
                of_ns[state] += (double)n->busy_ns * n->of_share[state];
    }
    tally_end(&t, out);
    for (int state = 0; state < 2 && out->busy_ns; state++)
        out->of_share[state] = (uint16_t)(of_ns[state] / (double)out->busy_ns + 0.5);
}
