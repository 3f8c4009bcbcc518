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

typedef struct window window;

typedef struct window_desc {
    uint32_t width, height; /* in the desktop's units */
    bool is_size_free; /* the user has said nothing of it: as the window was left the last time */
    bool close_on_exit;
    bool validation;
    const volatile sig_atomic_t *stops; /* becomes true when the process is told to end */
} window_desc;

/* 0, or -errno with one line in error: no display, no Vulkan, … */
int window_open(window **out, const window_desc *desc, char *error, size_t error_bytes);
int window_run(window *w, session *s); /* 0, or -EIO: the device was lost, told on stderr */
unsigned window_validation_count(const window *w);
void window_close(window *w); /* NULL is fine */

#endif
