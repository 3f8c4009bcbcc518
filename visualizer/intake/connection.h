/* intake/connection.h - one program: its socket, and its ring once it has said hello.
 * For:     intake.c only.
 * Idea:    what comes from the other side is hostile until checked: the peer's uid, the message, the descriptor, the ring.
 * Memory:  owns the descriptor, which is all that a program takes of them, and the mapping.
 * Threads: the intake thread.
 */
#ifndef RRTRACE_INTAKE_CONNECTION_H
#define RRTRACE_INTAKE_CONNECTION_H

#include "wire/handshake.h"
#include "wire/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct connection {
    int fd; /* -1: intake has taken it over */
    pid_t peer_pid; /* as we see it */
    bool has_ring, is_announced;
    bool is_gone;  /* end of file: the program has ended, or has closed */
    bool said_bye;
    bool was_turned_away; /* for want of a descriptor */
    const char *problem; /* static text: the ring holds nonsense */
    uint32_t stream;
    uint32_t clock_source;
    ring_reader reader;
    uint64_t end_index; /* once is_gone or said_bye: where its events end, as of then; a lying index has no further say */
    void *mapping; /* owned, mapped_bytes */
    size_t mapped_bytes;
    uint64_t calibrated_ns, last_ticks;
    uint64_t told_waits; /* what the stream knows of connection_waits */
} connection;

connection *connection_new(int fd); /* takes fd over; NULL: a stranger, or memory is out (fd is closed) */
void connection_delete(connection *c);
void connection_serve(connection *c); /* something came on the socket, or it was closed */

/* Copy out and consume whole records, at most max slots. Sets problem when the ring holds nonsense. */
uint32_t connection_read(connection *c, ev *out, uint32_t max);
uint64_t connection_backlog(const connection *c); /* slots waiting; 0 without a ring */
uint64_t connection_dropped(const connection *c);
uint64_t connection_waits(const connection *c);

void connection_send(int fd, hs_type type, const char *text);
#define CONNECTION_TOO_MANY "it has too many files open (ulimit -n)" /* why a program is turned away */

#endif
