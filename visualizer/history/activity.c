#include "history/activity.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct activity {
    uint64_t begin_ns, bucket_ns;     /* of bucket 0; what each stands for */
    bool has_begun;
    uint32_t group_count;
    double *counts[ACTIVITY_GROUPS];  /* owned; ACTIVITY_BUCKETS each, NULL: nothing yet */
};

int activity_new(activity **out)
{
    activity *a = *out = mem_zalloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->bucket_ns = ACTIVITY_FIRST_BUCKET_NS;
    return 0;
}

void activity_delete(activity *a)
{
    if (!a)
        return;
    for (uint32_t g = 0; g < ACTIVITY_GROUPS; g++)
        mem_free(a->counts[g]);
    mem_free(a);
}

/* Each bucket stands for twice the time. */
static void fold(activity *a)
{
    a->bucket_ns *= 2;
    for (uint32_t g = 0; g < ACTIVITY_GROUPS; g++) {
        double *counts = a->counts[g];
        if (!counts)
            continue;
        for (uint32_t i = 0; i < ACTIVITY_BUCKETS / 2; i++)
            counts[i] = counts[2 * i] + counts[2 * i + 1];
        memset(counts + ACTIVITY_BUCKETS / 2, 0, ACTIVITY_BUCKETS / 2 * sizeof *counts);
    }
}

/* How long the buckets are that [begin, end) covers of bucket i, all relative to the session's begin. */
static double overlap(const activity *a, uint64_t i, double begin, double end)
{
    double low = (double)i * (double)a->bucket_ns, high = low + (double)a->bucket_ns;
    low = begin > low ? begin : low;
    high = end < high ? end : high;
    return high > low ? high - low : 0;
}

static void spread(activity *a, double *counts, uint64_t begin, uint64_t end, double count)
{
    uint64_t first = begin / a->bucket_ns, last = end / a->bucket_ns;
    if (first == last) {
        counts[first] += count;
        return;
    }
    double length = (double)(end - begin);
    for (uint64_t i = first; i <= last; i++)
        counts[i] += count * overlap(a, i, (double)begin, (double)end) / length;
}

int activity_add(activity *a, uint32_t group, uint64_t begin_ns, uint64_t end_ns, uint64_t count)
{
    uint32_t g = group < ACTIVITY_GROUPS ? group : ACTIVITY_GROUPS - 1;
    if (!a->counts[g] && !(a->counts[g] = mem_zalloc(ACTIVITY_BUCKETS, sizeof(double))))
        return -ENOMEM;
    if (!a->has_begun)
        a->begin_ns = begin_ns;
    a->has_begun = true;
    a->group_count = g + 1 > a->group_count ? g + 1 : a->group_count;
    uint64_t begin = begin_ns > a->begin_ns ? begin_ns - a->begin_ns : 0, end = end_ns > a->begin_ns ? end_ns - a->begin_ns : 0;
    end = end > begin ? end : begin;
    while (end / a->bucket_ns >= ACTIVITY_BUCKETS)
        fold(a);
    spread(a, a->counts[g], begin, end, (double)count);
    return 0;
}

void activity_swap(activity *a, activity *b)
{
    activity other = *a;
    *a = *b;
    *b = other;
}

uint32_t activity_group_count(const activity *a) { return a->group_count; }

void activity_columns(const activity *a, uint32_t group, uint64_t begin_ns, uint64_t end_ns, double *out, uint32_t column_count)
{
    memset(out, 0, column_count * sizeof *out);
    const double *counts = group < ACTIVITY_GROUPS ? a->counts[group] : NULL;
    if (!counts || end_ns <= begin_ns)
        return;
    double from = (double)(int64_t)(begin_ns - a->begin_ns), width = (double)(end_ns - begin_ns) / column_count;
    uint32_t first = 0; /* column */
    for (uint32_t i = 0; i < ACTIVITY_BUCKETS; i++) {
        double low = (double)i * (double)a->bucket_ns, high = low + (double)a->bucket_ns;
        while (first < column_count && from + (first + 1) * width <= low)
            first++;
        if (counts[i] == 0)
            continue;
        for (uint32_t column = first; column < column_count && from + column * width < high; column++)
            out[column] += counts[i] * overlap(a, i, from + column * width, from + (column + 1) * width) / (double)a->bucket_ns;
    }
}
