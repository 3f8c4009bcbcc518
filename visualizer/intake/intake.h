/* intake/intake.h - lets programs in, and empties their rings: the only room that touches a mapping.
 * For:     app/: one intake a session.
 * Idea:    one thread. It watches the session's socket and every program's connection, and goes round the rings, copying
 *          what is there into blocks of the pool. Emptying rings comes before everything else, so it does nothing else:
 *          it only looks for DEFINEs, so that no block cuts one in two, and adds a clock calibration every second, and how often
 *          the program has had to wait for it.
 * Use:     intake_start; the other end of the block_pool: block_pool_wait; intake_done for programs that wait; intake_stop.
 * Memory:  owns connections and mappings; a ring is unmapped once its stream has ended. One descriptor a program.
 * Threads: its own thread owns all state; intake_done and intake_is_over may be called from any thread.
 * Units:   stream numbers count from 0 in the order of joining.
 * Errors:  a program that says nonsense loses its connection, with a reason, and runs on untraced; a ring with nonsense in
 *          it ends its stream (block.problem); one that no descriptor is left for is refused and counted. None of them disturbs other programs.
 */
#ifndef RRTRACE_INTAKE_INTAKE_H
#define RRTRACE_INTAKE_INTAKE_H

#include "intake/block_pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct intake intake;

typedef struct intake_desc {
    block_pool *pool;        /* borrowed */
    int listen_fd;           /* taken over: closed by intake_stop; -1: none */
    const char *socket_path; /* borrowed; unlinked with its folder at the end; NULL: not ours to remove */
    pid_t watch_pid;         /* the session is not over while this process lives; 0: none */
} intake_desc;

typedef struct intake_stats {
    uint64_t event_count; /* slots taken out of rings so far */
    uint64_t ring_backlog; /* slots waiting in rings at the last round */
    uint64_t dropped;      /* as the writers counted */
    uint64_t writer_waits; /* times a writer found its ring full */
    uint64_t turned_away;  /* programs that could not be let in: no descriptor was left */
    uint32_t stream_count, open_count;
} intake_stats;

int intake_start(intake **out, const intake_desc *desc); /* 0 or -errno */
void intake_stop(intake *in);                            /* ends and joins the thread; NULL is fine */

/* Nothing is connected, and the watched process is gone or has said goodbye. Once true, it stays true unless another
 * program still joins through the socket. */
bool intake_is_over(const intake *in);
intake_stats intake_stats_of(intake *in);

/* Tell a program that said goodbye that everything of its stream is processed and, where it is recorded, saved; and let go
 * of its socket: call it once for every stream that has ended. */
void intake_done(intake *in, uint32_t stream);

#endif
