/* view/tint.h - by what boxes are coloured: method, class or gem, length.
 * For:     scene.c (a colour for each box), panels.c (what the legend says).
 * Idea:    whose code is this? is a question about gems and classes, where does it take long? one about lengths: another colour
 *          for each, at a key's press. Lengths have one family of hues that grows lighter: each decade is a step, from 1 µs on.
 * Memory:  none.
 * Threads: any; values only.
 */
#ifndef RRTRACE_VIEW_TINT_H
#define RRTRACE_VIEW_TINT_H

#include "sim/catalog.h"

#include <stdint.h>

typedef enum tint { TINT_METHOD = 0, TINT_OWNER, TINT_LENGTH, TINT_COUNT } tint;

#define TINT_LENGTH_STEPS 8u /* up to 1 µs, 10 µs, … 1 s, longer */

/* What colours stand for under TINT_OWNER: the gem that a file lies in, else the class; methods in C go by their class. out[64]. */
void tint_owner(const catalog_method *m, char *out);
/* In place of catalog_method.hash. */
uint32_t tint_hash(tint t, const catalog_method *m);
uint32_t tint_step(uint64_t length_ns); /* below TINT_LENGTH_STEPS */
uint32_t tint_length(uint32_t step);    /* its colour */
const char *tint_name(tint t);          /* for the legend */

#endif
