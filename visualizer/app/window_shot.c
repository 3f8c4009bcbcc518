#include "app/shot.h"

#include "base/mem.h"
#include "base/write.h"
#include "gpu/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_TRIED 1000u

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* fd: is closed; or a negative error. */
static int write_and_close(int fd, const unsigned char *bytes, size_t count)
{
    if (fd < 0)
        return fd;
    int error = write_all(fd, bytes, count);
    if (close(fd) != 0 && !error)
        error = -errno;
    return error;
}

/* A new file beside target, of a name that nobody has; named in out[bytes]. A descriptor, or -errno. */
static int open_beside(const char *target, char *out, size_t bytes)
{
    const char *slash = strrchr(target, '/');
    int folder_bytes = slash ? (int)(slash + 1 - target) : 0;
    for (unsigned i = 0; i < NAMES_TRIED; i++) {
        snprintf(out, bytes, "%.*s.rrtrace-%d-%u.part", folder_bytes, target, (int)getpid(), i);
        int fd = open(out, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

static int open_there(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd >= 0 ? fd : -errno;
}

/* A file appears whole or stays as it was; a device takes what it is given; of a link it is the file behind it. */
static int put_file(const char *path, const unsigned char *bytes, size_t count)
{
    struct stat st;
    char target[PATH_MAX], temporary[PATH_MAX + 40];
    bool is_there = stat(path, &st) == 0;
    if (is_there && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : write_and_close(open_there(path), bytes, count);
    if (!is_there || !realpath(path, target))
        snprintf(target, sizeof target, "%s", path);
    int fd = open_beside(target, temporary, sizeof temporary), error = write_and_close(fd, bytes, count);
    if (!error && rename(temporary, target) != 0)
        error = -errno;
    if (error && fd >= 0)
        unlink(temporary);
    return error;
}

int shot_write(const char *path, uint32_t width, uint32_t height, const uint8_t *rgba, char *error, size_t error_bytes)
{
    int count = 0;
    unsigned char *png = stbi_write_png_to_mem(rgba, (int)width * 4, (int)width, (int)height, 4, &count);
    int result = png ? put_file(path, png, (size_t)count) : -ENOMEM;
    if (result)
        snprintf(error, error_bytes, "%s: can't be written: %s", path, strerror(-result));
    free(png); /* stb takes it from malloc */
    return result;
}

static view_status status_for(const session_status *s)
{
    return (view_status){
        .event_count = s->event_count,
        .dropped = s->dropped,
        .span_count = s->history.span_count,
        .memory_bytes = s->history.used_bytes,
        .memory_budget = s->history.budget_bytes,
        .note = s->problem,
        .ended = s->open_streams == 0,
    };
}

/* Twice: the first frame says which glyphs are needed. */
static int draw(gpu *g, view *v, const shot_desc *desc, const view_model *model, const view_status *status)
{
    int result = 0;
    for (int pass = 0; pass < 2 && result >= 0; pass++) {
        gpu_frame frame;
        const uint8_t *pixels;
        uint32_t atlas_width, atlas_height;
        view_build(v, model, status, desc->width, desc->height, 0.0, &frame);
        if (view_atlas(v, &pixels, &atlas_width, &atlas_height))
            result = gpu_set_atlas(g, pixels, atlas_width, atlas_height);
        if (result >= 0)
            result = gpu_draw(g, &frame);
    }
    return result < 0 ? result : 0;
}

int shot_draw(const shot_desc *desc, const view_model *model, const view_status *status, char *error, size_t error_bytes)
{
    gpu *g = NULL;
    view *v = NULL;
    size_t bytes = (size_t)desc->width * desc->height * 4;
    uint8_t *rgba = mem_alloc(bytes, 1);
    gpu_desc gpu_settings = {.width = desc->width, .height = desc->height, .validation = getenv("RRTRACE_VALIDATION") != NULL};
    int result = rgba ? gpu_new(&g, &gpu_settings) : -ENOMEM;
    view_desc view_settings = desc->view;
    view_settings.is_still = true;
    if (!result) {
        view_settings.is_software = gpu_is_software(g);
        result = view_new(&v, &view_settings);
    }
    if (!result)
        result = draw(g, v, desc, model, status);
    if (!result)
        result = gpu_read_pixels(g, rgba, bytes);
    if (result)
        snprintf(error, error_bytes, "%s: no picture: %s", desc->path, g && *gpu_error(g) ? gpu_error(g) : strerror(-result));
    else
        result = shot_write(desc->path, desc->width, desc->height, rgba, error, error_bytes);
    if (!result && gpu_validation_count(g) > 0) {
        snprintf(error, error_bytes, "%s: the validation layer had %u messages", desc->path, gpu_validation_count(g));
        result = -EPROTO;
    }
    view_delete(v);
    gpu_delete(g);
    mem_free(rgba);
    return result;
}

int shot_take(session *s, const char *path, uint32_t width, uint32_t height, char *error, size_t error_bytes)
{
    session_status status = session_status_of(s);
    view_status shown = status_for(&status);
    session_lock(s);
    session_model m = session_model_of(s);
    view_model model = {.catalog = m.catalog, .history = m.history, .sim = m.sim, .notes = m.notes, .now_ns = m.last_event_ns};
    int result = shot_draw(&(shot_desc){.path = path, .width = width, .height = height}, &model, &shown, error, error_bytes);
    session_unlock(s);
    return result;
}
