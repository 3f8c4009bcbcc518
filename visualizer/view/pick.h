/* view/pick.h - what is under the pointer.
 * For:     inspect.c.
 * Idea:    the ray through the pixel's middle against the boxes of the frame that is being made, so the answer is of this
 *          frame, also where nothing is drawn again. What the id attachment says (gpu_read_id) is the same, but one or two
 *          frames later, and has to be drawn: on a software driver that takes a tenth of each frame's time, the ray some
 *          ten thousandths of a second. test/c/view_picture.c holds the two against each other. A pause of the GC is glass
 *          before everything: it answers where nothing else does.
 * Threads: one; no model is read.
 */
#ifndef RRTRACE_VIEW_PICK_H
#define RRTRACE_VIEW_PICK_H

#include "view/scene.h"

/* What is seen there: a call, a state of a thread, a span, a pause. False: none of them. */
bool pick_at(const scene *s, const camera *c, float x_px, float y_px, view_box_ref *out);

#endif
