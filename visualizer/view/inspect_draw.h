/* view/inspect_draw.h - what inspect.h shows: the tip, the panel of the selected method, the lists, the line of the search.
 * For:     inspect.c.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_INSPECT_DRAW_H
#define RRTRACE_VIEW_INSPECT_DRAW_H

#include "view/inspect.h"

/* Below the panels: names on the program's own spans, flags for its marks and the user's, the ends of what is measured. */
void inspect_draw_notes(inspect *i, const scene *s, const scene_input *in, const paint *p, paint_taken *taken);
/* Draws, and lays the places anew. */
void inspect_draw(inspect *i, const scene_input *in, const paint *p);
/* What an open panel takes of the window's right side; 0: none is open. */
float inspect_panel_px(const inspect *i, float width_px);
/* How far down the search line reaches; 0: there is none. */
float inspect_find_px(const inspect *i);
/* Where a line is said; empty: none is. */
paint_rect4 inspect_line_place(const inspect *i, const paint *p);
/* What is said to the user, alone. */
void inspect_draw_line(const inspect *i, const paint *p);

#endif
