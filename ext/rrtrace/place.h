/* place.h - which thread and which fiber runs now, by numbers that no reused address can fake.
 * For:     capture.c.
 * Idea:    a thread's number lies in its own slot (rb_internal_thread_specific_*), a fiber's in a hidden ivar of its Fiber
 *          object. A small cache from execution contexts saves the way there while no GC has run.
 * Threads: GVL held, but for place_thread_number.
 */
#ifndef RRTRACE_EXT_PLACE_H
#define RRTRACE_EXT_PLACE_H

#include "capture.h"

typedef struct place {
    uint32_t fiber, thread;
    bool is_new; /* the fiber was met for the first time */
} place;

int place_prepare(const char **why); /* once a process. 0, or -1 with a sentence */
void place_reset(void);              /* numbers start anew: a new ring */

uint32_t place_thread_number(VALUE thread); /* GVL: not needed */

/* The current place; its definitions are sent when they are new or a name has changed. ec: the current execution context,
 * NULL when it is not known. false: a definition could not be sent. */
bool place_find(const void *ec, place *where);

/* Zeroed room for index in *array, a pointer to count items of size bytes; false when there is no memory. */
bool place_make_room(void *array, uint32_t *count, uint32_t index, size_t size);

#endif
