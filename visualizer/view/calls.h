/* view/calls.h - single calls in the history: the next one of a method, who called it, whom it called.
 * For:     inspect.c (steps from call to call), details.c (callers and callees).
 * Idea:    the history has no index by method, so the rows are read span by span, from where we are, in steps that double. A
 *          look-up stops after CALLS_LOOK_MAX spans; then there is no such call nearby.
 * Threads: one; under the model lock, which it holds for some 20 ms at most, once a key press.
 */
#ifndef RRTRACE_VIEW_CALLS_H
#define RRTRACE_VIEW_CALLS_H

#include "view/scene.h"

#define CALLS_LOOK_MAX 2000000u

typedef struct calls_call {
    uint64_t begin_ns, end_ns;
    uint32_t track, depth, method, thread, process;
    bool is_open;
} calls_call;

/* Whether a call is one of those looked for. */
typedef bool calls_match(void *context, const calls_call *call);

typedef struct calls_query {
    const view_model *model;
    const history *history;
    uint64_t begin_ns, end_ns; /* of all there is */
    calls_match *match;
    void *context;
} calls_query;

/* The first match that begins after, or the last that begins before, a time; of those that begin at once, the shallowest.
 * False: none nearby. */
bool calls_after(const calls_query *q, uint64_t time_ns, calls_call *out);
bool calls_before(const calls_query *q, uint64_t time_ns, calls_call *out);

/* A row's nodes page by page, as history_query has them. At a resolution of 0 none is lost between pages and none comes
 * twice; at another this holds for those that are longer. */
typedef struct calls_pages {
    const history *history;
    uint32_t track, depth;
    uint64_t at_ns, end_ns, resolution_ns;
    bool is_done;
    bool has_lost; /* more empty calls lay at one time than a page holds */
} calls_pages;
size_t calls_page(calls_pages *p, history_node *nodes, size_t max); /* 0: there are no more */

/* What is open at a depth of a track at a time that may be past; end_ns: its end, or now. False: nothing is, or memory no longer
 * knows. Frames nest: above a depth where nothing is there is nothing. */
bool calls_open_at(const calls_query *q, uint32_t track, uint32_t depth, uint64_t at_ns, sim_span *out);
/* How many frames are, at most max. */
uint32_t calls_depth_at(const calls_query *q, uint32_t track, uint64_t at_ns, uint32_t max);

/* The time of a call that is not time of calls that it made. False: memory no longer knows all of those. */
bool calls_self(const calls_query *q, const calls_call *call, uint64_t *self_ns);

/* The method that called it. False: it is the lowest of its stack, or memory has let the caller go. */
bool calls_caller(const calls_query *q, const calls_call *call, uint32_t *method);

#endif
