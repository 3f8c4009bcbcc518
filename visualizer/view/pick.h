/* view/pick.h - which box is under the pointer.
 * For:     inspect.c.
 * Idea:    the ray through the pixel's middle against the boxes of the frame that is being made, so the answer is of this
 *          frame, also where nothing is drawn again. What the id attachment says (gpu_read_id) is the same, but one or two
 *          frames later, and has to be drawn: on a software driver that takes a tenth of each frame's time, the ray some
 *          ten thousandths of a second. test/c/view_picture.c holds the two against each other.
 * Threads: one; no model is read.
 */
#ifndef RRTRACE_VIEW_PICK_H
#define RRTRACE_VIEW_PICK_H

#include "view/scene.h"

#define PICK_NONE UINT32_MAX

/* The index in s->refs of the box that is seen there, and where along x it was met. PICK_NONE: none, or one without a ref. */
uint32_t pick_box(const scene *s, const camera *c, float x_px, float y_px, float *x_world);

#endif
