/* app/shot.h - one picture of a session into a PNG file, drawn off-screen by the renderer of the window.
 * For:     main.c.
 * Errors:  0, or -errno with one line in error: what failed, where, what to do.
 */
#ifndef RRTRACE_APP_SHOT_H
#define RRTRACE_APP_SHOT_H

#include "app/session.h"

#include <stddef.h>

/* width, height: pixels. The file appears whole or not at all. */
int shot_take(session *s, const char *path, uint32_t width, uint32_t height, char *error, size_t error_bytes);

#endif
