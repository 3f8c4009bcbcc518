/* view/layout.h - where in the world each thread, fiber and row is.
 * For:     scene.c (boxes), panels.c (names of lanes), view.c (what the camera must fit).
 * Idea:    a lane per thread that lives in the time shown, the main thread at the back (on top of the screen in every
 *          camera), processes in groups. A thread's other fibers share a few sub-lanes beside its root fiber. What changes
 *          eases: a lane fades in and out by its weight, the height of a row follows the deepest stack in sight, quickly
 *          when it must shrink and slowly when it may grow.
 *
 *     seen from above, time to the right:        z 0  +--------------------------+
 *                                                     |  boxes: root fiber       |
 *                                                     |  boxes: other fibers     |  a lane, pitch deep
 *                                                     |  GVL strip               |
 *                                                     +--------------------------+
 *                                                     |  the next thread …       |  z grows towards the viewer
 *
 *          In the flame chart the lanes also lie one below the other (y), as in other profilers.
 * Threads: one; reads the catalog, so under the model lock.
 * Units:   world units (camera.h); times as ns of the catalog.
 */
#ifndef RRTRACE_VIEW_LAYOUT_H
#define RRTRACE_VIEW_LAYOUT_H

#include "base/vec.h"
#include "sim/catalog.h"

#include <stdbool.h>
#include <stdint.h>

#define LAYOUT_SUBS 4u /* sub-lanes of a thread: the root fiber's and three more, reused */

typedef struct layout_thread { /* what is kept of a thread between frames */
    float weight;              /* 0: not in sight … 1 */
    float rows[LAYOUT_SUBS];   /* eased depth in sight */
    uint32_t seen[LAYOUT_SUBS];/* deepest row drawn in the last frame, plus 1; set by scene.c */
    uint32_t levels_a_row;     /* of its stacks, at most, in the last frame; set by scene.c */
    float sub_count;           /* eased */
    uint32_t last_fiber[LAYOUT_SUBS]; /* who came last to the sub-lane */
    uint8_t subs_used;
    uint8_t span_levels;       /* the most user spans within each other so far; set by scene.c: they need room above the calls */
} layout_thread;

typedef struct layout_lane {
    uint32_t thread, process; /* ids */
    uint32_t group;           /* index in groups */
    float weight;
    float z_begin, z_end;     /* back and front */
    float y_floor;            /* where depth 0 begins */
    float squeeze;            /* of its rows in the flame chart, where one deep recursion must not push all else away */
} layout_lane;

typedef struct layout_group { /* a process with its Ractors */
    uint32_t process;         /* id of its main stream */
    uint32_t lane_begin, lane_end;
} layout_group;

/* How much of each camera's arrangement there is. Both 0: the scene. */
typedef struct layout_desc {
    float flame, threads;
    float row_px, lane_px;         /* smallest comfortable sizes in the parallel cameras, px */
    float stretch;                 /* of rows, as the user likes them: 1 is as they come */
    float units_per_px;            /* of the parallel cameras */
    float free_height_px;          /* what panels leave of the screen's height */
    uint64_t begin_ns, end_ns;     /* in sight */
    double time_s;                 /* since the last frame; infinite: everything at once */
} layout_desc;

typedef struct layout {
    VEC(layout_lane) lanes;
    VEC(layout_group) groups;
    VEC(layout_thread) threads;      /* by thread id */
    VEC(uint8_t) fiber_subs;         /* by fiber id: its sub-lane */
    VEC(uint32_t) leaders;           /* by process id: the process whose group it is in */
    VEC(uint32_t) followers;         /* by process id: the next one of its group, or CATALOG_NONE */
    float flame, threads_share;
    float row_height, pitch;         /* eased */
    float z_end;                     /* front of the last lane */
    float y_low, y_high;             /* of everything */
    float tallest;                   /* eased: the highest stack */
    bool is_set;
    bool is_moving;
} layout;

void layout_free(layout *l);
/* Lanes and measures for this frame. */
void layout_update(layout *l, const catalog *c, const layout_desc *desc);

float layout_row_height(const layout *l, const layout_lane *lane);
/* z range of a fiber's boxes in its lane; y of a row's floor. */
void layout_sub(const layout *l, const layout_lane *lane, uint32_t sub, float *z_begin, float *z_end, float *y_floor);
/* z and y range of a lane's GVL strip. */
void layout_strip(const layout *l, const layout_lane *lane, float z[2], float y[2]);
/* z and y range of the bar of one of the program's own spans, which lies within level others. */
void layout_span(const layout *l, const layout_lane *lane, uint32_t level, float z[2], float y[2]);
bool layout_thread_in(const catalog_thread *thread, const catalog_process *process, uint64_t begin_ns, uint64_t end_ns);

#endif
