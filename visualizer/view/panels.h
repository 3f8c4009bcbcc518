/* view/panels.h - what lies flat on the picture: names of lanes, the time axis, the corner line, legend, hints, help.
 * For:     view.c; the titles of processes also for what tells of a thread: details.c, inspect_draw.c, find.c.
 * Idea:    quiet unless something needs attention: dim text at the edges, one warm colour for what the user should notice.
 * Threads: one; reads the catalog, so under the model lock.
 */
#ifndef RRTRACE_VIEW_PANELS_H
#define RRTRACE_VIEW_PANELS_H

#include "view/scene.h"

typedef struct panels_input {
    const scene_input *scene;
    const scene *built;
    const view_status *status;
    bool is_paused, is_live, is_still, has_help;
    float hint_alpha; /* 0: gone */
    float strip_px;   /* what the time strip takes of the screen's height */
} panels_input;

#define PANELS_TOP_PX 52.0f    /* heights that the scene should leave free, at scale 1 */
#define PANELS_BOTTOM_PX 66.0f
#define PANELS_SIDE_PX 28.0f

void panels_draw(const panels_input *in, font *f, quad_list *out);

/* A process's title: its command, shortened, and pid. out[160]. */
void panels_process_title(const catalog *c, uint32_t process, char *out);

#endif
