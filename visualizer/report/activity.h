/* report/activity.h - which methods and arcs are open on one fiber's stack right now, and how often?
 * For:     report.c: of calls within each other the outermost alone counts for total times.
 * Idea:    a small hash table of counts. A count may fall to zero and stay, so that nothing is ever removed. When the stack is
 *          empty all are zero, and the table can serve any other stack: so idle fibers have none.
 * Memory:  8 bytes a place, at most 2/3 full.
 * Threads: one at a time.
 */
#ifndef RRTRACE_REPORT_ACTIVITY_H
#define RRTRACE_REPORT_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct activity {
    struct activity_place *places; /* owned */
    uint32_t capacity, count;      /* capacity: a power of two, or 0 */
} activity;

/* One more of both (indices below 2^31); was either open already? The first table is spare's, if it has one. False: memory
 * is out, and nothing has changed. */
bool activity_enter(activity *a, uint32_t method, uint32_t arc, activity *spare, bool *is_open, bool *is_arc_open);
void activity_leave(activity *a, uint32_t method, uint32_t arc); /* after activity_enter */
void activity_give(activity *a, activity *spare);                /* nothing is open any more */
void activity_free(activity *a);

#endif
