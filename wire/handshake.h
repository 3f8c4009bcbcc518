/* wire/handshake.h - the messages on the session's socket.
 * For:     ext/ (join, leave), intake/ (listen).
 * Idea:    a Unix SOCK_SEQPACKET socket in a folder of mode 0700: messages keep their borders, descriptors travel with
 *          SCM_RIGHTS, and end-of-file is the sign of life in both directions.
 *
 *            program                                   visualizer
 *               | connect                                  |   a connection alone already keeps the session open
 *               | HELLO + the ring's descriptor  ------->  |   (a forked child connects before its parent's copy closes)
 *               | <-------------------  WELCOME or REFUSED |   REFUSED: text says why; the program runs on untraced
 *               |            (events in the ring)          |
 *               | BYE  --------------------------------->  |   no more events will come
 *               | <---------------------------------  DONE |   all are read, and saved where they are recorded
 *               | close                                    |   or just close, or die: the same without the answer
 *               | <---------------------------------  DONE |   unasked, then close: the visualizer ends in order, as when its
 *               |                                          |   window is closed; just an end of file: it was killed
 * Use:     send and recv one hs_message; hs_message_ok checks what came.
 * Threads: values only.
 */
#ifndef RRTRACE_WIRE_HANDSHAKE_H
#define RRTRACE_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HS_MAGIC 0x48545252u /* "RRTH" */
#define HS_VERSION 1u
#define HS_SOCKET_NAME "session" /* in the session's folder */
#define HS_ENV "RRTRACE_SESSION" /* environment: the socket's path */

typedef enum hs_type { HS_HELLO = 1, HS_WELCOME, HS_REFUSED, HS_BYE, HS_DONE } hs_type;

typedef struct hs_message {
    uint32_t magic;
    uint16_t version;
    uint16_t type;       /* hs_type */
    uint32_t pid, ppid;  /* HELLO: as the program sees them; pid in what the visualizer sends: its own */
    uint64_t ring_bytes; /* HELLO: size of the shared memory behind the descriptor */
    uint32_t ractor;     /* HELLO: 1 is the main one */
    uint32_t reserved;
    char text[96];       /* REFUSED: the reason, ended by NUL */
} hs_message;

_Static_assert(sizeof(hs_message) == 128, "fixed layout");
_Static_assert(offsetof(hs_message, ring_bytes) == 16 && offsetof(hs_message, text) == 32, "fixed layout");

static inline bool hs_message_ok(const hs_message *m, size_t bytes)
{
    return bytes == sizeof *m && m->magic == HS_MAGIC && m->version == HS_VERSION && m->text[sizeof m->text - 1] == '\0';
}

#endif
