/* app/window.h - the window and its frame loop.
 * For:     main.c.
 * Use:     window_open; window_run until the user closes it (or, if wished, the program ends); window_close.
 * Threads: the main one, as SDL wants.
 */
#ifndef RRTRACE_APP_WINDOW_H
#define RRTRACE_APP_WINDOW_H

#include "app/session.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct window window;

typedef struct window_desc {
    uint32_t width, height; /* in the desktop's units; 0: as the window was left the last time, else as options.h */
    bool close_on_exit;
    pid_t pid; /* of the program: recordings are named by it */
    const volatile sig_atomic_t *stops; /* becomes true when the process is told to end */
} window_desc;

/* 0, or -errno with one line in error: no display, no Vulkan, … */
int window_open(window **out, const window_desc *desc, char *error, size_t error_bytes);
/* An exit code: 0, 1: the device was lost, or 3: RRTRACE_VALIDATION is set and the layer had messages. Told on stderr.
 * log: where recordings are spoken of; NULL: in the window alone. */
int window_run(window *w, session *s, FILE *log);
void window_close(window *w); /* NULL is fine */

#endif
