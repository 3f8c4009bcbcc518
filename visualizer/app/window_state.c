#include "app/window_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIDE_MIN 160u
#define SIDE_MAX 16384u

/* The folder; made when is_made. False: no home. */
static bool folder_of(char *out, size_t bytes, bool is_made)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        snprintf(out, bytes, "%s", state);
    else if (home && *home == '/')
        snprintf(out, bytes, "%s/.local/state", home);
    else
        return false;
    if (strlen(out) + 32 > bytes)
        return false;
    for (char *at = out + 1; is_made && *at; at++) { /* each folder on the way */
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(out, 0700);
        *at = '/';
    }
    if (is_made)
        mkdir(out, 0700);
    strcat(out, "/rrtrace");
    if (is_made)
        mkdir(out, 0700);
    return true;
}

bool window_state_load(window_state *out)
{
    char path[4096];
    unsigned width, height, camera;
    if (!folder_of(path, sizeof path - 16, false))
        return false;
    strcat(path, "/window");
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = fscanf(file, "%u %u %u", &width, &height, &camera) == 3;
    fclose(file);
    if (!is_read || width < SIDE_MIN || height < SIDE_MIN || width > SIDE_MAX || height > SIDE_MAX || camera > VIEW_CAMERA_THREADS)
        return false;
    *out = (window_state){width, height, (view_camera)camera};
    return true;
}

void window_state_save(const window_state *state)
{
    char path[4096], temporary[4112];
    if (!folder_of(path, sizeof path - 16, true))
        return;
    strcat(path, "/window");
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *file = fopen(temporary, "we");
    if (!file)
        return;
    bool is_written = fprintf(file, "%u %u %u\n", state->width, state->height, (unsigned)state->camera) > 0;
    if (fclose(file) != 0 || !is_written || rename(temporary, path) != 0)
        unlink(temporary);
}
