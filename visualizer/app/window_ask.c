#include "app/window_ask.h"

#include "app/editor.h"
#include "app/shot.h"
#include "base/mem.h"

#include <SDL2/SDL.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void window_asks_init(window_asks *a, pid_t pid)
{
    *a = (window_asks){.pid = pid};
    if (!getcwd(a->folder, sizeof a->folder))
        snprintf(a->folder, sizeof a->folder, "/tmp");
}

static void copy(view *v, const char *text)
{
    if (SDL_SetClipboardText(text) != 0)
        view_say(v, "the clipboard does not take it");
}

static void open_source(const window_asks *a, view *v, const view_request *r)
{
    static editor e; /* large; one at a time */
    editor_settings settings = editor_settings_of_environment();
    char path[sizeof a->folder + sizeof r->text + 1], line[256];
    snprintf(path, sizeof path, "%s%s%s", r->text[0] == '/' ? "" : a->folder, r->text[0] == '/' ? "" : "/", r->text);
    if (access(path, R_OK) != 0) {
        snprintf(line, sizeof line, "%.200s: %s", path, strerror(errno));
        view_say(v, line);
        return;
    }
    int error = editor_make(&e, &settings, path, r->line);
    if (!error)
        error = editor_start(&e);
    if (error)
        editor_explain(&e, error, line, sizeof line);
    else
        snprintf(line, sizeof line, "opened %.200s:%u", r->text, r->line);
    view_say(v, line);
}

/* As a recorder's one button: whoever began it, it ends. */
static void begin_or_end_recording(const window_asks *a, session *s, const session_status *status, view *v)
{
    char path[sizeof a->folder + 64];
    if (status->file) {
        view_say(v, "this is a recording: there is nothing to record");
    } else if (status->is_recording) {
        session_record_no_more(s, false);
    } else if (session_has_ended(status)) {
        view_say(v, "every program has ended: there is nothing to record");
    } else {
        recording_name(path, sizeof path, a->folder, a->pid);
        session_record_from_here(s, path);
    }
}

static void say_name(view *v, const char *before, const char *path, const char *behind)
{
    char line[512];
    const char *name = strrchr(path, '/');
    snprintf(line, sizeof line, "%s%.200s%s", before, name ? name + 1 : path, behind);
    view_say(v, line);
}

bool window_ask_news(session *s, FILE *log, view *v)
{
    recording_news news;
    bool has_any = false;
    for (; session_take_news(s, &news); has_any = true) {
        if (log && news.what == RECORDING_WRITTEN)
            recording_say_written(log, news.line, news.bytes, news.waits, news.dropped);
        if (log && news.what == RECORDING_FAILED)
            fprintf(log, "rrtrace: %s\n", news.line);
        if (v && news.what == RECORDING_FAILED)
            view_say(v, news.line);
        else if (v && news.what == RECORDING_BEGUN)
            say_name(v, "recording into ", news.line, ": R ends it");
        else if (v)
            say_name(v, "recording ended: written to ", news.line, "");
    }
    return has_any;
}

bool window_ask(window_asks *a, session *s, const session_status *status, gpu *g, view *v)
{
    view_request r;
    if (!view_take_request(v, &r))
        return false;
    switch (r.ask) {
    case VIEW_ASK_NONE: break;
    case VIEW_ASK_COPY: copy(v, r.text); break;
    case VIEW_ASK_SOURCE: open_source(a, v, &r); break;
    case VIEW_ASK_RECORD: begin_or_end_recording(a, s, status, v); break;
    case VIEW_ASK_PICTURE:
        if (gpu_capture(g, true) == 0)
            a->wants_picture = true;
        else
            view_say(v, gpu_error(g));
        break;
    }
    return true;
}

static int write_picture(window_asks *a, gpu *g, char *line, size_t line_bytes)
{
    char path[sizeof a->folder + 64], stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    uint32_t width, height;
    gpu_extent(g, &width, &height);
    size_t bytes = (size_t)width * height * 4;
    uint8_t *rgba = mem_alloc(bytes, 1);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
    snprintf(path, sizeof path, "%s/rrtrace-%s.png", a->folder, stamp);
    int error = rgba ? gpu_read_pixels(g, rgba, bytes) : -ENOMEM;
    if (error)
        snprintf(line, line_bytes, "no picture: %s", strerror(-error));
    else
        error = shot_write(path, width, height, rgba, line, line_bytes);
    if (!error)
        snprintf(line, line_bytes, "picture written to %.200s", path);
    mem_free(rgba);
    return error;
}

void window_ask_picture(window_asks *a, gpu *g, view *v)
{
    char line[512];
    a->wants_picture = false;
    write_picture(a, g, line, sizeof line);
    gpu_capture(g, false);
    view_say(v, line);
}
