/* join.h - the link to a session: sockets, rings, watcher, fork, detach.
 * For:     rrtrace.c; capture.c for what happens inside a hook.
 * Idea:    start in order, stop in reverse, through one function that accepts half-made state. The socket's end-of-file
 *          is the sign of life; a small native thread sees it at once, whatever the program is doing.
 *          Each stream has a connection and a ring of its own: the process's first one, which is watched, and those of further
 *          Ractors, which come and go with them.
 * Memory:  owns the rings' mappings and the descriptors. The shared memory is unlinked as soon as it is mapped.
 * Threads: main Ractor's GVL held, but for the watcher's and the fork handler's own functions and where it says otherwise.
 */
#ifndef RRTRACE_EXT_JOIN_H
#define RRTRACE_EXT_JOIN_H

#include "capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOIN_WHY_BYTES 512
#define JOIN_PATIENCE_NS UINT64_C(5000000000) /* of a program that waits for the visualizer, before it says so */

/* 0, or -1 with one line in why. Above 0: a signal came meanwhile, and what Ruby did about it has raised; for rb_jump_tag. */
int join_session(const char *socket_path, uint64_t slot_count, capture_options options, char why[JOIN_WHY_BYTES]);
/* What signals and other threads ask of this one. 0; above: it has raised, for rb_jump_tag or rb_set_errinfo. */
int join_do_interrupts(void);
bool join_leave(int wait_ms); /* false when not joined */
bool join_is_on(void); /* any thread */
bool join_memory_works(void); /* for rrtrace doctor: can a small ring's memory be had? */

/* writer.c, any thread: the reader stands still; run on untraced. */
void join_give_up(void);

/* Any thread, GVL or not: the program has waited for long. Says so, once a session: "waiting for the visualizer (process 7) …". */
void join_say_it_waits(const char *for_what);

/* From a hook in a forked child, or in a Ractor that has none yet: make a ring of its own. true: joined. The GVL of s held. */
bool join_in_hook(stream *s);

/* From a hook of a stream that is off: if the visualizer has gone, see to what is left of the session. Always false. */
bool join_is_over(const stream *s);

/* From the thread event of a Ractor's end, without GVL: close its ring, and give its stream back. */
void join_end_ractor(stream *s);

#endif
