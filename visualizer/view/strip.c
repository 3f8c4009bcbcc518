#include "view/strip.h"

#include "base/length.h"
#include "view/camera.h"
#include "view/palette.h"

#include <math.h>
#include <string.h>

#define SIDE_PX 14.0f
#define COLUMN_PX 2.0f
#define GC_PX 3.0f
#define MARK_PX 1.6f
#define LIFE_PX 1.0f      /* a process lives, whether or not it does anything */
#define GC_PROCESSES 64u  /* whose pauses are asked for: each costs a query */
#define GC_NODES 256u
#define TARGET_HEIGHT_MIN_PX 260.0f

float strip_height(float scale, uint32_t height_px)
{
    return (float)height_px < TARGET_HEIGHT_MIN_PX * scale ? 0 : STRIP_PX * scale;
}

void strip_hide(strip *s)
{
    s->is_shown = false;
    s->grab = STRIP_GRAB_NONE;
}

/* ---- time and pixels ------------------------------------------------------------------------------------------- */

static double length_ns(const strip *s) { return (double)(s->end_ns - s->begin_ns); }

static float px_of(const strip *s, double relative_ns)
{
    double share = fmin(fmax(relative_ns / length_ns(s), 0), 1);
    return s->low_px[0] + (float)share * (s->high_px[0] - s->low_px[0]);
}

static double ns_of(const strip *s, float x_px)
{
    return (double)(x_px - s->low_px[0]) / (double)(s->high_px[0] - s->low_px[0]) * length_ns(s);
}

/* The frame as it is drawn: never too narrow to be seen. */
static void frame_px(const strip *s, float px[2])
{
    float least = STRIP_FRAME_MIN_PX * s->scale;
    px[0] = px_of(s, s->frame_begin_ns);
    px[1] = px_of(s, s->frame_end_ns);
    if (px[1] - px[0] < least) {
        px[0] = fmaxf(s->low_px[0], 0.5f * (px[0] + px[1] - least));
        px[1] = px[0] + least;
    }
}

/* ---- input ------------------------------------------------------------------------------------------------------ */

/* A wide frame's edges are taken on either side of the line, a narrow one's on the outside, so that it can be moved, too. */
static strip_grab grab_at(const strip *s, float x_px)
{
    float px[2], near = STRIP_EDGE_PX * s->scale;
    frame_px(s, px);
    float inside = px[1] - px[0] > 4 * near ? near : 1.0f * s->scale;
    if (x_px >= px[0] - near && x_px < px[0] + inside)
        return STRIP_GRAB_BEGIN;
    if (x_px > px[1] - inside && x_px <= px[1] + near)
        return STRIP_GRAB_END;
    return x_px >= px[0] && x_px <= px[1] ? STRIP_GRAB_FRAME : STRIP_GRAB_NONE;
}

static void grab(strip *s, float x_px, bool *moves, strip_input_range *range)
{
    double at_ns = ns_of(s, x_px), middle_ns = 0.5 * (s->frame_begin_ns + s->frame_end_ns);
    double half_ns = 0.5 * (s->frame_end_ns - s->frame_begin_ns);
    s->grab = grab_at(s, x_px);
    switch (s->grab) {
    case STRIP_GRAB_BEGIN: s->grip_ns = at_ns - fmax(s->frame_begin_ns, 0); break; /* as it is seen */
    case STRIP_GRAB_END: s->grip_ns = at_ns - fmin(s->frame_end_ns, length_ns(s)); break;
    case STRIP_GRAB_FRAME: s->grip_ns = at_ns - middle_ns; break;
    case STRIP_GRAB_NONE: /* there, and from there on by the middle */
        s->grab = STRIP_GRAB_FRAME;
        s->grip_ns = 0;
        *moves = true;
        *range = (strip_input_range){at_ns - half_ns, at_ns + half_ns};
        break;
    }
}

static void drag(strip *s, float x_px, strip_input_range *range)
{
    double to_ns = fmin(fmax(ns_of(s, x_px) - s->grip_ns, 0), length_ns(s));
    double half_ns = 0.5 * (s->frame_end_ns - s->frame_begin_ns);
    /* The other edge stays where it is seen: a frame may reach over the session's ends. */
    *range = (strip_input_range){fmax(s->frame_begin_ns, 0), fmin(s->frame_end_ns, length_ns(s))};
    if (s->grab == STRIP_GRAB_BEGIN)
        range->begin_ns = fmin(to_ns, range->end_ns - CAMERA_WINDOW_MIN_NS);
    else if (s->grab == STRIP_GRAB_END)
        range->end_ns = fmax(to_ns, range->begin_ns + CAMERA_WINDOW_MIN_NS);
    else
        *range = (strip_input_range){to_ns - half_ns, to_ns + half_ns};
    s->frame_begin_ns = range->begin_ns; /* several moves may come between two frames */
    s->frame_end_ns = range->end_ns;
}

bool strip_input(strip *s, const view_input_event *e, bool *moves, bool *sticks, strip_input_range *range)
{
    bool is_inside = s->is_shown && e->y_px >= s->low_px[1] && e->y_px < s->high_px[1];
    *moves = *sticks = false;
    switch (e->type) {
    case VIEW_INPUT_BUTTON:
        if (e->button != VIEW_BUTTON_LEFT)
            return s->grab != STRIP_GRAB_NONE || (is_inside && e->is_down);
        if (e->is_down && is_inside) {
            grab(s, e->x_px, moves, range);
            return true;
        }
        if (e->is_down || s->grab == STRIP_GRAB_NONE)
            return false;
        s->grab = STRIP_GRAB_NONE;
        return true;
    case VIEW_INPUT_MOVE:
        if (s->grab == STRIP_GRAB_NONE || !s->is_shown)
            return false;
        *moves = *sticks = true;
        drag(s, e->x_px, range);
        return true;
    case VIEW_INPUT_LEAVE:
        s->grab = STRIP_GRAB_NONE;
        return false; /* others want to know it, too */
    default: return false;
    }
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

static void rect(quad_list *out, float x0, float y0, float x1, float y1, uint32_t color)
{
    if (x1 > x0 && y1 > y0)
        quad_list_rect(out, x0, y0, x1 - x0, y1 - y0, color);
}

/* Blues and violets and such, apart from GC's reds and running's green. */
static uint32_t group_color(uint32_t group)
{
    static const float hues[ACTIVITY_GROUPS] = {245, 300, 195, 105, 340, 265, 220, 85, 320, 180, 285, 120};
    return palette_oklch(group % 2 ? 0.70f : 0.64f, 0.10f, hues[group]);
}

/* Stacked; a column's height stands for the root of all its events. */
static void draw_activity(const strip *s, const activity *a, float low_y, float base_y, quad_list *out)
{
    static double counts[ACTIVITY_GROUPS][STRIP_COLUMNS]; /* the window's thread alone draws */
    float width = s->high_px[0] - s->low_px[0], column_px = fmaxf(COLUMN_PX * s->scale, width / (float)STRIP_COLUMNS);
    uint32_t columns = (uint32_t)fmaxf(ceilf(width / column_px), 1), groups = activity_group_count(a);
    double peak = 0;
    columns = columns < STRIP_COLUMNS ? columns : STRIP_COLUMNS;
    for (uint32_t g = 0; g < groups; g++)
        activity_columns(a, g, s->begin_ns, s->end_ns, counts[g], columns);
    for (uint32_t i = 0; i < columns; i++) {
        double sum = 0;
        for (uint32_t g = 0; g < groups; g++)
            sum += counts[g][i];
        peak = fmax(peak, sum);
    }
    for (uint32_t i = 0; i < columns && peak > 0; i++) {
        double sum = 0, below = 0;
        for (uint32_t g = 0; g < groups; g++)
            sum += counts[g][i];
        if (sum == 0)
            continue;
        float height = fmaxf((float)sqrt(sum / peak) * (base_y - low_y), 1.0f * s->scale);
        float x0 = s->low_px[0] + width * (float)i / (float)columns, x1 = s->low_px[0] + width * (float)(i + 1) / (float)columns;
        for (uint32_t g = 0; g < groups; g++) {
            double above = below + counts[g][i];
            rect(out, x0, base_y - height * (float)(above / sum), x1, base_y - height * (float)(below / sum), group_color(g));
            below = above;
        }
    }
}

/* Where at least one process lives. */
static void draw_lives(const strip *s, const view_model *model, float base_y, quad_list *out)
{
    double end = -1; /* so far: processes mostly come in the order of their begins */
    for (uint32_t id = 0; id < catalog_process_count(model->catalog); id++) {
        const catalog_process *p = catalog_process_at(model->catalog, id);
        double from = (double)(int64_t)(p->begin_ns - s->begin_ns), to = p->end_ns ? (double)(int64_t)(p->end_ns - s->begin_ns) : length_ns(s);
        if (to <= end || (id > 0 && px_of(s, to) - px_of(s, fmax(from, end)) < 0.5f))
            continue;
        rect(out, px_of(s, fmax(from, end)), base_y, px_of(s, to), base_y + LIFE_PX * s->scale, PALETTE_TEXT_DIM);
        end = to;
    }
}

static void draw_pause(const strip *s, uint64_t begin_ns, uint64_t end_ns, float busy, float y, quad_list *out)
{
    float x0 = px_of(s, (double)(int64_t)(begin_ns - s->begin_ns)), x1 = px_of(s, (double)(int64_t)(end_ns - s->begin_ns));
    rect(out, x0, y, fmaxf(x1, x0 + 1.2f * s->scale), y + GC_PX * s->scale, palette_alpha(PALETTE_GC, 0.35f + 0.65f * busy));
}

static void draw_gc(const strip *s, const view_model *model, float y, quad_list *out)
{
    static history_node nodes[GC_NODES];
    uint32_t count = catalog_process_count(model->catalog);
    uint64_t resolution_ns = (uint64_t)fmax(ns_of(s, s->low_px[0] + COLUMN_PX * s->scale), 1);
    for (uint32_t id = 0; id < count && id < GC_PROCESSES; id++) {
        uint32_t track = catalog_process_at(model->catalog, id)->gc_track;
        uint64_t at_ns = s->begin_ns;
        if (track == SIM_TRACK_NONE)
            continue;
        for (size_t got = GC_NODES; got == GC_NODES && at_ns < s->end_ns;) {
            got = history_query(model->history, track, 0, at_ns, s->end_ns, resolution_ns, nodes, GC_NODES);
            for (size_t i = 0; i < got; i++) {
                const history_node *n = &nodes[i];
                draw_pause(s, n->begin_ns, n->end_ns, history_busy_share(n), y, out);
            }
            at_ns = got && nodes[got - 1].end_ns > at_ns ? nodes[got - 1].end_ns : s->end_ns;
        }
        sim_span open;
        if (view_open_frame(model, track, 0, &open))
            draw_pause(s, open.begin_ns, s->end_ns, 1, y, out);
    }
}

static void draw_mark(const strip *s, uint64_t at_ns, uint32_t color, float *last_px, quad_list *out)
{
    float x = px_of(s, (double)(int64_t)(at_ns - s->begin_ns)), half = 0.5f * MARK_PX * s->scale, y0 = s->low_px[1] + 2 * s->scale;
    if (fabsf(x - *last_px) < half || at_ns > s->end_ns) /* of many in one place one is drawn */
        return;
    *last_px = x;
    rect(out, x - half, y0, x + half, s->high_px[1] - 2 * s->scale, palette_alpha(color, 0.75f));
    rect(out, x - 2 * half, y0, x + 2 * half, y0 + 4 * half, color);
}

static void draw_marks(const strip *s, const strip_picture *in, quad_list *out)
{
    size_t count = 0;
    const notes_mark *own = in->model->notes ? notes_marks(in->model->notes, &count) : NULL;
    float last_px = -INFINITY;
    for (size_t i = 0; i < count; i++)
        draw_mark(s, own[i].at_ns, PALETTE_SPAN, &last_px, out);
    last_px = -INFINITY;
    for (uint32_t i = 0; i < in->mark_count; i++)
        draw_mark(s, in->marks[i], PALETTE_ACCENT, &last_px, out);
}

/* What is not in sight lies in the shade. */
static void draw_frame(const strip *s, bool is_live, quad_list *out)
{
    float px[2], y0 = s->low_px[1] + 2 * s->scale, y1 = s->high_px[1] - 2 * s->scale, line = 1.5f * s->scale, grip = 1.5f * s->scale;
    uint32_t shade = palette_alpha(PALETTE_BACKGROUND, 0.55f), color = is_live ? PALETTE_TEXT : PALETTE_ACCENT;
    frame_px(s, px);
    rect(out, s->low_px[0], y0, px[0], y1, shade);
    rect(out, px[1], y0, s->high_px[0], y1, shade);
    rect(out, px[0], y0, px[1], y0 + line, color);
    rect(out, px[0], y1 - line, px[1], y1, color);
    for (int i = 0; i < 2; i++) {
        rect(out, px[i] - 0.5f * line, y0, px[i] + 0.5f * line, y1, color);
        float middle = 0.5f * (y0 + y1), half = 6 * s->scale; /* handles */
        rect(out, px[i] - grip - line, middle - half, px[i] + grip + line, middle + half, color);
    }
}

void strip_draw(strip *s, const strip_picture *in, font *f, quad_list *out)
{
    float height = strip_height(in->scale, (uint32_t)in->height_px), side = SIDE_PX * in->scale;
    if (height == 0 || in->model->now_ns <= in->begin_ns || in->width_px < 4 * side) {
        strip_hide(s);
        return;
    }
    s->is_shown = true;
    s->scale = in->scale;
    s->low_px[0] = side;
    s->high_px[0] = in->width_px - side;
    s->low_px[1] = in->height_px - height;
    s->high_px[1] = in->height_px;
    s->begin_ns = in->begin_ns;
    s->end_ns = in->model->now_ns;
    s->frame_begin_ns = in->frame_begin_ns;
    s->frame_end_ns = in->frame_end_ns;
    float top = s->low_px[1] + 5 * in->scale, base = s->high_px[1] - 6 * in->scale;
    rect(out, 0, s->low_px[1], in->width_px, in->height_px, PALETTE_BACKGROUND);
    rect(out, s->low_px[0], s->low_px[1] + 2 * in->scale, s->high_px[0], s->high_px[1] - 2 * in->scale, PALETTE_PANEL);
    if (in->model->activity)
        draw_activity(s, in->model->activity, top + (GC_PX + 1) * in->scale, base, out);
    draw_lives(s, in->model, base, out);
    draw_gc(s, in->model, top, out);
    draw_marks(s, in, out);
    draw_frame(s, in->is_live, out);
    char length[24];
    length_show(length_ns(s), length);
    float px[2];
    frame_px(s, px);
    float width = font_measure(f, length, strlen(length), 11 * in->scale), x = s->high_px[0] - width - 6 * in->scale;
    if (px[1] < x - 8 * in->scale || px[0] > s->high_px[0]) /* beside the frame, or not at all */
        font_draw(f, out, x, s->low_px[1] + 17 * in->scale, 0, length, strlen(length), 11 * in->scale, PALETTE_TEXT);
}
