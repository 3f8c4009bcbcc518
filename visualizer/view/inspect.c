#include "view/inspect.h"

#include "view/inspect_draw.h"
#include "view/label.h"
#include "view/pick.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLICK_PX 4.0f /* a press that moved less is no drag */
#define COUNT_EVERY_S 0.25
#define LINE_PX 3.0f  /* so near to a mark's line the pointer is at it */
#define AXIS_PX 12.0f /* so near to the time axis a drag measures */

void inspect_init(inspect *i, float scale)
{
    *i = (inspect){.scale = scale, .line_age_s = INFINITY};
    find_init(&i->find);
    i->focus = (focus){.hovered = FOCUS_NOTHING, .selected = FOCUS_NOTHING, .seen_hovered = FOCUS_NOTHING, .seen_selected = FOCUS_NOTHING};
    i->details.method = FOCUS_NOTHING;
}

void inspect_free(inspect *i)
{
    find_free(&i->find);
    focus_free(&i->focus);
    tally_free(&i->tally);
    hot_free(&i->hot);
}

void inspect_say(inspect *i, const char *line)
{
    snprintf(i->line, sizeof i->line, "%s", line);
    i->line_age_s = 0;
}

static bool has_method(const inspect *i) { return i->focus.selected.process != CATALOG_NONE; }
static bool has_selection(const inspect *i) { return has_method(i) || i->focus.span.is_set; }

static void select_method(inspect *i, focus_method m)
{
    i->focus.selected = m;
    i->focus.call.is_set = i->focus.span.is_set = false;
    i->is_framed = false;
}

static void select_span(inspect *i, const view_box_ref *r)
{
    select_method(i, FOCUS_NOTHING);
    i->focus.span = (focus_span){.begin_ns = r->begin_ns, .end_ns = r->end_ns, .process = r->process, .thread = r->thread, .string = r->value,
                                 .id = r->track, .is_set = true};
}

static void select_call(inspect *i, const calls_call *call)
{
    select_method(i, (focus_method){call->process, call->method});
    i->focus.call = (focus_call){.begin_ns = call->begin_ns, .end_ns = call->end_ns, .track = call->track, .depth = call->depth, .thread = call->thread,
                                 .process = call->process, .is_set = true, .is_open = call->is_open};
    i->call = *call;
}

/* Is there something that F frames? */
static bool has_stretch(const inspect *i) { return i->measure.is_set || i->focus.span.is_set || i->focus.call.is_set; }

/* ---- input: only noted ---------------------------------------------------------------------------------------- */

static const inspect_place *place_at(const inspect *i, float x, float y)
{
    for (uint32_t n = i->place_count; n-- > 0;) { /* what is drawn last lies on top */
        const inspect_place *p = &i->places[n];
        if (x >= p->x0 && x < p->x1 && y >= p->y0 && y < p->y1)
            return p;
    }
    return NULL;
}

static bool is_dragged(const inspect *i)
{
    return hypotf(i->x_px - i->press_x_px, i->y_px - i->press_y_px) > CLICK_PX * i->scale;
}

static bool time_at(const nav *n, float x_px, float y_px, double *ns)
{
    double x;
    if (!camera_film_x(&n->camera, x_px, y_px, n->scene.z_end, &x))
        return false;
    *ns = fmin(fmax(camera_time(&n->pose, x), 0), n->now_ns);
    return true;
}

static bool is_on_axis(const inspect *i, const nav *n, float x_px, float y_px)
{
    double x;
    float px[2], height_px = n->camera.height_px - n->scene.strip_px;
    return camera_film_x(&n->camera, x_px, y_px, n->scene.z_end, &x) &&
           scene_axis_point(&n->camera, (float)x, n->scene.z_end, fmaxf(n->flame, n->threads), height_px, i->scale, px) &&
           fabsf(y_px - px[1]) < AXIS_PX * i->scale;
}

/* A stretch of time is measured by dragging along the time axis or, with Shift, anywhere. True: the pointer is at it. */
static bool take_measure(inspect *i, const view_input_event *e, const nav *n, bool is_free)
{
    inspect_measure *m = &i->measure;
    if (e->is_down) {
        bool begins = is_free && !n->has_help && !(e->modifiers & VIEW_MOD_CTRL) &&
                      (e->modifiers & VIEW_MOD_SHIFT || is_on_axis(i, n, e->x_px, e->y_px)) && time_at(n, e->x_px, e->y_px, &m->from_ns);
        if (begins) {
            m->to_ns = m->from_ns;
            m->is_dragged = m->is_set = true;
            i->is_framed = false;
        }
        return begins;
    }
    if (!m->is_dragged)
        return false;
    m->is_dragged = false;
    m->is_set = is_dragged(i); /* a click takes it away */
    return true;
}

static bool take_button(inspect *i, const view_input_event *e, const nav *n, bool *changes)
{
    i->x_px = e->x_px;
    i->y_px = e->y_px;
    const inspect_place *place = place_at(i, e->x_px, e->y_px);
    if (e->button != VIEW_BUTTON_LEFT || e->modifiers & VIEW_MOD_ALT)
        return place != NULL && e->is_down;
    if (e->is_down) {
        i->press_x_px = e->x_px;
        i->press_y_px = e->y_px;
    }
    if (take_measure(i, e, n, !place)) {
        *changes = true;
        return true;
    }
    if (e->is_down) {
        i->is_pressed = true;
        i->pressed_place = place ? (int)(place - i->places) + 1 : 0;
        return place != NULL;
    }
    if (i->is_pressed && !is_dragged(i)) {
        i->is_clicked = true;
        *changes = true;
    }
    i->is_pressed = false;
    return false; /* navigate.h's drag ends too */
}

/* Esc takes back one thing at a time. */
static bool take_escape(inspect *i, bool *changes)
{
    *changes = true;
    if (find_is_shown(&i->find))
        find_clear(&i->find);
    else if (i->tabbed)
        i->tabbed = 0;
    else if (i->measure.is_set)
        i->measure = (inspect_measure){0};
    else if (has_selection(i))
        select_method(i, FOCUS_NOTHING);
    else if (i->has_hot)
        i->has_hot = false;
    else
        *changes = false;
    return *changes;
}

static bool take_enter(inspect *i, uint32_t modifiers)
{
    bool has_shift = modifiers & VIEW_MOD_SHIFT;
    if (i->find.is_open || (i->find.is_active && !has_selection(i) && !i->tabbed))
        i->step = has_shift ? INSPECT_STEP_PREVIOUS_FOUND : INSPECT_STEP_NEXT_FOUND;
    else if (i->tabbed)
        i->pressed_place = (int)i->tabbed, i->is_clicked = true;
    else if (has_selection(i))
        i->request.ask = VIEW_ASK_SOURCE;
    else
        return false;
    return true;
}

/* Places that do something, in the order in which they were drawn. */
static bool take_tab(inspect *i, bool is_back)
{
    if (i->find.is_open) {
        find_close(&i->find);
        return true;
    }
    for (uint32_t tries = 0; tries <= i->place_count; tries++) {
        uint32_t count = i->place_count + 1; /* 0 is: none */
        i->tabbed = (i->tabbed + (is_back ? count - 1 : 1)) % count;
        if (i->tabbed == 0 || i->places[i->tabbed - 1].action != INSPECT_BLOCK)
            break;
    }
    return true;
}

static bool take_key(inspect *i, const view_input_event *e, const nav *n, bool *changes)
{
    if (!e->is_down)
        return false; /* whatever was held may have been pressed before the line opened */
    *changes = true;
    if (i->find.is_open && find_key(&i->find, e->key, e->modifiers))
        return true;
    switch (e->key) {
    case VIEW_KEY_ESC: return !n->has_help && take_escape(i, changes);
    case VIEW_KEY_ENTER: return take_enter(i, e->modifiers);
    case VIEW_KEY_TAB: return take_tab(i, e->modifiers & VIEW_MOD_SHIFT);
    case VIEW_KEY_F:
        if (e->modifiers & VIEW_MOD_CTRL) {
            find_open(&i->find);
            return true;
        }
        if (i->find.is_open || !has_stretch(i) || i->is_framed)
            return i->find.is_open;
        i->wants_frame = true;
        return true;
    case VIEW_KEY_Q: return (e->modifiers & VIEW_MOD_CTRL) == 0 && i->find.is_open;
    default: return i->find.is_open; /* letters come as text */
    }
}

static bool take_sign(inspect *i, const char *text, bool *changes)
{
    *changes = true;
    switch (text[0]) {
    case '/': find_open(&i->find); return true;
    case 'n': i->step = INSPECT_STEP_NEXT_FOUND; return true;
    case 'N': i->step = INSPECT_STEP_PREVIOUS_FOUND; return true;
    case '.': i->step = INSPECT_STEP_NEXT; return true;
    case ',': i->step = INSPECT_STEP_PREVIOUS; return true;
    case 't': case 'T': i->has_hot = !i->has_hot; return true;
    case 'c': case 'C': i->request.ask = VIEW_ASK_COPY; return true;
    case 'p': case 'P': i->request.ask = VIEW_ASK_PICTURE; return true;
    case 'r': case 'R': i->request.ask = VIEW_ASK_RECORD; return true;
    case 'v': i->tint = (i->tint + 1) % TINT_COUNT; return true;
    case 'V': i->tint = (i->tint + TINT_COUNT - 1) % TINT_COUNT; return true;
    case 'm': case 'M': i->wants_mark = true; return true;
    default: *changes = false; return false;
    }
}

bool inspect_input(inspect *i, const view_input_event *e, const nav *n, bool *changes)
{
    *changes = false;
    switch (e->type) {
    case VIEW_INPUT_MOVE:
        if (i->has_place && (e->x_px != i->x_px || e->y_px != i->y_px)) {
            i->is_resting = false;
            i->is_inside = true;
        }
        i->has_place = true;
        i->x_px = e->x_px;
        i->y_px = e->y_px;
        *changes = true;
        if (i->measure.is_dragged)
            time_at(n, e->x_px, e->y_px, &i->measure.to_ns);
        return i->measure.is_dragged || (i->is_pressed && i->pressed_place > 0);
    case VIEW_INPUT_LEAVE:
        i->is_inside = i->is_pressed = i->measure.is_dragged = false;
        *changes = true;
        return false;
    case VIEW_INPUT_BUTTON: return take_button(i, e, n, changes);
    case VIEW_INPUT_KEY:
        i->is_resting |= e->is_down;
        return take_key(i, e, n, changes);
    case VIEW_INPUT_TEXT:
        i->is_resting = true;
        if (i->find.is_open) {
            find_insert(&i->find, e->text);
            *changes = true;
            return true;
        }
        return take_sign(i, e->text, changes);
    default: return false;
    }
}

/* ---- per frame ------------------------------------------------------------------------------------------------ */

void inspect_begin(inspect *i, const view_model *model)
{
    i->focus.find = &i->find;
    focus_update(&i->focus, model->catalog);
}

void inspect_measured(const inspect *i, uint64_t base_ns, uint64_t out_ns[2])
{
    const inspect_measure *m = &i->measure;
    out_ns[0] = base_ns + (m->is_set ? (uint64_t)fmin(m->from_ns, m->to_ns) : 0);
    out_ns[1] = base_ns + (m->is_set ? (uint64_t)fmax(m->from_ns, m->to_ns) : 0);
}

static calls_call call_of(const view_box_ref *r)
{
    return (calls_call){.begin_ns = r->begin_ns, .end_ns = r->end_ns, .track = r->track, .depth = r->depth, .method = r->value,
                        .thread = r->thread, .process = r->process, .is_open = r->kind != VIEW_BOX_CALL};
}

/* A mark's flag: its head, or the line that hangs from it. */
static bool flag_at(const inspect *i, bool is_line, view_box_ref *out)
{
    float near = LINE_PX * i->scale;
    for (uint32_t n = i->flag_count; n-- > 0;) {
        const inspect_flag *f = &i->flags[n];
        if (is_line ? i->x_px < f->x0 - near || i->x_px > f->x0 + near || i->y_px < f->y0 || i->y_px > f->bottom
                    : i->x_px < f->x0 || i->x_px > f->x1 || i->y_px < f->y0 || i->y_px > f->y1)
            continue;
        *out = f->ref;
        return true;
    }
    return false;
}

/* The lines of text at the edges of a chart, and the time strip, hide what is behind them. */
static bool is_in_picture(const inspect *i, const nav *n)
{
    float bottom_px = n->camera.height_px - n->scene.strip_px;
    if (n->mode != VIEW_CAMERA_SCENE)
        return i->y_px >= 40 * i->scale && i->y_px < bottom_px - 34 * i->scale;
    return i->y_px < bottom_px;
}

/* A line of a mark is thin: what lies below it goes first, but for a pause, which may be wide. */
static bool find_pointed(const inspect *i, const nav *n, const scene *s, const scene_input *in, view_box_ref *out)
{
    if (!is_in_picture(i, n))
        return false;
    if (flag_at(i, false, out))
        return true;
    bool has_box = pick_at(s, in->camera, i->x_px, i->y_px, out);
    return (has_box && out->kind != VIEW_BOX_GC) || flag_at(i, true, out) || has_box;
}

static void point(inspect *i, const nav *n, const scene *s, const scene_input *in)
{
    view_box_ref ref;
    bool is_pointing = i->is_inside && !i->is_resting;
    const inspect_place *place = is_pointing ? place_at(i, i->x_px, i->y_px) : NULL;
    bool is_free = is_pointing && !place && n->drag == NAV_DRAG_NONE && !i->measure.is_dragged && !n->has_help;
    i->has_tip = is_free && find_pointed(i, n, s, in, &ref);
    i->focus.hovered = FOCUS_NOTHING;
    if (!place && i->tabbed)
        place = &i->places[i->tabbed - 1];
    if (place && place->action == INSPECT_SELECT)
        i->focus.hovered = place->method; /* what a list names lights up, too */
    if (!i->has_tip)
        return;
    details_tip_of(&i->tip, in, &ref);
    if (view_box_is_call(&i->tip.ref)) /* of a box's parts it tells the whole */
        i->focus.hovered = (focus_method){ref.process, ref.value};
}

/* Move in time, so that a call or a span is in sight; the window stays as wide as it is, if it fits. */
static void reveal(nav *n, const scene_input *in, uint64_t begin_ns, uint64_t end_ns, bool is_framed)
{
    double begin = (double)(int64_t)(begin_ns - in->base_ns), end = (double)(int64_t)(end_ns - in->base_ns);
    double window = n->goal.window_ns, length = end - begin, middle = 0.5 * (begin + end);
    bool is_in_sight = begin_ns >= in->begin_ns && begin > n->goal.center_ns - 0.45 * window && end < n->goal.center_ns + 0.45 * window;
    if (is_framed)
        window = length * 1.5 + 1000;
    else if (is_in_sight && length > 0.002 * window)
        return;
    else if (length > 0.9 * window)
        window = length * 1.5;
    else if (length < 0.01 * window)
        window = length * 30 + 1000; /* else there would be nothing to see */
    nav_show(n, middle - 0.5 * window, middle + 0.5 * window, false);
}

/* Not of a method. */
static bool is_of_window(view_ask ask) { return ask == VIEW_ASK_PICTURE || ask == VIEW_ASK_RECORD; }

static void refuse(inspect *i, const char *what, const char *why)
{
    i->request.ask = VIEW_ASK_NONE;
    snprintf(i->line, sizeof i->line, "%.200s %s", what, why);
    i->line_age_s = 0;
}

static void copy(inspect *i, const char *what, const char *where)
{
    i->request.ask = VIEW_ASK_COPY;
    snprintf(i->request.text, sizeof i->request.text, "%.4000s%s%.4000s", what, where[0] ? " " : "", where);
    snprintf(i->line, sizeof i->line, "copied: %.240s", i->request.text);
    i->line_age_s = 0;
}

/* The name of the span that is selected, or pointed at while nothing is; NULL: none is. */
static const char *span_name(const inspect *i, const scene_input *in)
{
    const focus_span *s = &i->focus.span;
    if (s->is_set)
        return catalog_string_of(in->model->catalog, s->process, s->string);
    if (!has_selection(i) && i->has_tip && i->tip.ref.kind == VIEW_BOX_SPAN)
        return catalog_string_of(in->model->catalog, i->tip.ref.process, i->tip.ref.value);
    return NULL;
}

/* What is to be copied, or which file to be opened. */
static void answer_request(inspect *i, const scene_input *in)
{
    focus_method m = has_selection(i) ? i->focus.selected : i->focus.hovered;
    view_ask ask = i->request.ask;
    const char *span = span_name(i, in);
    i->request = (view_request){.ask = ask};
    if (ask == VIEW_ASK_NONE || is_of_window(ask))
        return;
    if (span && ask == VIEW_ASK_COPY) {
        copy(i, span, "");
    } else if (span) {
        refuse(i, span, "is a span of the program's own: it has no source file");
    } else if (m.process == CATALOG_NONE) {
        refuse(i, "point at a call", "or click it first");
    } else {
        const catalog_method *method = catalog_method_of(in->model->catalog, m.process, m.number);
        char place[4096];
        details_place(method, place, sizeof place);
        if (ask == VIEW_ASK_COPY) {
            copy(i, method->name, place);
        } else if (method->path_bytes == 0 || method->path[0] == '<' || method->path[0] == '(') {
            refuse(i, method->name, "has no source file");
        } else {
            snprintf(i->request.text, sizeof i->request.text, "%s", method->path);
            i->request.line = method->line;
        }
    }
}

static void act(inspect *i, nav *n, const scene_input *in, const inspect_place *place)
{
    switch (place->action) {
    case INSPECT_BLOCK: break;
    case INSPECT_SELECT: select_method(i, place->method); break;
    case INSPECT_SHOW:
        select_call(i, &place->call);
        reveal(n, in, place->call.begin_ns, place->call.end_ns, false);
        break;
    case INSPECT_SOURCE: i->request.ask = VIEW_ASK_SOURCE; break;
    }
}

static void click(inspect *i, nav *n, const scene_input *in)
{
    i->is_clicked = false;
    if (i->pressed_place > 0 && (uint32_t)i->pressed_place <= i->place_count) {
        act(i, n, in, &i->places[i->pressed_place - 1]);
    } else if (i->has_tip && i->tip.ref.kind == VIEW_BOX_SPAN && i->tip.ref.span_count > 1) {
        inspect_say(i, "several spans: zoom in to select one");
    } else if (i->has_tip && i->tip.ref.kind == VIEW_BOX_SPAN) {
        select_span(i, &i->tip.ref);
    } else if (i->has_tip && view_box_is_call(&i->tip.ref)) {
        calls_call call = call_of(&i->tip.ref);
        if (i->tip.ref.span_count == 1)
            select_call(i, &call);
        else
            select_method(i, i->focus.hovered);
    } else if (!i->has_tip) {
        select_method(i, FOCUS_NOTHING);
    }
    i->pressed_place = 0;
}

static bool is_found(void *context, const calls_call *call)
{
    inspect *i = context;
    return focus_found(&i->focus, call->process, call->method, call->thread, call->end_ns - call->begin_ns);
}

static bool is_selected(void *context, const calls_call *call)
{
    return focus_verdict(&((inspect *)context)->focus, call->process, call->method) & FOCUS_SELECTED;
}

/* From one span of the program's own to the next of its name. */
static bool step_span(inspect *i, const scene_input *in, bool is_forward)
{
    const focus_span *now = &i->focus.span;
    const notes_span *best = NULL;
    size_t count = 0;
    const notes_span *spans = in->model->notes ? notes_spans(in->model->notes, &count) : NULL;
    for (size_t k = 0; k < count; k++) {
        const notes_span *s = &spans[k];
        if (s->process != now->process || s->string != now->string || s->id == now->id ||
            (is_forward ? s->begin_ns < now->begin_ns : s->begin_ns > now->begin_ns))
            continue;
        if (!best || (is_forward ? s->begin_ns < best->begin_ns : s->begin_ns >= best->begin_ns))
            best = s;
    }
    if (best) {
        uint64_t end_ns = best->end_ns < in->model->now_ns ? best->end_ns : in->model->now_ns;
        select_span(i, &(view_box_ref){.begin_ns = best->begin_ns, .end_ns = end_ns, .process = best->process, .thread = best->thread,
                                       .value = best->string, .track = best->id});
    }
    return best != NULL;
}

/* *wraps: there was none on that side, so it is the first, or the last, of all. */
static bool step_call(inspect *i, const scene *s, const scene_input *in, bool is_forward, bool is_found_step, bool *wraps)
{
    calls_query q = {.model = in->model, .history = in->history, .begin_ns = in->begin_ns, .end_ns = in->model->now_ns,
                     .match = is_found_step ? is_found : is_selected, .context = i};
    calls_call found;
    uint64_t from_ns = i->focus.call.is_set ? i->focus.call.begin_ns : is_forward ? s->begin_ns : s->end_ns;
    focus_update(&i->focus, in->model->catalog);
    bool is_there = is_forward ? calls_after(&q, from_ns, &found) : calls_before(&q, from_ns, &found);
    *wraps = !is_there; /* round to the other end */
    if (!is_there && !(is_forward ? calls_after(&q, in->begin_ns ? in->begin_ns - 1 : 0, &found) : calls_before(&q, in->model->now_ns + 1, &found)))
        return false;
    focus_method kept = i->focus.selected;
    select_call(i, &found);
    if (!is_found_step)
        i->focus.selected = kept;
    return true;
}

static void step(inspect *i, nav *n, const scene *s, const scene_input *in)
{
    bool is_found_step = i->step == INSPECT_STEP_NEXT_FOUND || i->step == INSPECT_STEP_PREVIOUS_FOUND;
    bool is_forward = i->step == INSPECT_STEP_NEXT_FOUND || i->step == INSPECT_STEP_NEXT;
    bool is_span_step = !is_found_step && i->focus.span.is_set, wraps = false;
    if (is_found_step && i->find.error[0])
        inspect_say(i, i->find.error);
    else if (is_found_step && !i->find.is_active)
        inspect_say(i, "nothing is looked for: / opens the line; Tab leaves it and keeps what it says, Esc clears it");
    else if (!is_found_step && !has_selection(i))
        inspect_say(i, "no method is selected: click a call");
    else if (!(is_span_step ? step_span(i, in, is_forward) : step_call(i, s, in, is_forward, is_found_step, &wraps)))
        inspect_say(i, is_span_step ? is_forward ? "no later span of that name" : "no earlier span of that name"
                       : is_forward ? "no later call nearby, nor near the begin" : "no earlier call nearby, nor near the end");
    else if (is_span_step)
        reveal(n, in, i->focus.span.begin_ns, i->focus.span.end_ns, false);
    else
        reveal(n, in, i->call.begin_ns, i->call.end_ns, false);
    if (wraps && i->focus.call.is_set)
        inspect_say(i, is_forward ? "no later call nearby: on from the begin" : "no earlier call nearby: on from the end");
    i->step = INSPECT_STEP_NONE;
}

/* ---- how much is found ------------------------------------------------------------------------------------------ */

static bool is_thread_found(void *context, uint32_t thread) { return focus_thread(&((inspect *)context)->focus, thread); }

/* Methods that match by name, with their calls of the whole session. */
static tally_sum sum_of_names(inspect *i, const view_model *model)
{
    tally_sum sum = {.is_exact = true};
    for (uint32_t p = 0; p < catalog_process_count(model->catalog); p++)
        for (uint32_t m = 1; m < catalog_method_limit(model->catalog, p); m++) {
            if (!(focus_verdict(&i->focus, p, m) & FOCUS_FOUND))
                continue;
            sum.methods++;
            sum.calls += model->figures ? figures_of(model->figures, p, m).calls : 0;
        }
    return sum;
}

static bool is_by_name(const find *f)
{
    return f->thread_count + f->process_count == 0 && f->least_ns == 0 && f->most_ns == UINT64_MAX;
}

/* By name alone, with all in sight, it is known; else it is counted. */
void inspect_count(inspect *i, const scene *s, const scene_input *in, double time_s)
{
    const find *f = &i->find;
    bool is_other = i->counted_generation != f->generation, is_named = is_by_name(f);
    tally_query q = {.model = in->model, .history = in->history, .begin_ns = s->begin_ns, .end_ns = s->end_ns, .least_ns = f->least_ns,
                     .match = is_found, .match_thread = is_thread_found, .context = i, .wants_methods = !is_named};
    bool is_known = is_named && in->model->figures && tally_is_all(&q, in->begin_ns);
    i->count_age_s += time_s;
    if (!f->is_active)
        return;
    bool is_due = is_other || i->count_age_s >= COUNT_EVERY_S || is_known == (i->tally.history != NULL);
    focus_update(&i->focus, in->model->catalog);
    tally_sum names = is_due && is_named ? sum_of_names(i, in->model) : i->found;
    if (is_due) {
        i->count_age_s = 0;
        i->counted_generation = f->generation;
    }
    if (is_known) {
        tally_stop(&i->tally);
        i->found = names;
        i->found.calls += is_due ? tally_open_calls(&q).begun : 0;
        return;
    }
    if (is_due)
        tally_begin(&i->tally, &q, is_other);
    tally_go_on(&i->tally, &q);
    i->found = i->tally.shown;
    if (is_named)
        i->found.methods = names.methods;
}

void inspect_found(const inspect *i, char *out, size_t bytes)
{
    const tally_sum *found = &i->found;
    const char *methods = found->methods == 1 ? "method" : "methods", *least = found->is_exact ? "" : "at least ";
    bool is_named = is_by_name(&i->find);
    char calls[16];
    label_count((double)found->calls, calls);
    if (!found->is_exact && found->calls == 0)
        snprintf(out, bytes, i->tally.is_running ? "counting calls \xE2\x80\xA6" : "no call in sight that is still known");
    else
        snprintf(out, bytes, "%s%u %s, %s%s %s in sight", is_named ? "" : least, found->methods, methods, is_named ? least : "", calls,
                 found->calls == 1 ? "call" : "calls");
}

/* Is a count out of date? A later frame has it right. */
static bool is_counting(const inspect *i, const scene *s)
{
    return (i->find.is_active && tally_is_behind(&i->tally, s->begin_ns, s->end_ns)) ||
           (has_method(i) && tally_is_behind(&i->details.tally, s->begin_ns, s->end_ns)) || (i->has_hot && hot_is_behind(&i->hot));
}

static void frame(inspect *i, nav *n, const scene_input *in)
{
    i->wants_frame = false;
    i->is_framed = true;
    if (i->measure.is_set)
        reveal(n, in, in->measure_ns[0], in->measure_ns[1], true);
    else if (i->focus.span.is_set)
        reveal(n, in, i->focus.span.begin_ns, i->focus.span.end_ns, true);
    else
        reveal(n, in, i->call.begin_ns, i->call.end_ns, true);
}

static void set_mark(inspect *i, const nav *n, const scene_input *in)
{
    double x = 0;
    i->wants_mark = false;
    if (!i->is_inside || !camera_film_x(in->camera, i->x_px, i->y_px, in->layout->z_end, &x))
        x = 0;
    double at = n->is_following && !i->is_inside ? n->now_ns : camera_time(in->pose, x);
    uint64_t at_ns = at > 0 ? in->base_ns + (uint64_t)at : in->base_ns;
    if (at_ns > in->model->now_ns)
        at_ns = in->model->now_ns;
    if (i->mark_count == INSPECT_MARKS)
        memmove(i->marks, i->marks + 1, --i->mark_count * sizeof *i->marks);
    i->marks[i->mark_count++] = at_ns;
}

/* What was meant for the picture while the list of keys lay over it. A picture is of the list, too. */
static void forget_wanted(inspect *i)
{
    i->is_clicked = i->wants_frame = i->wants_mark = false;
    i->pressed_place = 0;
    i->step = INSPECT_STEP_NONE;
    if (i->request.ask != VIEW_ASK_PICTURE)
        i->request = (view_request){0};
}

void inspect_end(inspect *i, nav *n, const scene *s, const scene_input *in, const paint *p, double time_s)
{
    focus_method hovered = i->focus.hovered;
    if (n->has_help) {
        forget_wanted(i);
        i->place_count = i->tabbed = 0; /* none is seen */
    }
    point(i, n, s, in);
    if (i->is_clicked)
        click(i, n, in);
    if (i->step != INSPECT_STEP_NONE)
        step(i, n, s, in);
    if (i->wants_frame)
        frame(i, n, in);
    if (i->wants_mark)
        set_mark(i, n, in);
    if (i->request.ask != VIEW_ASK_NONE && i->request.text[0] == '\0')
        answer_request(i, in);
    inspect_count(i, s, in, time_s);
    if (has_method(i))
        details_update(&i->details, i->focus.selected, s, in, time_s);
    if (i->has_hot)
        hot_update(&i->hot, s, in, time_s);
    if (n->has_help)
        inspect_draw_line(i, p);
    else
        inspect_draw(i, in, p);
    i->line_age_s += time_s;
    /* What lights up does so in the next frame: there must be one. */
    i->is_moving = !focus_is_one(hovered, i->focus.hovered) || i->line_age_s < INSPECT_LINE_S + 0.5 ||
                   is_counting(i, s);
}

bool inspect_take_request(inspect *i, view_request *out)
{
    if (i->request.ask == VIEW_ASK_NONE || (!is_of_window(i->request.ask) && i->request.text[0] == '\0'))
        return false;
    *out = i->request;
    i->request = (view_request){0};
    return true;
}
