/* view/tally.h - how many calls of some kind lie in the time that is in sight, on all rows, drawn or not.
 * For:     details.c (calls of a method), inspect.c (calls that are looked for).
 * Idea:    the boxes in sight do not tell: a folded one says only which method most of its time is of, and rows may be off the
 *          screen. So the rows are read call by call, TALLY_SPANS a frame; until all are read, what is counted is a least number.
 *          Where only long calls matter, short ones are passed over a node at a time.
 * Use:     tally_begin as often as a count may be anew; tally_go_on every frame; then shown.
 * Memory:  with wants_methods a byte for each method; else none, and nothing to free.
 * Threads: one; under the model lock, which tally_go_on holds for a millisecond at most.
 */
#ifndef RRTRACE_VIEW_TALLY_H
#define RRTRACE_VIEW_TALLY_H

#include "view/calls.h"
#include "view/focus.h"

#define TALLY_SPANS 12000u

typedef struct tally_query {
    const view_model *model;
    const history *history;
    uint64_t begin_ns, end_ns; /* in sight */
    uint64_t least_ns;         /* shorter calls do not match */
    calls_match *match;
    bool (*match_thread)(void *context, uint32_t thread); /* NULL: all match */
    void *context;
    bool wants_methods;        /* tally_sum.methods */
} tally_query;

typedef struct tally_sum {
    uint64_t calls, ns;
    uint32_t methods; /* whose calls they are */
    bool is_exact;    /* false: there may be more */
} tally_sum;

typedef struct tally {
    tally_sum shown;
    bool is_running;
    /* The count that is under way. */
    tally_sum sum;
    uint64_t begin_ns, end_ns, now_ns;
    double read_share;
    const history *history; /* NULL: nothing is counted */
    bool is_first; /* no older count could be shown meanwhile */
    bool is_rough;
    uint32_t fiber, depth;
    calls_pages pages;
    VEC(focus_bytes) seen; /* methods, by process, by number */
} tally;

void tally_free(tally *t);
/* is_other: something else is counted than before. Else nothing happens while all is as it was. */
void tally_begin(tally *t, const tally_query *q, bool is_other);
void tally_go_on(tally *t, const tally_query *q);
/* The count is known otherwise, or not wanted. */
void tally_stop(tally *t);
/* Will what is shown of this stretch of time be another? */
bool tally_is_behind(const tally *t, uint64_t begin_ns, uint64_t end_ns);

/* Calls that are open now, of all fibers. */
typedef struct tally_open {
    uint64_t calls, ns, longest_ns;
    uint64_t begun;     /* of calls, those that were not open already when tracing began */
    uint64_t self_ns;   /* less what they called; a least number unless */
    bool is_self_known;
} tally_open;
tally_open tally_open_calls(const tally_query *q);

/* Is all there is in sight? */
bool tally_is_all(const tally_query *q, uint64_t session_begin_ns);

#endif
