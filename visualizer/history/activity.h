/* history/activity.h - how busy the whole session was: events by time and process, in counters whose number never grows.
 * For:     app/ counts into it, live or from a recording's index; view/strip.h draws it.
 * Idea:    4,096 counters a process, side by side over the session's time. When the session outgrows them, neighbours are
 *          added up and each stands for twice the time: so the last one is always within the array, and a look at all of the
 *          session costs the same after a second and after a week.
 *
 *            |2|0|7|1|3|.|.|.|   full: ->   |2|8|3|.|.|.|.|.|   bucket_ns has doubled
 *
 *          A count is spread over all the time that it may come from: it may be drawn where nothing was, but never not where
 *          something was.
 * Use:     activity_new; activity_add; activity_columns for a picture; activity_delete.
 * Memory:  32 KiB a group, ACTIVITY_GROUPS of them at most, taken when a group first has something.
 * Threads: one at a time: the session's model lock (app/) is held by whoever calls.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_HISTORY_ACTIVITY_H
#define RRTRACE_HISTORY_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#define ACTIVITY_BUCKETS 4096u
#define ACTIVITY_GROUPS 12u /* processes told apart: as many colours as anyone tells apart. The others are counted with the last */
#define ACTIVITY_FIRST_BUCKET_NS (UINT64_C(1) << 17) /* half a second in all, at first */

typedef struct activity activity;

int activity_new(activity **out);  /* 0 or -ENOMEM */
void activity_delete(activity *a); /* NULL is fine */

/* count events of a process that happened in [begin_ns, end_ns], evenly as far as is known. group: any number. The session
 * begins with the first call: what is said to be earlier is counted at its begin. 0 or -ENOMEM. */
int activity_add(activity *a, uint32_t group, uint64_t begin_ns, uint64_t end_ns, uint64_t count);

/* They change places. */
void activity_swap(activity *a, activity *b);

uint32_t activity_group_count(const activity *a);
/* Events of a group in each of column_count equal parts of [begin_ns, end_ns): written to out[column_count]. */
void activity_columns(const activity *a, uint32_t group, uint64_t begin_ns, uint64_t end_ns, double *out, uint32_t column_count);

#endif
