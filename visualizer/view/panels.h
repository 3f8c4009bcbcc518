/* view/panels.h - what lies flat on the picture: names of lanes, the time axis, the corner line, legend, hints, help.
 * For:     view.c; the titles of processes also for what tells of a thread: details.c, inspect_draw.c, find.c.
 * Idea:    quiet unless something needs attention: dim text at the edges, one warm colour for what the user should notice.
 * Threads: one; reads the catalog, so under the model lock.
 */
#ifndef RRTRACE_VIEW_PANELS_H
#define RRTRACE_VIEW_PANELS_H

#include "view/paint.h"
#include "view/scene.h"

typedef struct panels_input {
    const scene_input *scene;
    const scene *built;
    const view_status *status;
    bool is_paused, is_live, is_still;
    float hint_alpha; /* 0: gone */
    float strip_px;   /* what the time strip takes of the screen's height */
    float panel_px;   /* … and an open panel of its right side */
    float find_px;    /* how far down the search line reaches; 0: there is none */
    paint_rect4 said; /* where a line is said to the user; empty: none is */
    paint_taken *taken; /* gets what is drawn here, for what comes after it */
} panels_input;

#define PANELS_TOP_PX 52.0f    /* heights that the scene should leave free, at scale 1 */
#define PANELS_BOTTOM_PX 66.0f
#define PANELS_SIDE_PX 28.0f

/* Returns how far down the lines in the right corner reach. */
float panels_draw(const panels_input *in, font *f, quad_list *out);
/* Over all else. */
void panels_draw_help(const panels_input *in, font *f, quad_list *out);

/* A process's title: its command, shortened, and pid. out[160]. */
void panels_process_title(const catalog *c, uint32_t process, char *out);

#endif
