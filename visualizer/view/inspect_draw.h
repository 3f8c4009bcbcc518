/* view/inspect_draw.h - what inspect.h shows: the tip, the panel of the selected method, the lists, the line of the search.
 * For:     inspect.c.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_INSPECT_DRAW_H
#define RRTRACE_VIEW_INSPECT_DRAW_H

#include "view/inspect.h"

/* Below the panels: names on the program's own spans, flags for its marks and the user's, the ends of what is measured. */
void inspect_draw_notes(inspect *i, const scene *s, const scene_input *in, const paint *p);
/* Draws, and lays the places anew. */
void inspect_draw(inspect *i, const scene_input *in, const paint *p);
/* What is said to the user, alone. */
void inspect_draw_line(const inspect *i, const paint *p);

#endif
