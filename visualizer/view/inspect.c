#include "view/inspect.h"

#include "base/mem.h"
#include "view/inspect_draw.h"
#include "view/pick.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CLICK_PX 4.0f /* a press that moved less is no drag */
#define COUNT_EVERY_S 0.25
#define LINE_S 6.0

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
}

void inspect_say(inspect *i, const char *line)
{
    snprintf(i->line, sizeof i->line, "%s", line);
    i->line_age_s = 0;
}

static bool has_selection(const inspect *i) { return i->focus.selected.process != CATALOG_NONE; }

static void select_method(inspect *i, focus_method m)
{
    i->focus.selected = m;
    i->focus.call.is_set = false;
    i->is_framed = false;
}

static void select_call(inspect *i, const calls_call *call)
{
    select_method(i, (focus_method){call->process, call->method});
    i->focus.call = (focus_call){.begin_ns = call->begin_ns, .track = call->track, .depth = call->depth, .is_set = true};
    i->call = *call;
}

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

static bool take_button(inspect *i, const view_input_event *e, bool *changes)
{
    i->x_px = e->x_px;
    i->y_px = e->y_px;
    const inspect_place *place = place_at(i, e->x_px, e->y_px);
    if (e->button != VIEW_BUTTON_LEFT || e->modifiers & VIEW_MOD_ALT)
        return place != NULL && e->is_down;
    if (e->is_down) {
        i->press_x_px = e->x_px;
        i->press_y_px = e->y_px;
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
    if (i->find.is_open || i->find.is_active)
        find_clear(&i->find);
    else if (i->tabbed)
        i->tabbed = 0;
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
        if (i->find.is_open || !i->focus.call.is_set || i->is_framed)
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
        return i->is_pressed && i->pressed_place > 0;
    case VIEW_INPUT_LEAVE:
        i->is_inside = i->is_pressed = false;
        *changes = true;
        return false;
    case VIEW_INPUT_BUTTON: return take_button(i, e, changes);
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

static calls_call call_of(const view_box_ref *r)
{
    return (calls_call){.begin_ns = r->begin_ns, .end_ns = r->end_ns, .track = r->track, .depth = r->depth, .method = r->value,
                        .thread = r->thread, .process = r->process, .is_open = r->kind != VIEW_BOX_CALL};
}

static void point(inspect *i, const nav *n, const scene *s, const scene_input *in)
{
    float x;
    bool is_over_panel = i->is_inside && !i->is_resting && place_at(i, i->x_px, i->y_px) != NULL;
    uint32_t box = PICK_NONE;
    if (i->is_inside && !i->is_resting && !is_over_panel && n->drag == NAV_DRAG_NONE && !n->has_help)
        box = pick_box(s, in->camera, i->x_px, i->y_px, &x);
    i->has_tip = box != PICK_NONE;
    i->focus.hovered = FOCUS_NOTHING;
    const inspect_place *place = is_over_panel ? place_at(i, i->x_px, i->y_px) : i->tabbed ? &i->places[i->tabbed - 1] : NULL;
    if (place && place->action == INSPECT_SELECT)
        i->focus.hovered = place->method; /* what a list names lights up, too */
    if (!i->has_tip)
        return;
    details_tip_of(&i->tip, in, &s->refs.items[box]);
    if (i->tip.ref.kind != VIEW_BOX_GVL)
        i->focus.hovered = (focus_method){i->tip.ref.process, i->tip.ref.value};
}

/* Move in time, so that a call is in sight; the window stays as wide as it is, if the call fits. */
static void reveal(nav *n, const scene_input *in, const calls_call *call, bool is_framed)
{
    double begin = (double)(int64_t)(call->begin_ns - in->base_ns), end = (double)(int64_t)(call->end_ns - in->base_ns);
    double window = n->goal.window_ns, length = end - begin, middle = 0.5 * (begin + end);
    bool is_in_sight = call->begin_ns >= in->begin_ns && begin > n->goal.center_ns - 0.45 * window && end < n->goal.center_ns + 0.45 * window;
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

static void source_of(inspect *i, const scene_input *in)
{
    focus_method m = has_selection(i) ? i->focus.selected : i->focus.hovered;
    view_ask ask = i->request.ask;
    i->request = (view_request){0};
    if (ask == VIEW_ASK_NONE)
        return;
    if (ask != VIEW_ASK_PICTURE && m.process == CATALOG_NONE) {
        inspect_say(i, "point at a call or click it first");
        return;
    }
    i->request.ask = ask;
    if (ask == VIEW_ASK_PICTURE)
        return;
    const catalog_method *method = catalog_method_of(in->model->catalog, m.process, m.number);
    if (ask == VIEW_ASK_COPY) {
        char place[4096];
        details_place(method, place, sizeof place);
        snprintf(i->request.text, sizeof i->request.text, "%.4000s%s%s", method->name, place[0] ? " " : "", place);
        snprintf(i->line, sizeof i->line, "copied: %.240s", i->request.text);
        i->line_age_s = 0;
    } else if (method->path_bytes == 0 || method->path[0] == '<' || method->path[0] == '(') {
        i->request.ask = VIEW_ASK_NONE;
        snprintf(i->line, sizeof i->line, "%.200s has no source file", method->name);
        i->line_age_s = 0;
    } else {
        snprintf(i->request.text, sizeof i->request.text, "%s", method->path);
        i->request.line = method->line;
    }
}

static void act(inspect *i, nav *n, const scene_input *in, const inspect_place *place)
{
    switch (place->action) {
    case INSPECT_BLOCK: break;
    case INSPECT_SELECT: select_method(i, place->method); break;
    case INSPECT_SHOW:
        select_call(i, &place->call);
        reveal(n, in, &place->call, false);
        break;
    case INSPECT_SOURCE: i->request.ask = VIEW_ASK_SOURCE; break;
    case INSPECT_CLOSE: select_method(i, FOCUS_NOTHING); break;
    case INSPECT_CLOSE_HOT: i->has_hot = false; break;
    }
}

static void click(inspect *i, nav *n, const scene_input *in)
{
    i->is_clicked = false;
    if (i->pressed_place > 0 && (uint32_t)i->pressed_place <= i->place_count) {
        act(i, n, in, &i->places[i->pressed_place - 1]);
    } else if (i->has_tip && i->tip.ref.kind != VIEW_BOX_GVL) {
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

static bool matches(void *context, const calls_call *call)
{
    inspect *i = context;
    bool is_found_step = i->step == INSPECT_STEP_NEXT_FOUND || i->step == INSPECT_STEP_PREVIOUS_FOUND;
    uint8_t verdict = focus_verdict(&i->focus, call->process, call->method);
    if (!is_found_step)
        return verdict & FOCUS_SELECTED;
    return verdict & FOCUS_FOUND && focus_thread(&i->focus, call->thread) && find_duration(&i->find, call->end_ns - call->begin_ns);
}

static void step(inspect *i, nav *n, const scene *s, const scene_input *in)
{
    bool is_found_step = i->step == INSPECT_STEP_NEXT_FOUND || i->step == INSPECT_STEP_PREVIOUS_FOUND;
    bool is_forward = i->step == INSPECT_STEP_NEXT_FOUND || i->step == INSPECT_STEP_NEXT;
    calls_query q = {.model = in->model, .history = in->history, .begin_ns = in->begin_ns, .end_ns = in->model->now_ns,
                     .match = matches, .context = i};
    calls_call found;
    uint64_t from_ns = i->focus.call.is_set ? i->focus.call.begin_ns : is_forward ? s->begin_ns : s->end_ns;
    focus_update(&i->focus, in->model->catalog);
    if (is_found_step && !i->find.is_active)
        inspect_say(i, "nothing is looked for: / opens the line");
    else if (!is_found_step && !has_selection(i))
        inspect_say(i, "no method is selected: click a call");
    else if (is_forward ? calls_after(&q, from_ns, &found) : calls_before(&q, from_ns, &found)) {
        focus_method kept = i->focus.selected;
        select_call(i, &found);
        if (!is_found_step)
            i->focus.selected = kept;
        reveal(n, in, &found, false);
    } else {
        inspect_say(i, is_forward ? "no later call nearby" : "no earlier call nearby");
    }
    i->step = INSPECT_STEP_NONE;
}

static void count_found(inspect *i, const scene *s, const scene_input *in, double time_s)
{
    const catalog *c = in->model->catalog;
    i->count_age_s += time_s;
    if (!i->find.is_active || (i->counted_generation == i->find.generation && i->count_age_s < COUNT_EVERY_S))
        return;
    i->count_age_s = 0;
    i->counted_generation = i->find.generation;
    i->found_methods = 0;
    i->found_calls = 0;
    i->is_found_rough = false;
    focus_update(&i->focus, c);
    for (uint32_t p = 0; p < catalog_process_count(c); p++)
        for (uint32_t m = 1; m < catalog_method_limit(c, p); m++)
            i->found_methods += focus_verdict(&i->focus, p, m) & FOCUS_FOUND ? 1 : 0;
    for (size_t k = 0; k < s->refs.count; k++) {
        const view_box_ref *r = &s->refs.items[k];
        if ((r->kind != VIEW_BOX_CALL && r->kind != VIEW_BOX_OPEN) || !(focus_verdict(&i->focus, r->process, r->value) & FOCUS_FOUND) ||
            !focus_thread(&i->focus, r->thread) || !find_duration(&i->find, r->longest_ns))
            continue;
        i->found_calls += r->span_count;
        i->is_found_rough |= r->span_count > 1;
    }
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
    if (i->wants_frame) {
        i->wants_frame = false;
        reveal(n, in, &i->call, true);
        i->is_framed = true;
    }
    if (i->wants_mark)
        set_mark(i, n, in);
    if (i->request.ask != VIEW_ASK_NONE && i->request.text[0] == '\0')
        source_of(i, in);
    count_found(i, s, in, time_s);
    if (has_selection(i))
        details_update(&i->details, i->focus.selected, s, in, time_s);
    if (i->has_hot)
        hot_update(&i->hot, s, in, time_s);
    if (n->has_help)
        inspect_draw_line(i, p);
    else
        inspect_draw(i, in, p);
    i->line_age_s += time_s;
    /* What lights up does so in the next frame: there must be one. */
    i->is_moving = hovered.process != i->focus.hovered.process || hovered.number != i->focus.hovered.number ||
                   i->line_age_s < LINE_S + 0.5;
}

bool inspect_take_request(inspect *i, view_request *out)
{
    if (i->request.ask == VIEW_ASK_NONE || (i->request.ask != VIEW_ASK_PICTURE && i->request.text[0] == '\0'))
        return false;
    *out = i->request;
    i->request = (view_request){0};
    return true;
}
