/* view/hot.h - what is slow: the longest calls that are open (at the end of what is in sight), thread by thread, and the hottest methods in sight.
 * For:     inspect.c.
 * Idea:    self times come from the history (selftime.h), a little a frame, whatever is drawn: the lists are new four times a
 *          second while the film moves, and as soon as they are read where it stands still; then more calls are read, too.
 *          Of a thread's open calls, those that begin nearly together count as one, the innermost of them: a stack says little
 *          more than where its time began to be spent.
 * Use:     hot_update every frame; hot_free.
 * Memory:  selftime.h's.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_HOT_H
#define RRTRACE_VIEW_HOT_H

#include "view/focus.h"
#include "view/scene.h"
#include "view/selftime.h"

#define HOT_METHODS 24u
#define HOT_OPEN 192u
#define HOT_OPEN_A_THREAD 3u
#define HOT_EVERY_S 0.25
#define HOT_EXACT_MAX 100000u /* more calls in sight are read in part, and what is told is near the truth */
#define HOT_EXACT_MAX_STILL 1000000u /* of a film that stands still */

typedef struct hot_method {
    focus_method method;
    uint64_t self_ns;
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
    double age_s, open_age_s;        /* since the last stretch of time was begun with; of open */
    bool is_filled;
    bool is_exact;                   /* methods: else they are near the truth */
    selftime selftime;
    /* What it is of. */
    const history *history;
    uint32_t generation;
    double read_share;
    uint64_t exact_max;
    uint64_t begin_ns, end_ns;       /* what was in sight in the last frame */
} hot;

void hot_free(hot *h);
/* time_s: since the last call. True: the lists are new. */
bool hot_update(hot *h, const scene *s, const scene_input *in, double time_s);
/* Will what is told of this stretch of time be another? */
bool hot_is_behind(const hot *h);

#endif
