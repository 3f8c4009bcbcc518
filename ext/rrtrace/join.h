/* join.h - the link to a session: socket, ring, watcher, fork, detach.
 * For:     rrtrace.c.
 * Idea:    start in order, stop in reverse, through one function that accepts half-made state. The socket's end-of-file
 *          is the sign of life; a small native thread sees it at once, whatever the program is doing.
 * Memory:  owns the ring's mapping and the descriptors. The shared memory is unlinked as soon as it is mapped.
 * Threads: GVL held, but for the watcher's and the fork handler's own functions.
 */
#ifndef RRTRACE_EXT_JOIN_H
#define RRTRACE_EXT_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOIN_WHY_BYTES 512

/* 0, or -1 with one line in why. -2: interrupted. */
int join_session(const char *socket_path, uint64_t slot_count, bool drop, bool c_calls, bool blocks,
                 char why[JOIN_WHY_BYTES]);
bool join_leave(int wait_ms); /* false when not joined */
bool join_is_on(void);
bool join_memory_works(void); /* for rrtrace doctor: can a small ring's memory be had? */

/* writer.c, any thread: the reader stands still; run on untraced. */
void join_give_up(void);

/* capture.c, from a hook in a forked child: make a ring of its own. true: joined. */
bool join_in_child(void);

#endif
