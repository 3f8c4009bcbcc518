/* view/inspect_draw.h - what inspect.h shows: the tip, the panel of the selected method, the lists, the line of the search.
 * For:     inspect.c.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_INSPECT_DRAW_H
#define RRTRACE_VIEW_INSPECT_DRAW_H

#include "view/inspect.h"

/* Names on the program's own spans, and flags for its marks and the user's. marks[mark_count]: the user's. */
void inspect_draw_notes(const scene *s, const scene_input *in, const paint *p, const uint64_t *marks, uint32_t mark_count);
/* Draws, and lays the places anew. */
void inspect_draw(inspect *i, const scene_input *in, const paint *p);
/* What is said to the user, alone. */
void inspect_draw_line(const inspect *i, const paint *p);

#endif
