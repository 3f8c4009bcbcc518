/* view/inspect.h - the window answers: what is under the pointer, what is selected, what is slow, what is looked for.
 * For:     view.c: it sees input before navigate.h does, and draws over the picture.
 * Idea:    input only notes what is wanted; it is done when the next frame is built, since only then there is a model to ask.
 *          Whatever can be clicked is a place: a rectangle of the last frame with what happens there. Tab goes through the
 *          same places, so that the keyboard suffices.
 * Use:     inspect_input for each event; per frame inspect_begin, then the scene is built with in->focus and what inspect_measured
 *          says, then inspect_end, which draws; inspect_take_request for the window.
 * Memory:  fixed, but for focus.h's.
 * Threads: one; inspect_begin and inspect_end under the model lock.
 */
#ifndef RRTRACE_VIEW_INSPECT_H
#define RRTRACE_VIEW_INSPECT_H

#include "view/calls.h"
#include "view/details.h"
#include "view/find.h"
#include "view/focus.h"
#include "view/hot.h"
#include "view/navigate.h"
#include "view/paint.h"

#define INSPECT_PLACES 128u
#define INSPECT_MARKS 64u
#define INSPECT_FLAGS 256u
#define INSPECT_LINE_S 6.0 /* so long a line is said */

typedef enum inspect_action {
    INSPECT_BLOCK = 0, /* a panel's ground: nothing happens, nothing below is clicked */
    INSPECT_SELECT,    /* the method */
    INSPECT_SHOW,      /* the call: select it and move there */
    INSPECT_SOURCE,    /* open the editor */
} inspect_action;

typedef struct inspect_place {
    float x0, y0, x1, y1;
    inspect_action action;
    focus_method method;
    calls_call call;
} inspect_place;

typedef struct inspect_flag { /* of a mark, as drawn: a head, and a line below */
    float x0, y0, x1, y1, bottom;
    view_box_ref ref;
} inspect_flag;

typedef struct inspect_measure { /* a stretch of time; relative to the session's begin */
    double from_ns, to_ns;       /* to: where the pointer is, or was left */
    bool is_set, is_dragged;
} inspect_measure;

typedef enum inspect_step { /* to another call */
    INSPECT_STEP_NONE = 0, INSPECT_STEP_NEXT, INSPECT_STEP_PREVIOUS, INSPECT_STEP_NEXT_FOUND, INSPECT_STEP_PREVIOUS_FOUND,
} inspect_step;

typedef struct inspect {
    focus focus;
    find find;
    hot hot;
    details details;
    calls_call call;      /* the one that focus.call names */
    bool has_hot;         /* the list is shown */
    tint tint;
    /* The pointer. */
    float x_px, y_px, press_x_px, press_y_px;
    bool is_inside, is_pressed, has_tip;
    bool has_place;       /* it has been somewhere: the window system tells where it is without it having moved */
    bool is_resting;      /* keys were used since it moved: the tip would only be in the way */
    details_tip tip;
    /* Wanted in the next frame. */
    bool is_clicked, wants_frame, wants_mark;
    inspect_step step;
    int pressed_place;    /* + 1; 0: none */
    /* Places of the last frame; tabbed: + 1, 0: none. */
    inspect_place places[INSPECT_PLACES];
    uint32_t place_count, tabbed;
    bool is_framed;       /* F has just framed the selection: again fits all */
    /* Matches. */
    tally_sum found;      /* what is shown of them */
    tally tally;
    uint32_t counted_generation;
    double count_age_s;
    view_request request;
    char line[256];       /* said to the user */
    double line_age_s;
    uint64_t marks[INSPECT_MARKS]; /* the user's, set with M; the oldest goes first */
    uint32_t mark_count;
    inspect_flag flags[INSPECT_FLAGS];
    uint32_t flag_count;
    inspect_measure measure;
    float scale;
    float top_px, bottom_px; /* what is taken of the window's right edge, and of its bottom, by other things: view.c sets it */
    bool is_moving;
} inspect;

void inspect_init(inspect *i, float scale);
void inspect_free(inspect *i);
/* True: taken; navigate.h must not see it. *changes: the picture is another. */
bool inspect_input(inspect *i, const view_input_event *e, const nav *n, bool *changes);
void inspect_begin(inspect *i, const view_model *model);
/* The stretch of time that is measured, for scene_input; equal: none. */
void inspect_measured(const inspect *i, uint64_t base_ns, uint64_t out_ns[2]);
/* After the scene is built: does what is wanted, and draws. */
void inspect_end(inspect *i, nav *n, const scene *s, const scene_input *in, const paint *p, double time_s);
bool inspect_take_request(inspect *i, view_request *out);
void inspect_say(inspect *i, const char *line);
/* A part of inspect_end: how much is found; and what is said of it: "1 method, at least 20 calls in sight". */
void inspect_count(inspect *i, const scene *s, const scene_input *in, double time_s);
void inspect_found(const inspect *i, char *out, size_t bytes);

#endif
