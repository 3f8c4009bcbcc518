/* base/write.h - all of some bytes into a file descriptor.
 * For:     whoever writes files itself: pen.h, record/, app/.
 * Idea:    write may take a part, or be interrupted by a signal; nobody here wants to hear of either.
 * Threads: any.
 */
#ifndef RRTRACE_BASE_WRITE_H
#define RRTRACE_BASE_WRITE_H

#include <stddef.h>

int write_all(int fd, const void *bytes, size_t count); /* 0 or -errno: then some of it may be written */

#endif
