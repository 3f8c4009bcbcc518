/* writer.h - slots into the ring: room, waiting, definitions.
 * For:     capture.c and place.c; the functions that others call too are in capture.h.
 * Idea:    begin (lock, room), put, commit (publish, unlock). Who finds the ring full waits without the lock, and looks
 *          each time whether the visualizer still lives.
 * Threads: any, as capture.h says.
 */
#ifndef RRTRACE_EXT_WRITER_H
#define RRTRACE_EXT_WRITER_H

#include "capture.h"

/* Wait a little for the reader, longer each time. 1 ms at most: a reader that died must free the program within 100 ms. */
void writer_wait(unsigned step);

/* After capture_begin: hand over count slots and let the lock go. */
static inline void writer_commit(stream *s, uint64_t count)
{
    ring_publish(s->ring, count);
    ring_unlock(s->ring);
}

/* Under the lock: a definition's head and payload into the slots from offset on. Returns the slots taken. */
uint64_t writer_put_define(stream *s, uint64_t offset, uint32_t number, const capture_piece *pieces, int piece_count);

#endif
