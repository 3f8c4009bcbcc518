/* view/details.h - everything about one box (the tip at the pointer) and about one method (the panel).
 * For:     inspect.c.
 * Idea:    figures over the whole session come from history/figures.h; who called the method and whom it called is looked up
 *          twice a second, for the selected call and DETAILS_CALLS that are in sight, not folded, and for DETAILS_SPANS calls that
 *          these made. They are looked at one by one: of a folded box only the method that takes most of its time is known.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_DETAILS_H
#define RRTRACE_VIEW_DETAILS_H

#include "view/calls.h"
#include "view/focus.h"
#include "view/tally.h"

#define DETAILS_CALLS 200u
#define DETAILS_SPANS 20000u
#define DETAILS_ARCS 64u
#define DETAILS_EVERY_S 0.5

typedef struct details_arc {
    focus_method method; /* process CATALOG_NONE: called from nowhere, the bottom of a stack */
    uint64_t calls, total_ns;
} details_arc;

typedef struct details {
    focus_method method;
    figures_method all;     /* over the session; zero where nobody counts */
    double calls_per_s;     /* of a recording: on average */
    tally_open open;        /* calls of it that are open, with their time so far */
    details_arc callers[DETAILS_ARCS], callees[DETAILS_ARCS]; /* most time first */
    uint32_t caller_count, callee_count;
    uint32_t call_count;                   /* calls that were looked at */
    uint32_t begun_count;                  /* … that began after tracing did */
    uint32_t caller_calls, callee_calls;   /* … and whose caller, and callees, are known */
    uint32_t span_count;                   /* calls that these made */
    focus_call selected;                   /* … the first of them, if it is in sight */
    bool is_cut;                           /* … of the last one only the first ones: there were too many */
    tally_sum sight;                /* calls in the time that is in sight, on all rows */
    tally tally;                    /* … as they are counted */
    uint64_t rate_calls, rate_ns;   /* what calls_per_s counts from */
    double age_s;
} details;

/* What is known of one box. */
typedef struct details_tip {
    view_box_ref ref;
    uint64_t self_ns;
    bool is_self_known; /* false: it is folded, or memory has let go of what it called */
} details_tip;

void details_tip_of(details_tip *t, const scene_input *in, const view_box_ref *ref);
/* Lines for the tip, out[n][160]; the first is the name. Returns how many. */
#define DETAILS_LINES 6u
size_t details_lines(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160]);

/* time_s: since the last call. Another method than the last time: at once. */
void details_update(details *d, focus_method method, const scene *s, const scene_input *in, double time_s);

/* What callers and callees were counted from: "of 12 calls in sight", "of 200 among 1.20 k in sight" (the others are folded, or
 * too many), "the first 20.0 k, of 3 calls". */
void details_basis_of_callers(const details *d, char *out, size_t bytes);
void details_basis_of_callees(const details *d, char *out, size_t bytes);

/* "app/models/user.rb:12"; "" when it is not known. out[bytes]. */
void details_place(const catalog_method *m, char *out, size_t bytes);

#endif
