#include "history/store.h"

/* Which value takes the most time? Every lane sums the durations of all lanes of its value: 256 steps without a branch, which
 * the compiler turns into 64 four-lane ones; ends with the first lane of the greatest sum. Sums fit: see the caller. */
static uint32_t dominant_lane(const uint32_t *durations, const uint32_t *values, uint32_t *time)
{
    uint32_t sums[STORE_GROUP] = {0};
    for (uint32_t i = 0; i < STORE_GROUP; i++)
        for (uint32_t j = 0; j < STORE_GROUP; j++)
            sums[j] += values[j] == values[i] ? durations[i] : 0;
    uint32_t best = 0;
    for (uint32_t j = 1; j < STORE_GROUP; j++)
        best = sums[j] > sums[best] ? j : best;
    *time = sums[best];
    return best;
}

/* The usual case: 16 spans, all in 32 bits. */
static void summary_of_group(node *out, const uint32_t *words, uint64_t base_ns)
{
    const uint32_t *durations = words + STORE_GROUP, *values = words + 2 * STORE_GROUP;
    uint64_t busy = 0;
    uint32_t longest = 0, time;
    for (uint32_t i = 0; i < STORE_GROUP; i++) {
        busy += durations[i];
        longest = durations[i] > longest ? durations[i] : longest;
    }
    uint32_t lane = dominant_lane(durations, values, &time);
    *out = (node){.begin_ns = base_ns + words[0], .busy_ns = busy, .longest_ns = longest, .value_ns = time};
    out->end_ns = base_ns + words[STORE_GROUP - 1] + durations[STORE_GROUP - 1];
    out->value = values[lane] >> 2;
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

void summary_of_spans(node *out, const row_spans *spans)
{
    if (!spans->wide && spans->lanes == STORE_GROUP && spans->first == 0 && spans->end == STORE_GROUP) {
        uint32_t all = 0;
        for (uint32_t i = 0; i < STORE_GROUP; i++)
            all |= spans->words[STORE_GROUP + i];
        if (all < UINT32_MAX / STORE_GROUP) { /* 16 such durations sum up in 32 bits */
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
}

void summary_of_nodes(node *out, const node *nodes, uint32_t count)
{
    tally t = {.count = 0};
    *out = (node){.begin_ns = nodes[0].begin_ns, .end_ns = nodes[count - 1].end_ns};
    for (uint32_t i = 0; i < count; i++) {
        const node *n = &nodes[i];
        out->busy_ns += n->busy_ns;
        out->longest_ns = n->longest_ns > out->longest_ns ? n->longest_ns : out->longest_ns;
        tally_add(&t, n->value, n->value_ns);
    }
    tally_end(&t, out);
}
