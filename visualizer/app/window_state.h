/* app/window_state.h - the window as the user left it: size and camera.
 * For:     window.c.
 * Where:   $XDG_STATE_HOME/rrtrace/window, else ~/.local/state/rrtrace/window; one line: width height camera.
 * Errors:  none: what can't be read is as at first, what can't be written is forgotten.
 */
#ifndef RRTRACE_APP_WINDOW_STATE_H
#define RRTRACE_APP_WINDOW_STATE_H

#include "view/view.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct window_state {
    uint32_t width, height; /* in the desktop's units */
    view_camera camera;
} window_state;

/* False: there is none, or it makes no sense; *out stays as it was. */
bool window_state_load(window_state *out);
void window_state_save(const window_state *state);

#endif
