/* app/shot.h - one picture into a PNG file, drawn off-screen by the renderer of the window.
 * For:     main.c (of a session), window_shot_command.c (of a recording).
 * Errors:  0, or -errno with one line in error: what failed, where, what to do.
 */
#ifndef RRTRACE_APP_SHOT_H
#define RRTRACE_APP_SHOT_H

#include "app/session.h"
#include "view/view.h"

#include <stddef.h>
#include <stdint.h>

typedef struct shot_desc {
    const char *path;
    uint32_t width, height; /* pixels */
    view_desc view;         /* is_software and is_still are set here */
} shot_desc;

/* rgba: width * height * 4 bytes. The file appears whole or not at all; so below. */
int shot_write(const char *path, uint32_t width, uint32_t height, const uint8_t *rgba, char *error, size_t error_bytes);
int shot_draw(const shot_desc *desc, const view_model *model, const view_status *status, char *error, size_t error_bytes);
/* The same of a session, as it is now; it stands still meanwhile. */
int shot_take(session *s, const char *path, uint32_t width, uint32_t height, char *error, size_t error_bytes);

#endif
