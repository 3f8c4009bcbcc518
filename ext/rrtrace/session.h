/* session.h - make a session: a private folder, a listening socket in it, and the visualizer that reads it.
 * For:     rrtrace.c; join.c tidies.
 * Threads: session_open with the GVL held; session_tidy on any.
 */
#ifndef RRTRACE_EXT_SESSION_H
#define RRTRACE_EXT_SESSION_H

#include <stddef.h>

/* args[arg_count]: the visualizer's own further arguments. 0 with the socket's path, or -1 with one line in why. */
int session_open(const char *visualizer, char *const *args, size_t arg_count, char *socket_path, size_t path_bytes,
                 char *why, size_t why_bytes);

/* Remove a session's socket and folder if nobody listens there any more. Async-signal-unsafe, no Ruby. */
void session_tidy(const char *socket_path);

#endif
