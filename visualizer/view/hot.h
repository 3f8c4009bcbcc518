/* view/hot.h - what is slow: the longest calls that are open (at the end of what is in sight), thread by thread, and the hottest methods in sight.
 * For:     inspect.c.
 * Idea:    self times come from the boxes of the frame: what a box has on top of it is taken off its method's time, and of a
 *          folded one all goes to the method that takes most of it. So it costs a pass over the boxes, four times a second.
 *          Of a thread's open calls, those that begin nearly together count as one, the innermost of them: a stack says little
 *          more than where its time began to be spent.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_HOT_H
#define RRTRACE_VIEW_HOT_H

#include "view/focus.h"
#include "view/scene.h"

#define HOT_METHODS 24u
#define HOT_OPEN 192u
#define HOT_OPEN_A_THREAD 3u
#define HOT_EVERY_S 0.25
#define HOT_TABLE 2048u /* methods summed up at once; of more in sight, some are left out */

typedef struct hot_method {
    focus_method method;
    int64_t self_ns;
    uint64_t calls;
} hot_method;

typedef struct hot_call {
    focus_method method;
    uint32_t thread, track, depth;
    uint64_t begin_ns, end_ns; /* end: or now */
    bool is_first; /* of its thread */
} hot_call;

typedef struct hot {
    hot_method methods[HOT_METHODS]; /* hottest first */
    hot_call open[HOT_OPEN];         /* by thread, longest first */
    uint32_t method_count, open_count;
    uint32_t open_thread_count;      /* threads that have some; perhaps not all of them are in open */
    uint64_t open_at_ns;             /* open at this time: the end of what is in sight … */
    bool is_open_now;                /* … which is now */
    uint64_t sight_ns;               /* how much time was in sight */
    double age_s;
    bool is_filled;
    hot_method table[HOT_TABLE];
} hot;

/* time_s: since the last call. True: the lists are new. */
bool hot_update(hot *h, const scene *s, const scene_input *in, double time_s);

#endif
