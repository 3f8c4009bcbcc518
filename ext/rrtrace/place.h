/* place.h - which thread and which fiber runs now, by numbers that no reused address can fake.
 * For:     capture.c, ractors.c.
 * Idea:    a thread's number lies in its own slot (rb_internal_thread_specific_*), beside its stream; a fiber's in a hidden
 *          ivar of its Fiber object. A small cache from execution contexts saves the way there while no GC has run.
 * Threads: GVL held, but for place_thread_number and place_stream_slot.
 */
#ifndef RRTRACE_EXT_PLACE_H
#define RRTRACE_EXT_PLACE_H

#include "vm.h"
#include "wire/event.h"

#include <stdbool.h>

struct stream;

/* Execution contexts met lately. Only a cache: the truth is the number in the Fiber object, which dies with the fiber. */
enum { PLACE_CONTEXT_BITS = 10 };
typedef struct place_context {
    const void *ec;
    uint64_t generation; /* of the GC when this was last known to be true */
    uint32_t fiber, thread;
} place_context;

/* One a stream. */
typedef struct place_state {
    place_context contexts[1u << PLACE_CONTEXT_BITS];
    /* By thread number: the name in the thread's last DEFINE, 0 when it has none yet. Compared only, never read: a new name
     * is another String, made before the old one could be freed. */
    VALUE *names; /* owned; [0, name_count) */
    uint32_t name_count;
} place_state;

typedef struct place {
    uint32_t fiber, thread;
    bool is_new; /* the fiber was met for the first time */
} place;

int place_prepare(const char **why);  /* once a process. 0, or -1 with a sentence */
void place_reset(struct stream *s);   /* a new ring: nothing is defined in it */

uint32_t place_thread_number(const struct stream *s, VALUE thread); /* GVL: not needed */

/* The stream that a thread was seen to belong to, NULL when it was not seen so far. GVL: not needed. */
struct stream *place_stream_slot(VALUE thread);
void place_set_stream_slot(VALUE thread, struct stream *s);

/* The current place; its definitions are sent when they are new or a name has changed. ec: the current execution context,
 * NULL when it is not known. false: a definition could not be sent. */
bool place_find(struct stream *s, const void *ec, place *where);

/* Zeroed room for index in *array, a pointer to count items of size bytes; false when there is no memory. */
bool place_make_room(void *array, uint32_t *count, uint32_t index, size_t size);

#endif
