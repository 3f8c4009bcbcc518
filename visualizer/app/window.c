#include "app/window.h"

#include "app/options.h"
#include "app/window_ask.h"
#include "app/window_state.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "view/view.h"
#include "wire/clock.h"

#include <SDL2/SDL.h>
#include <SDL2/SDL_vulkan.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frame intervals. A software driver takes a core for itself, so it gets fewer frames, and fewer still while there are
 * events to catch up with: the program comes first. */
#define FRAME_MS_HARDWARE 0u /* as the display wants */
#define FRAME_MS_SOFTWARE 33u
#define FRAME_MS_BEHIND 100u
#define FRAME_MS_STILL 250u /* nothing moves: the picture is right as it is, but figures may still change */
#define BEHIND_EVENTS 200000u

struct window {
    window_desc desc;
    SDL_Window *sdl;
    gpu *gpu;
    view *view;
    bool quits, is_size_free;
    FILE *log;
    window_asks asks;
    window_state state; /* as it was found */
    bool needs_frame; /* input or the window system asks for one now */
    uint64_t drawn_hash; /* of the frame on the screen */
    uint32_t modifiers; /* VIEW_MOD_…, as of the last event taken: SDL's own state runs ahead of its queue */
    uint64_t counter_last;
    double frames_per_s;
    char title[160];
};

/* ---- input ---------------------------------------------------------------------------------------------------- */

static view_key key_of(SDL_Keysym k)
{
    switch (k.scancode) {
    case SDL_SCANCODE_W: return VIEW_KEY_W;
    case SDL_SCANCODE_A: return VIEW_KEY_A;
    case SDL_SCANCODE_S: return VIEW_KEY_S;
    case SDL_SCANCODE_D: return VIEW_KEY_D;
    case SDL_SCANCODE_LEFT: return VIEW_KEY_LEFT;
    case SDL_SCANCODE_RIGHT: return VIEW_KEY_RIGHT;
    case SDL_SCANCODE_UP: return VIEW_KEY_UP;
    case SDL_SCANCODE_DOWN: return VIEW_KEY_DOWN;
    case SDL_SCANCODE_SPACE: return VIEW_KEY_SPACE;
    case SDL_SCANCODE_L: return VIEW_KEY_L;
    case SDL_SCANCODE_END: return VIEW_KEY_END;
    case SDL_SCANCODE_HOME: return VIEW_KEY_HOME;
    case SDL_SCANCODE_0:
    case SDL_SCANCODE_KP_0: return VIEW_KEY_0;
    case SDL_SCANCODE_1:
    case SDL_SCANCODE_KP_1: return VIEW_KEY_1;
    case SDL_SCANCODE_2:
    case SDL_SCANCODE_KP_2: return VIEW_KEY_2;
    case SDL_SCANCODE_3:
    case SDL_SCANCODE_KP_3: return VIEW_KEY_3;
    case SDL_SCANCODE_F: return VIEW_KEY_F;
    case SDL_SCANCODE_F1: return VIEW_KEY_HELP;
    case SDL_SCANCODE_ESCAPE: return VIEW_KEY_ESC;
    case SDL_SCANCODE_RETURN:
    case SDL_SCANCODE_KP_ENTER: return VIEW_KEY_ENTER;
    case SDL_SCANCODE_TAB: return VIEW_KEY_TAB;
    case SDL_SCANCODE_BACKSPACE: return VIEW_KEY_BACKSPACE;
    case SDL_SCANCODE_DELETE: return VIEW_KEY_DELETE;
    default: break;
    }
    /* Signs and the letter of a shortcut go by what is printed on the key. */
    if (k.sym == SDLK_QUESTION || (k.sym == SDLK_SLASH && (k.mod & KMOD_SHIFT)))
        return VIEW_KEY_HELP;
    return k.sym == SDLK_q ? VIEW_KEY_Q : VIEW_KEY_NONE;
}

/* Keys that also edit a line. */
static bool repeats(view_key key)
{
    return key == VIEW_KEY_ESC || key == VIEW_KEY_BACKSPACE || key == VIEW_KEY_DELETE || key == VIEW_KEY_LEFT || key == VIEW_KEY_RIGHT ||
           key == VIEW_KEY_TAB || key == VIEW_KEY_ENTER;
}

static uint32_t modifiers_of(uint16_t m)
{
    return (m & KMOD_SHIFT ? VIEW_MOD_SHIFT : 0u) | (m & (KMOD_CTRL | KMOD_GUI) ? VIEW_MOD_CTRL : 0u) |
           (m & KMOD_ALT ? VIEW_MOD_ALT : 0u);
}

/* The pointer comes in the desktop's units; the picture is in pixels. */
static void to_pixels(const window *w, int x, int y, view_input_event *out)
{
    int width, height;
    uint32_t width_px, height_px;
    SDL_GetWindowSize(w->sdl, &width, &height);
    gpu_extent(w->gpu, &width_px, &height_px);
    out->x_px = width > 0 ? (float)x * (float)width_px / (float)width : 0.0f;
    out->y_px = height > 0 ? (float)y * (float)height_px / (float)height : 0.0f;
}

static bool button_of(uint8_t sdl_button, view_button *out)
{
    *out = sdl_button == SDL_BUTTON_LEFT ? VIEW_BUTTON_LEFT : sdl_button == SDL_BUTTON_MIDDLE ? VIEW_BUTTON_MIDDLE : VIEW_BUTTON_RIGHT;
    return sdl_button == SDL_BUTTON_LEFT || sdl_button == SDL_BUTTON_MIDDLE || sdl_button == SDL_BUTTON_RIGHT;
}

static void take_window_event(window *w, const SDL_WindowEvent *e)
{
    view_input_event in = {.type = VIEW_INPUT_RESIZE};
    switch (e->event) {
    case SDL_WINDOWEVENT_CLOSE: w->quits = true; return;
    case SDL_WINDOWEVENT_FOCUS_LOST:
    case SDL_WINDOWEVENT_LEAVE: in.type = VIEW_INPUT_LEAVE; break;
    case SDL_WINDOWEVENT_SIZE_CHANGED: gpu_extent(w->gpu, &in.width_px, &in.height_px); break;
    case SDL_WINDOWEVENT_FOCUS_GAINED: w->modifiers = modifiers_of((uint16_t)SDL_GetModState()); return;
    case SDL_WINDOWEVENT_EXPOSED:
    case SDL_WINDOWEVENT_RESTORED:
    case SDL_WINDOWEVENT_SHOWN: break;
    default: return;
    }
    w->needs_frame = true;
    if (e->event == SDL_WINDOWEVENT_SIZE_CHANGED || in.type == VIEW_INPUT_LEAVE)
        view_input(w->view, &in);
}

static void take_event(window *w, const SDL_Event *e)
{
    if (e->type == SDL_KEYDOWN || e->type == SDL_KEYUP)
        w->modifiers = modifiers_of(e->key.keysym.mod);
    view_input_event in = {.modifiers = w->modifiers};
    switch (e->type) {
    case SDL_QUIT: w->quits = true; return;
    case SDL_WINDOWEVENT: take_window_event(w, &e->window); return;
    case SDL_KEYDOWN:
    case SDL_KEYUP:
        in.type = VIEW_INPUT_KEY;
        in.key = key_of(e->key.keysym);
        in.is_down = e->type == SDL_KEYDOWN;
        if (in.key == VIEW_KEY_NONE || (e->key.repeat && !repeats(in.key)))
            return; /* held keys are the view's business: it knows how long */
        break;
    case SDL_TEXTINPUT:
        if (strlen(e->text.text) >= sizeof in.text || w->modifiers & (VIEW_MOD_CTRL | VIEW_MOD_ALT))
            return;
        in.type = VIEW_INPUT_TEXT;
        memcpy(in.text, e->text.text, strlen(e->text.text) + 1);
        break;
    case SDL_MOUSEBUTTONDOWN:
    case SDL_MOUSEBUTTONUP:
        in.type = VIEW_INPUT_BUTTON;
        in.is_down = e->type == SDL_MOUSEBUTTONDOWN;
        if (!button_of(e->button.button, &in.button))
            return;
        to_pixels(w, e->button.x, e->button.y, &in);
        break;
    case SDL_MOUSEMOTION:
        in.type = VIEW_INPUT_MOVE;
        to_pixels(w, e->motion.x, e->motion.y, &in);
        break;
    case SDL_MOUSEWHEEL: {
        float sign = e->wheel.direction == SDL_MOUSEWHEEL_FLIPPED ? -1.0f : 1.0f;
        in.type = VIEW_INPUT_WHEEL;
        in.wheel_x = sign * e->wheel.preciseX;
        in.wheel_y = sign * e->wheel.preciseY;
        to_pixels(w, e->wheel.mouseX, e->wheel.mouseY, &in);
        break;
    }
    default: return;
    }
    if (view_input(w->view, &in))
        w->needs_frame = true;
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

static double seconds_since(uint64_t counter)
{
    return (double)(SDL_GetPerformanceCounter() - counter) / (double)SDL_GetPerformanceFrequency();
}

static void set_title(window *w, session *s, const session_status *status)
{
    char title[sizeof w->title];
    const char *name = status->file ? strrchr(status->file, '/') : NULL;
    session_lock(s);
    const catalog *c = session_model_of(s).catalog;
    const char *command = catalog_process_count(c) > 0 ? catalog_process_at(c, 0)->command : "";
    if (status->file)
        snprintf(title, sizeof title, "rrtrace: %.100s", name ? name + 1 : status->file);
    else
        snprintf(title, sizeof title, "rrtrace%s%.100s%s", *command ? ": " : "", command,
                 session_has_ended(status) ? " (ended)" : "");
    session_unlock(s);
    if (strcmp(title, w->title) != 0) {
        memcpy(w->title, title, sizeof title);
        SDL_SetWindowTitle(w->sdl, title);
    }
}

static void count_frame(window *w, double elapsed_s)
{
    double now = elapsed_s > 0 ? 1.0 / elapsed_s : 0.0;
    w->frames_per_s = w->frames_per_s > 0 ? w->frames_per_s * 0.9 + now * 0.1 : now;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    while (count-- > 0)
        hash = (hash ^ *at++) * UINT64_C(0x9E3779B97F4A7C15);
    return hash;
}

/* All that a frame shows. */
static uint64_t hash_frame(const gpu_frame *f)
{
    uint64_t hash = hash_bytes(f->background, f->view_projection, sizeof f->view_projection);
    hash = hash_bytes(hash, f->boxes, f->box_count * sizeof *f->boxes);
    hash = hash_bytes(hash, f->glass, f->glass_count * sizeof *f->glass);
    return hash_bytes(hash, f->quads, f->quad_count * sizeof *f->quads);
}

static const char *note_of(const window *w, const session_status *status)
{
    if (status->problem)
        return status->problem;
    return status->is_too_much ? "this much detail does not fit into memory: look at less, or give more (--memory)" : view_font_problem(w->view);
}

/* FRAME_SAME: what is on the screen is what would be drawn; most of all when a program has ended. */
enum { FRAME_SAME = 100 };

static int draw_frame(window *w, session *s, const session_status *status, bool is_wanted)
{
    double elapsed_s = w->counter_last ? seconds_since(w->counter_last) : 0.0;
    w->counter_last = SDL_GetPerformanceCounter();
    count_frame(w, elapsed_s);
    bool ended = session_has_ended(status);
    const char *slash = status->recording ? strrchr(status->recording, '/') : NULL;
    view_status shown = {
        .events_per_s = status->events_per_s,
        .frames_per_s = w->frames_per_s,
        .backlog_events = status->backlog_events,
        .event_count = status->event_count,
        .dropped = status->dropped,
        .span_count = status->history.span_count,
        .evicted_count = status->history.evicted_count,
        .writer_waits = status->writer_waits,
        .memory_bytes = status->history.used_bytes,
        .memory_budget = status->history.budget_bytes,
        .device = gpu_device_name(w->gpu),
        .note = note_of(w, status),
        .recording = !status->is_recording ? NULL : slash ? slash + 1 : status->recording,
        .recorded_bytes = status->recorded_bytes,
        .ended = ended,
        .is_file = status->file != NULL,
        .read_share = status->read_share,
    };
    uint32_t width_px, height_px;
    gpu_extent(w->gpu, &width_px, &height_px);
    gpu_frame frame;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    session_lock(s);
    session_model m = session_model_of(s);
    view_model model = {
        .catalog = m.catalog,
        .history = m.history,
        .detail = m.detail,
        .detail_begin_ns = m.detail_begin_ns,
        .detail_end_ns = m.detail_end_ns,
        .sim = m.sim,
        .activity = m.activity,
        .figures = m.figures,
        .notes = m.notes,
        .begin_ns = m.begin_ns,
        .is_file = status->file != NULL,
        .read_share = status->read_share,
        .now_ns = ended ? m.last_event_ns : now_ns,
    };
    uint64_t build_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    view_build(w->view, &model, &shown, width_px ? width_px : 1, height_px ? height_px : 1, elapsed_s, &frame);
    double cpu_ms = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - build_ns) * 1e-6;
    session_unlock(s);
    if (window_ask(&w->asks, s, status, w->gpu, w->view) || window_ask_news(s, w->log, w->view))
        w->needs_frame = true;
    uint64_t begin_ns, end_ns;
    view_range(w->view, &begin_ns, &end_ns);
    if (session_look_at(s, begin_ns, end_ns))
        w->needs_frame = true; /* what was read back shows from the next one on */

    const uint8_t *pixels;
    uint32_t atlas_width, atlas_height;
    int result = 0;
    if (view_atlas(w->view, &pixels, &atlas_width, &atlas_height))
        result = gpu_set_atlas(w->gpu, pixels, atlas_width, atlas_height);
    uint64_t hash = hash_frame(&frame);
    if (result >= 0 && !is_wanted && hash == w->drawn_hash && !w->asks.wants_picture)
        return FRAME_SAME;
    uint64_t before = SDL_GetPerformanceCounter();
    if (result >= 0)
        result = gpu_draw(w->gpu, &frame);
    w->drawn_hash = result == GPU_DRAWN ? hash : 0;
    if (result == GPU_DRAWN && w->asks.wants_picture) {
        window_ask_picture(&w->asks, w->gpu, w->view);
        w->needs_frame = true;
        return result; /* what it took says nothing about the others */
    }
    double device_ms = gpu_times_of(w->gpu).device_ms; /* unlike ours, without waits for the display */
    if (result == GPU_DRAWN)
        view_frame_cost(w->view, device_ms > 0 ? device_ms : seconds_since(before) * 1e3, cpu_ms);
    return result;
}

static unsigned frame_interval_ms(const window *w, const session_status *status, bool is_still)
{
    if (is_still)
        return FRAME_MS_STILL;
    if (!gpu_is_software(w->gpu))
        return FRAME_MS_HARDWARE;
    return status->backlog_events > BEHIND_EVENTS ? FRAME_MS_BEHIND : FRAME_MS_SOFTWARE;
}

/* Serve events until the next frame is due. */
static void wait_for_frame(window *w, uint64_t last_counter, unsigned interval_ms)
{
    SDL_Event e;
    for (;;) {
        while (SDL_PollEvent(&e))
            take_event(w, &e);
        double left_ms = (double)interval_ms - seconds_since(last_counter) * 1e3;
        /* Input may shorten a long wait, but never asks a software driver for more frames than it is given. */
        unsigned least_ms = gpu_is_software(w->gpu) ? FRAME_MS_SOFTWARE : FRAME_MS_HARDWARE;
        if (w->needs_frame && interval_ms > least_ms)
            left_ms = (double)least_ms - seconds_since(last_counter) * 1e3;
        if (w->quits || *w->desc.stops || left_ms <= 0.5)
            return;
        if (SDL_WaitEventTimeout(&e, (int)(left_ms < 50.0 ? left_ms : 50.0)))
            take_event(w, &e);
    }
}

static int exit_code(const window *w, int result)
{
    uint32_t messages = gpu_validation_count(w->gpu); /* 0 unless they were asked for */
    if (messages > 0)
        fprintf(stderr, "rrtrace: the validation layer had %u messages\n", messages);
    return messages > 0 ? 3 : result < 0 ? 1 : 0;
}

int window_run(window *w, session *s, FILE *log)
{
    int result = 0;
    w->log = log;
    uint64_t last_events = UINT64_MAX;
    while (!w->quits && !*w->desc.stops && !view_wants_quit(w->view)) {
        session_status status = session_status_of(s);
        if (w->desc.close_on_exit && status.is_over)
            break;
        set_title(w, s, &status);
        bool is_still = status.is_outlined && (session_has_ended(&status) || view_is_paused(w->view)) && status.event_count == last_events &&
                        !view_is_moving(w->view) && !w->needs_frame;
        last_events = status.event_count;
        bool is_wanted = w->needs_frame;
        w->needs_frame = false;
        uint64_t begun = SDL_GetPerformanceCounter();
        result = draw_frame(w, s, &status, is_wanted);
        if (result < 0) {
            fprintf(stderr, "rrtrace: the picture has stopped: %s\n", gpu_error(w->gpu));
            break;
        }
        unsigned interval_ms = frame_interval_ms(w, &status, is_still);
        bool has_drawn = result == GPU_DRAWN;
        wait_for_frame(w, begun, !has_drawn && interval_ms < FRAME_MS_BEHIND ? FRAME_MS_BEHIND : interval_ms);
    }
    session_record_no_more(s, true);
    window_ask_news(s, log, NULL);
    return exit_code(w, result);
}

/* ---- open and close ------------------------------------------------------------------------------------------- */

/* How large text and lines are to be: what the desktop scales by itself, says, or what the screen's density asks for. */
static float display_scale(SDL_Window *sdl)
{
    float dpi = 0.0f;
    int width, height, width_px, height_px;
    SDL_GetWindowSize(sdl, &width, &height);
    SDL_Vulkan_GetDrawableSize(sdl, &width_px, &height_px);
    if (width > 0 && width_px > width)
        return (float)width_px / (float)width;
    const char *said = getenv("GDK_SCALE") ? getenv("GDK_SCALE") : getenv("QT_SCALE_FACTOR");
    float factor = said ? strtof(said, NULL) : 0;
    if (factor >= 1 && factor <= 4)
        return factor;
    int display = SDL_GetWindowDisplayIndex(sdl);
    if (display < 0 || SDL_GetDisplayDPI(display, &dpi, NULL, NULL) != 0 || dpi < 120.0f)
        return 1.0f;
    return dpi / 96.0f < 3.0f ? dpi / 96.0f : 3.0f;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

int window_open(window **out, const window_desc *desc, char *error, size_t error_bytes)
{
    window *w = *out = mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->desc = *desc;
    window_asks_init(&w->asks, desc->pid);
    w->is_size_free = desc->width == 0;
    w->state = (window_state){OPTIONS_WIDTH_DEFAULT, OPTIONS_HEIGHT_DEFAULT, VIEW_CAMERA_SCENE};
    if (w->is_size_free)
        window_state_load(&w->state);
    else
        w->state = (window_state){desc->width, desc->height, VIEW_CAMERA_SCENE};
    if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("SDL_VIDEODRIVER")) {
        snprintf(error, error_bytes, "no display"); /* SDL would look for screens of its own kinds, and complain */
        window_close(w);
        *out = NULL;
        return -ENODEV;
    }
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
    SDL_SetHint(SDL_HINT_VIDEO_X11_NET_WM_BYPASS_COMPOSITOR, "0");
    int result = SDL_Init(SDL_INIT_VIDEO) == 0 ? 0 : -ENODEV;
    if (!result) {
        w->sdl = SDL_CreateWindow("rrtrace", SDL_WINDOWPOS_UNDEFINED, SDL_WINDOWPOS_UNDEFINED, (int)w->state.width,
                                  (int)w->state.height, SDL_WINDOW_VULKAN | SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI);
        result = w->sdl ? 0 : -ENODEV;
    }
    if (result) {
        snprintf(error, error_bytes, "no display: %s", SDL_GetError());
    } else {
        result = gpu_new(&w->gpu, &(gpu_desc){.window = w->sdl, .validation = getenv("RRTRACE_VALIDATION") != NULL, .vsync = true});
        if (result)
            snprintf(error, error_bytes, "%s", w->gpu ? gpu_error(w->gpu) : strerror(-result));
    }
    if (!result) {
        result = view_new(&w->view, &(view_desc){.scale = display_scale(w->sdl), .is_software = gpu_is_software(w->gpu),
                                                .camera = w->state.camera});
        if (result)
            snprintf(error, error_bytes, "%s", strerror(-result));
    }
    if (result) {
        window_close(w);
        *out = NULL;
    }
    return result;
}

static void remember(const window *w)
{
    int width, height;
    window_state now = {w->state.width, w->state.height, view_camera_of(w->view)};
    if (w->is_size_free && !(SDL_GetWindowFlags(w->sdl) & (SDL_WINDOW_MAXIMIZED | SDL_WINDOW_FULLSCREEN))) {
        SDL_GetWindowSize(w->sdl, &width, &height);
        now.width = (uint32_t)width;
        now.height = (uint32_t)height;
    }
    window_state_save(&now);
}

void window_close(window *w)
{
    if (!w)
        return;
    if (w->view)
        remember(w);
    view_delete(w->view);
    gpu_delete(w->gpu);
    if (w->sdl)
        SDL_DestroyWindow(w->sdl);
    SDL_Quit();
    mem_free(w);
}
