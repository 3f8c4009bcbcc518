/* view/view.h - the picture: the session's model in, one gpu_frame out; user input in, camera and state out.
 * For:     app/ (the window's loop, pictures without a window).
 * Idea:    x = time, y = stack depth, z = a lane per thread. Every frame asks history/ for what the camera sees, at about a
 *          pixel's resolution, so a frame costs the same however long the trace is.
 *
 *            y depth                                 1 scene    from above and the side, newest at the right front
 *            |   z lanes (main thread at the back)    2 flame    time × depth, straight from the front; lanes stacked
 *            |  /                                    3 threads  time × thread, straight from above; GVL states
 *            | /______ x time, now at the right
 * Use:     view_new; view_atlas → gpu_set_atlas; per frame: view_input for what came, lock the model, view_build, unlock,
 *          view_atlas again (true: it has new glyphs), gpu_draw, view_frame_cost.
 * Memory:  owns the arrays that view_build hands out, until its next call or view_delete; they grow to the box budget once
 *          and are then reused. Nothing of the model is kept between frames but ids and what was eased.
 * Threads: one, the window's; the model lock must be held around view_build, which takes a few milliseconds at most.
 * Units:   ns are CLOCK_MONOTONIC; px are the target's pixels, origin top left.
 */
#ifndef RRTRACE_VIEW_VIEW_H
#define RRTRACE_VIEW_VIEW_H

#include "gpu/gpu.h"
#include "history/activity.h"
#include "history/figures.h"
#include "history/history.h"
#include "history/notes.h"
#include "sim/catalog.h"
#include "sim/sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct view view;

typedef enum view_camera { VIEW_CAMERA_SCENE = 0, VIEW_CAMERA_FLAME, VIEW_CAMERA_THREADS } view_camera;

typedef struct view_desc {
    float scale;         /* of text and lines: 1 on a common screen, 2 on a dense one; 0 means 1 */
    bool is_software;    /* a CPU driver draws: start with fewer boxes, be content with fewer frames */
    bool is_still;       /* pictures: every view_build shows the settled state, nothing eases, no hint line */
    view_camera camera;  /* to start with */
    uint64_t begin_ns, end_ns; /* time to show at first; 0, 0: live, or all of a program that has ended */
} view_desc;

/* Borrowed during view_build only. */
typedef struct view_model {
    const catalog *catalog;
    const history *history;
    const history *detail; /* answers instead while all in sight lies in [detail_begin_ns, detail_end_ns); NULL: none */
    uint64_t detail_begin_ns, detail_end_ns;
    const activity *activity; /* for the time strip; NULL: it has none to show */
    const sim *sim;  /* NULL: no open frames */
    const notes *notes;     /* NULL: the program has marked nothing */
    const figures *figures; /* NULL: of a method only what is in sight is known */
    uint64_t begin_ns;      /* of a recording: times are counted from here; 0: from the first process's begin */
    bool is_file;           /* of a recording: history, figures and notes have this much of it by now */
    double read_share;
    uint64_t now_ns; /* the picture's right end: CLOCK_MONOTONIC while a program runs, its last event's time afterwards */
} view_model;

/* What is open at a depth of a track; false: nothing. */
static inline bool view_open_frame(const view_model *m, uint32_t track, uint32_t depth, sim_span *out)
{
    return m->sim && sim_open_frames(m->sim, track, depth, out, 1) == 1;
}

/* For the corner line. */
typedef struct view_status {
    double events_per_s, frames_per_s;
    uint64_t backlog_events, event_count, dropped, span_count;
    uint64_t evicted_count; /* spans whose detail memory has let go */
    uint64_t writer_waits;  /* times a program found its ring full */
    uint64_t memory_bytes, memory_budget;
    const char *device; /* NULL: not shown */
    const char *note;   /* one line about what the user should know, NULL: nothing */
    const char *recording; /* name of the file that is being recorded into, NULL: none is */
    uint64_t recorded_bytes;
    bool ended;         /* every program has ended */
    bool is_file;       /* … as this is a recording of them */
    double read_share;  /* of that recording; 1: all of it has been read */
} view_status;

typedef enum view_key { /* letters by their place on a US keyboard (scancodes) */
    VIEW_KEY_NONE = 0,
    VIEW_KEY_W, VIEW_KEY_A, VIEW_KEY_S, VIEW_KEY_D,
    VIEW_KEY_LEFT, VIEW_KEY_RIGHT, VIEW_KEY_UP, VIEW_KEY_DOWN,
    VIEW_KEY_SPACE, VIEW_KEY_L, VIEW_KEY_END, VIEW_KEY_HOME, VIEW_KEY_0,
    VIEW_KEY_1, VIEW_KEY_2, VIEW_KEY_3,
    VIEW_KEY_F, VIEW_KEY_HELP, /* ? or F1 */
    VIEW_KEY_ESC, VIEW_KEY_Q,  /* Ctrl+Q asks to quit; Esc never does */
    VIEW_KEY_ENTER, VIEW_KEY_TAB, VIEW_KEY_BACKSPACE, VIEW_KEY_DELETE, /* sent again while held */
    VIEW_KEY_COUNT
} view_key;

enum { VIEW_MOD_SHIFT = 1, VIEW_MOD_CTRL = 2, VIEW_MOD_ALT = 4 };

typedef enum view_button { VIEW_BUTTON_LEFT = 0, VIEW_BUTTON_MIDDLE, VIEW_BUTTON_RIGHT, VIEW_BUTTON_COUNT } view_button;

#define VIEW_TEXT_BYTES 32u

typedef enum view_input_type {
    VIEW_INPUT_KEY,    /* key, is_down */
    VIEW_INPUT_TEXT,   /* text: what was typed, as the user's keyboard has it; letters and signs that do something come so */
    VIEW_INPUT_BUTTON, /* button, is_down, x_px, y_px */
    VIEW_INPUT_MOVE,   /* x_px, y_px */
    VIEW_INPUT_WHEEL,  /* wheel_y: notches, away from the user is positive; wheel_x: sideways; x_px, y_px */
    VIEW_INPUT_RESIZE, /* width_px, height_px */
    VIEW_INPUT_LEAVE,  /* the window lost the keyboard or the pointer: whatever is held counts as released */
} view_input_type;

typedef struct view_input_event {
    view_input_type type;
    uint32_t modifiers; /* VIEW_MOD_… */
    view_key key;
    view_button button;
    bool is_down;
    float x_px, y_px;
    float wheel_x, wheel_y;
    uint32_t width_px, height_px;
    char text[VIEW_TEXT_BYTES]; /* UTF-8, ended by NUL */
} view_input_event;

typedef enum view_box_kind {
    VIEW_BOX_CALL,
    VIEW_BOX_OPEN, /* a call that has not ended */
    VIEW_BOX_IDLE, /* an open call's time in which its fiber did not run; belongs to the OPEN one */
    VIEW_BOX_END,  /* the bright end of an open call; likewise */
    VIEW_BOX_GVL,
    /* Without an id: */
    VIEW_BOX_GC,   /* a pause; or several, folded. They are of a process, not of a thread */
    VIEW_BOX_SPAN, /* of the program's own: value is its string */
    VIEW_BOX_MARK, /* likewise; of process CATALOG_NONE: the user's, value is which */
} view_box_kind;

/* What a box in the last frame shows; its id in gpu_box and gpu_read_id is its index here plus 1. */
typedef struct view_box_ref {
    uint64_t begin_ns, end_ns;
    uint64_t busy_ns, longest_ns; /* as history_node */
    uint32_t track, depth;
    uint32_t levels;     /* of the stack, from depth on, that its row stands for; of those it shows the lowest */
    uint32_t value;      /* as history_node: a method's number, or a sim_gvl */
    uint32_t span_count; /* more than 1: folded */
    uint32_t process, thread; /* ids */
    uint32_t flags;      /* HISTORY_… */
    view_box_kind kind;
    bool is_open;        /* it has not ended */
    float share;         /* of its row's height, depth or both that the box takes; a call's or state's only */
} view_box_ref;

static inline bool view_box_is_call(const view_box_ref *r) { return r->kind == VIEW_BOX_CALL || r->kind == VIEW_BOX_OPEN; }

/* What the window is to do for the view. */
typedef enum view_ask { VIEW_ASK_NONE = 0, VIEW_ASK_COPY, VIEW_ASK_SOURCE, VIEW_ASK_PICTURE, VIEW_ASK_RECORD } view_ask;

typedef struct view_request {
    view_ask ask;
    char text[8192]; /* to copy, or the source's path */
    uint32_t line;   /* of the source, 0: unknown */
} view_request;

int view_new(view **out, const view_desc *desc); /* 0 or -ENOMEM. No font on this machine is no error: see view_font_problem */
void view_delete(view *v);                       /* NULL is fine */
const char *view_font_problem(const view *v);    /* NULL, or one line: why there is no text */

/* The glyph atlas as gpu_set_atlas wants it. True: it has changed since the last call (or this is the first). */
bool view_atlas(view *v, const uint8_t **pixels, uint32_t *width, uint32_t *height);

/* True: the picture changes by it. */
bool view_input(view *v, const view_input_event *input);

/* Fill *out. width_px, height_px: the target's size, at least 1. frame_time_s: since the last call, for movement. When
 * memory is out the frame has fewer things in it. */
void view_build(view *v, const view_model *model, const view_status *status, uint32_t width_px, uint32_t height_px,
                double frame_time_s, gpu_frame *out);

/* What the user has asked for since the last call; false: nothing. */
bool view_take_request(view *v, view_request *out);
/* One line for the user, shown for some seconds. */
void view_say(view *v, const char *line);

/* What a frame cost: the device's time (or, if that is not known, how long drawing took), and the CPU time of view_build. The
 * number of boxes of the next ones follows from both. */
void view_frame_cost(view *v, double frame_ms, double cpu_ms);

/* Does the next frame differ even without input or new data (something eases, a key is held)? */
bool view_is_moving(const view *v);
bool view_is_paused(const view *v); /* the film stands still: Space, or moved away from now */
bool view_wants_quit(const view *v);

view_camera view_camera_of(const view *v); /* the one that the user has chosen */

/* The time range that the last frame showed. */
void view_range(const view *v, uint64_t *begin_ns, uint64_t *end_ns);
/* What box id is, false when the last frame had none such. */
bool view_box_of(const view *v, uint32_t id, view_box_ref *out);
/* What was under the pointer in the last frame; false: nothing that could be told about. */
bool view_hover(const view *v, view_box_ref *out);

#endif
