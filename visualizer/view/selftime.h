/* view/selftime.h - each method's self time in a stretch of time, read from the history a little a frame.
 * For:     hot.c.
 * Idea:    a call's self time is its time less that of the calls on the row above, so a stack is read upwards, two neighbouring
 *          rows at a time, whatever is drawn of them. All times are cut at the ends of the stretch that is read; so a stretch
 *          may be cut in two anywhere, which is done where a row has more calls in it than a page holds.
 *
 *     upper, depth 3        |-c-|  |-c-| |-c-|    |--d--|        each of them takes its time off what is below it
 *     lower, depth 2     |----a----------------| |---b------|    a: its length less three c; b: less d
 *                     from                   cut           to    to the left of the cut upwards; what is right of it is put by
 *
 *          The calls are counted first. Where they are too many to be read, slices spread over the time are read, one at a
 *          place by chance in each of as many equal parts: so rare, long calls and dense, short ones get their due share. (The
 *          history's merged nodes say of their time only which method has most of it: where two methods take turns, one
 *          of them would have all.)
 * Use:     selftime_begin; selftime_go_on once a frame until it says true; then methods and is_exact.
 * Memory:  8 bytes a method of each process, and two pages of nodes.
 * Threads: one; under the model lock, which selftime_go_on holds for a millisecond at most.
 */
#ifndef RRTRACE_VIEW_SELFTIME_H
#define RRTRACE_VIEW_SELFTIME_H

#include "base/vec.h"
#include "history/history.h"
#include "view/view.h"

#define SELFTIME_PAGE 512u
#define SELFTIME_STEP 8000u    /* calls' worth of work a frame */
#define SELFTIME_SAMPLE 60000u /* calls that are read of those that are too many */

typedef struct selftime_query {
    const view_model *model;
    const history *history;
    uint64_t begin_ns, end_ns;
    uint64_t exact_max; /* so many calls are read one by one */
    bool (*match_thread)(void *context, uint32_t thread); /* NULL: all match */
    void *context;
} selftime_query;

typedef struct selftime_stretch {
    uint32_t depth;
    uint64_t from_ns, to_ns;
} selftime_stretch;

typedef struct selftime_page {
    history_node nodes[SELFTIME_PAGE + 1]; /* and an open call */
    size_t count;
} selftime_page;

typedef VEC(uint64_t) selftime_methods; /* ns, by number */

typedef struct selftime {
    uint64_t begin_ns, end_ns;
    VEC(selftime_methods) methods; /* by process; of what was read */
    double scale;                  /* times this it is of all */
    bool is_exact;                 /* every call in the stretch of time has been read */
    bool is_running;
    /* What is under way. */
    bool is_counted;
    uint64_t span_count, row_count; /* in the stretch */
    uint32_t slice, slice_count;
    uint64_t slice_ns;
    uint32_t fiber;
    VEC(selftime_stretch) todo;     /* of the fiber and slice: nothing from that depth on is in methods */
    selftime_stretch now;           /* likewise; lower holds its row's calls */
    selftime_page pages[2], *lower, *upper;
    bool is_within;                 /* now is set */
} selftime;

void selftime_free(selftime *t);
void selftime_begin(selftime *t, const selftime_query *q);
/* q: as at the begin, but for the model's news. True: all is read. */
bool selftime_go_on(selftime *t, const selftime_query *q);

#endif
