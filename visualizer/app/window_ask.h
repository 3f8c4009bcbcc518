/* app/window_ask.h - what the view asks for: the clipboard, the editor, a picture of the window, a recording.
 * For:     window.c.
 * Use:     window_ask after each frame was built: it takes what is asked, and says in the view what came of it. A picture is of the
 *          next frame: window_ask_picture after gpu_draw.
 * Threads: the window's.
 */
#ifndef RRTRACE_APP_WINDOW_ASK_H
#define RRTRACE_APP_WINDOW_ASK_H

#include "app/session.h"
#include "gpu/gpu.h"
#include "view/view.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct window_asks {
    char folder[4096];    /* where the program was started: pictures and recordings go there, relative paths begin there */
    pid_t pid;            /* of the program */
    bool wants_picture;   /* of the next frame */
} window_asks;

/* Takes the folder; before anybody leaves it. */
void window_asks_init(window_asks *a, pid_t pid);
/* True: the next frame is wanted soon. */
bool window_ask(window_asks *a, session *s, const session_status *status, gpu *g, view *v);
/* What has become of recordings: in the view (NULL: it is gone) and in the log (NULL: there is none). True: there was something. */
bool window_ask_news(session *s, FILE *log, view *v);
/* After a frame that was drawn with wants_picture. */
void window_ask_picture(window_asks *a, gpu *g, view *v);

#endif
