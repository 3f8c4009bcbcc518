/* view/strip.h - the time strip along the bottom: the whole session, and which part of it is in sight.
 * For:     view.c.
 * Idea:    one column of pixels for each part of the session's time: how many events there were, a colour a process, over a
 *          thin line where a process lives; above it the GC's pauses; marks are lines across it all. The part in sight is a frame that the pointer moves by
 *          its middle and widens by its edges; a click elsewhere takes the film there.
 *
 *            |   .:|gc|:.          [ frame ]  .:.                |
 *            | _.:::::::._........[::::::::::]::::::..__         |
 *            0 s                                              75 s
 *
 *          Heights are square roots, so that what is quiet beside a storm is still seen: anything at all is at least a pixel.
 * Use:     height = strip_height(…); strip_input for each input; strip_draw after the scene is built.
 * Memory:  none of its own.
 * Threads: one; strip_draw reads the model, so under its lock.
 * Units:   px of the target; ns as the model's.
 */
#ifndef RRTRACE_VIEW_STRIP_H
#define RRTRACE_VIEW_STRIP_H

#include "view/font.h"
#include "view/view.h"

#define STRIP_PX 38.0f        /* its height, at scale 1 */
#define STRIP_COLUMNS 2048u   /* at most: a column is two pixels wide, or more on a wide screen */
#define STRIP_FRAME_MIN_PX 3.0f
#define STRIP_EDGE_PX 6.0f    /* so near to an edge the pointer takes it */

typedef enum strip_grab { STRIP_GRAB_NONE = 0, STRIP_GRAB_FRAME, STRIP_GRAB_BEGIN, STRIP_GRAB_END } strip_grab;

typedef struct strip {
    strip_grab grab;
    double grip_ns;               /* from the frame's middle, or the edge, to where it was taken */
    float scale;
    /* As last drawn: */
    bool is_shown;
    float low_px[2], high_px[2];  /* where the session's time lies */
    uint64_t begin_ns, end_ns;    /* of the session */
    double frame_begin_ns, frame_end_ns; /* in sight, relative to begin_ns */
} strip;

typedef struct strip_input_range { double begin_ns, end_ns; } strip_input_range; /* relative to begin_ns */

typedef struct strip_picture {
    const view_model *model;
    uint64_t begin_ns;            /* of the session; it ends with the model's now_ns */
    double frame_begin_ns, frame_end_ns; /* in sight, relative to begin_ns */
    float width_px, height_px;    /* of the target */
    float scale;
    bool is_live;                 /* the frame follows now */
    const uint64_t *marks;        /* the user's, mark_count of them; the program's own are in the model */
    uint32_t mark_count;
} strip_picture;

/* What the strip takes from the bottom of a target; 0: it is too small to have one. */
float strip_height(float scale, uint32_t height_px);
void strip_draw(strip *s, const strip_picture *in, font *f, quad_list *out);
void strip_hide(strip *s);

/* True: the strip has taken the input, and nobody else should. *moves: show *range from now on; *sticks: at once, as the pointer
 * has hold of it. */
bool strip_input(strip *s, const view_input_event *e, bool *moves, bool *sticks, strip_input_range *range);

#endif
