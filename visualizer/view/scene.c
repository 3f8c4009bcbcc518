#include "view/scene.h"

#include "base/mem.h"
#include "view/focus.h"
#include "view/label.h"
#include "view/palette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESOLUTION_PX 1.3f  /* shorter than this is folded */
#define LEAST_PX 1.05f      /* no box is narrower: else no middle of a pixel may be in it, and it is not drawn at all */
#define WIDEN_BELOW_PX 6.0f /* by the measure of a row's middle: those are looked at */
#define ROW_MIN_PX 1.0f     /* rows lower than this are drawn several at a time */
#define ROWS_FROM_ABOVE 160u /* of deeper stacks: */
#define ROWS_FROM_ABOVE_FEW 48.0f
#define STRIDE_MAX 4096u    /* rows at a time */
#define ROW_BOXES 8u        /* that the budget has for each row in sight, or else rows stand for several levels of their stack */
#define FOLD_FIRST 8.0f     /* coarseness that comes before: calls of 10 px are folded */
#define SHARE_MIN 0.2f      /* of a row's height: lower boxes would be taken for lines */
#define MARK_SHARE_MIN 0.5f /* of a pause's mark, which is lower than a row */
#define SHARE_MIN_PX 1.5f
#define SHARE_LONG_PX 2.0f  /* longer calls, and pauses between short ones, are seen as such */
#define SEGMENTS 4          /* parts of a row in perspective, each with a resolution of its own */
#define LABEL_MIN_PX 26.0f
#define RUN_MIN_PX 90.0f    /* folded boxes beside each other, of one method for the most part: long enough to be named */
#define RUN_GAP_PX 2.5f
#define FLOOR_Y -0.06f
#define AXIS_Z 0.3f   /* of the time axis, before the last lane */
#define ATTEMPTS 8
#define GLASS_MAX 160u      /* panes of a process, and at least: each covers many pixels, so they follow the budget of boxes */
#define GLASS_MIN 48u
#define BOXES_PER_PANE 40u
#define GLASS_ALPHA_MAX 0.30f
#define GLASS_ALPHA_FLAT 0.26f  /* of a pane in a chart, where it is as wide as its time: what is behind it stays readable */
#define GLASS_ALPHA_SUM 0.60f   /* of all panes behind each other, at most, … */
#define GLASS_SUM_LEAST 0.15f   /* … at least, … */
#define GLASS_SUM_A_SHARE 1.6f  /* … and for each share of the time that is GC */
#define GLASS_ALPHA_MIN 0.09f  /* a pause is seen; and fainter panes would get lost in bytes, however many there are */
#define GLASS_FEWEST 10.0f
#define MEASURE_ALPHA 0.14f
#define SELECTED_PX 2.5f     /* of the frame about a call that is selected */
#define SELECTED_LEAST_PX 4.0f
#define SPANS_MAX 4096u      /* bars of the program's own spans */
#define SPAN_FOLD_PX 4.0f    /* shorter than this they are folded */
#define HOPELESS 3u         /* times the budget: start again with a coarser resolution */

/* One row being drawn. */
typedef struct row {
    const layout_lane *lane;
    uint32_t track, depth, process;
    bool is_gvl;
    float y[2], z[2];
    float x[2];         /* what can be seen of its lane */
    uint64_t ns[2];     /* the same as times */
    float px_per_unit;  /* at its middle */
    float height_px;
    float box_px;       /* height of its boxes; from above, depth */
    uint32_t levels;    /* of the stack that it stands for */
} row;

void scene_free(scene *s)
{
    vec_free(&s->boxes);
    vec_free(&s->glass);
    vec_free(&s->refs);
    vec_free(&s->labels);
    vec_free(&s->lane_ends);
    vec_free(&s->grid_cells);
    vec_free(&s->labelled);
    vec_free(&s->spans);
    vec_free(&s->pauses);
    vec_free(&s->bars);
}

static float clampf(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
static float mixf(float a, float b, float t) { return a + (b - a) * t; }

/* Differences of 64-bit times first, floats last. */
float scene_x(const scene_input *in, uint64_t time_ns)
{
    double x = camera_x(in->pose, (double)(int64_t)(time_ns - in->base_ns));
    return (float)fmin(fmax(x, -1e4), 1e4);
}

static uint64_t time_at(const scene_input *in, float x)
{
    double relative_ns = camera_time(in->pose, (double)x);
    if (relative_ns < -(double)in->base_ns)
        return 0;
    return (uint64_t)((int64_t)in->base_ns + (int64_t)relative_ns);
}

static bool clip_box(const scene_input *in, const float y[2], const float z[2], float x[2])
{
    return camera_clip_bar(in->camera, 0.5f * (y[0] + y[1]), 0.5f * (z[0] + z[1]), 0.5f * fabsf(y[1] - y[0]),
                           0.5f * fabsf(z[1] - z[0]), &x[0], &x[1]);
}

void scene_range(const scene_input *in, uint64_t *begin_ns, uint64_t *end_ns)
{
    const layout *l = in->layout;
    float y[2] = {l->y_low - 0.1f, l->y_high + 0.1f}, z[2] = {-0.1f, l->z_end + 0.1f};
    float x[2] = {-4 * (float)CAMERA_FILM, 4 * (float)CAMERA_FILM};
    if (!clip_box(in, y, z, x))
        x[0] = x[1] = 0;
    *begin_ns = time_at(in, x[0]);
    *end_ns = time_at(in, x[1]);
    if (*end_ns > in->model->now_ns)
        *end_ns = in->model->now_ns;
    if (*begin_ns < in->begin_ns)
        *begin_ns = in->begin_ns;
    if (*begin_ns > *end_ns)
        *begin_ns = *end_ns;
}

bool scene_axis_point(const camera *c, float x, float z_end, float parallel, float height_px, float scale, float px[2])
{
    float world[3] = {x, 0, z_end + AXIS_Z}, lowest = height_px - 46 * scale;
    if (!camera_project(c, world, px))
        return false;
    px[1] += 11 * scale;
    px[1] = fminf(px[1] + (lowest - px[1]) * parallel, lowest);
    return true;
}

void scene_ticks(const scene_input *in, uint64_t begin_ns, int64_t *first_ns, uint64_t *step_ns)
{
    /* A label is some 70 px wide; twice that between ticks reads easily. */
    float middle[3] = {in->pose->target[0], in->pose->target[1], in->layout->z_end};
    double units = 130.0 * (double)in->scale / (double)fmaxf(camera_px_per_x(in->camera, middle), 0.01f);
    *step_ns = label_step(units / CAMERA_FILM * in->pose->window_ns);
    int64_t from = (int64_t)(begin_ns - in->begin_ns), step = (int64_t)*step_ns;
    *first_ns = from <= 0 ? 0 : (from + step - 1) / step * step;
}

gpu_box scene_whole_box(const scene *s, const scene_input *in, size_t index)
{
    gpu_box box = s->boxes.items[index];
    float share = s->refs.items[index].share;
    box.high[1] = box.low[1] + (box.high[1] - box.low[1]) / mixf(share, 1, in->layout->threads_share);
    box.low[2] = box.high[2] - (box.high[2] - box.low[2]) / mixf(share, 1, in->layout->flame);
    return box;
}

/* What would be lost between pixels takes one of its neighbours', before which it stands a little; they stay where they are. */
static void widen(const scene_input *in, const row *r, gpu_box *box)
{
    const float at[3] = {box->low[0], box->low[1], box->high[2]};
    float px_per_unit = in->camera->is_parallel ? r->px_per_unit : camera_px_per_x(in->camera, at);
    float least = LEAST_PX / fmaxf(px_per_unit, 1e-3f);
    if (box->high[0] - box->low[0] >= least)
        return;
    box->high[0] = box->low[0] + least;
    box->high[1] += 0.1f * (box->high[1] - box->low[1]);
    box->high[2] += 0.02f * (box->high[2] - box->low[2]);
}

/* So many pixels, on the time axis of the world, by the measure of the row's middle. */
static float units_of(const row *r, float px) { return px / fmaxf(r->px_per_unit, 1e-3f); }

static void add_box(scene *s, const scene_input *in, const row *r, float x0, float x1, uint32_t color, const view_box_ref *what)
{
    if (s->boxes.count >= (size_t)HOPELESS * s->budget) {
        s->is_full = true;
        return;
    }
    gpu_box *box = vec_push(&s->boxes);
    view_box_ref *ref = box ? vec_push(&s->refs) : NULL;
    if (!ref) {
        s->boxes.count -= box ? 1 : 0;
        s->is_full = true;
        return;
    }
    *box = (gpu_box){.low = {x0, r->y[0], r->z[0]}, .high = {x1, r->y[1], r->z[1]}, .color = color};
    if ((x1 - x0) * r->px_per_unit < WIDEN_BELOW_PX)
        widen(in, r, box);
    *ref = *what;
}

/* The visible part of [begin, end), with a margin so that cut edges lie outside the screen. False: nothing is. */
static bool visible_part(const scene_input *in, const row *r, uint64_t begin_ns, uint64_t end_ns, float *x0, float *x1)
{
    *x0 = fmaxf(scene_x(in, begin_ns), r->x[0] - 0.5f);
    *x1 = fminf(scene_x(in, end_ns), r->x[1] + 0.5f);
    return *x1 >= *x0 && *x0 <= r->x[1] && *x1 >= r->x[0];
}

static uint32_t call_color(scene *s, const scene_input *in, const catalog_method *method, uint32_t depth, uint64_t length_ns)
{
    if (in->tint == TINT_LENGTH)
        return tint_length(tint_step(length_ns));
    if (s->colors_tint != in->tint)
        memset(s->colors, 0, sizeof s->colors);
    s->colors_tint = in->tint;
    uint32_t shade = depth < 24 ? depth : 24; /* deeper ones look alike */
    /* Methods of one name share a colour, also in other processes; but not an owner, which their files and digits say. */
    uint64_t key = in->tint == TINT_OWNER ? (uintptr_t)method >> 4 : method->hash;
    struct scene_color *slot = &s->colors[((uint32_t)key * 2654435769u + shade * 40503u + method->kind) % SCENE_COLORS];
    if (slot->color == 0 || slot->key != key || slot->depth != shade || slot->kind != method->kind)
        *slot = (struct scene_color){.key = key, .depth = (uint16_t)shade, .kind = (uint16_t)method->kind,
                                     .color = palette_method(tint_hash(in->tint, method), method->kind, shade)};
    return slot->color;
}

/* Strips are seen from above, but in the flame chart. */
static uint32_t strip_color(const scene_input *in, uint32_t state)
{
    return palette_under_light(palette_gvl((sim_gvl)state), 1 - in->layout->flame);
}

static uint32_t node_color(scene *s, const scene_input *in, const row *r, const history_node *node)
{
    uint32_t color = call_color(s, in, catalog_method_of(in->model->catalog, r->process, node->value), r->depth, node->longest_ns);
    if (node->span_count > 1)
        return palette_folded(color, history_busy_share(node));
    return node->flags & HISTORY_UNWOUND ? palette_unwound(color) : color;
}

static view_box_ref ref_of(const row *r, const history_node *node)
{
    return (view_box_ref){.begin_ns = node->begin_ns, .end_ns = node->end_ns, .busy_ns = node->busy_ns, .longest_ns = node->longest_ns,
                          .track = r->track, .depth = r->depth, .levels = r->levels, .value = node->value, .share = 1,
                          .span_count = node->span_count < UINT32_MAX ? (uint32_t)node->span_count : UINT32_MAX,
                          .process = r->process, .thread = r->lane->thread, .flags = node->flags,
                          .kind = r->is_gvl ? VIEW_BOX_GVL : VIEW_BOX_CALL};
}

/* A thread's state is told by its shape as well as by its colour: see palette_gvl_bands. It takes [from, to) of the strip. */
static void add_state(scene *s, const scene_input *in, const row *r, float x0, float x1, float from, float to, const view_box_ref *what)
{
    palette_bands shape = palette_gvl_bands((sim_gvl)what->value);
    float flame = in->layout->flame; /* from the front bands lie above each other, from above behind each other */
    for (uint32_t i = 0; i < shape.count; i++) {
        row band = *r;
        for (int side = 0; side < 2; side++) {
            float up = mixf(from, to, shape.at[i][side]), down = 1 - mixf(from, to, shape.at[i][1 - side]);
            band.z[side] = mixf(r->z[0], r->z[1], mixf(down, (float)side, flame));
            band.y[side] = mixf(r->y[0], r->y[1], mixf((float)side, up, flame));
        }
        add_box(s, in, &band, x0, x1, strip_color(in, what->value), what);
    }
}

typedef struct strip_row { /* whose states are being drawn */
    scene *s;
    const scene_input *in;
    const row *r;
    bool is_open; /* the state that comes last has not ended */
} strip_row;

/* Each state takes as much of the strip's height, from above of its depth, as of the time. */
static void add_piece(void *context, const states_piece *piece)
{
    const strip_row *strip = context;
    float x0, x1, from = 0;
    if (!visible_part(strip->in, strip->r, piece->begin_ns, piece->end_ns, &x0, &x1))
        return;
    for (uint32_t state = 0; state < STATES_COUNT; state++) {
        if (piece->steps[state] == 0)
            continue;
        float to = from + (float)piece->steps[state] / STATES_STEPS;
        history_node node = {.begin_ns = piece->begin_ns, .end_ns = piece->end_ns, .busy_ns = piece->ns[state], .longest_ns = piece->ns[state],
                             .span_count = piece->span_count ? piece->span_count : 1, .value = state, .flags = piece->flags};
        view_box_ref what = ref_of(strip->r, &node);
        what.is_open = strip->is_open && piece->span_count <= 1 && piece->end_ns >= strip->in->model->now_ns;
        add_state(strip->s, strip->in, strip->r, x0, x1, from, to, &what);
        from = to;
    }
}

static void note_label(scene *s, const row *r, uint32_t method, float x0, float x1)
{
    if ((x1 - x0) * r->px_per_unit < LABEL_MIN_PX || s->boxes.count == 0 || s->labels.count >= SCENE_LABELS)
        return;
    scene_label *label = vec_push(&s->labels);
    if (label)
        *label = (scene_label){.box = (uint32_t)s->boxes.count - 1, .box_count = 1, .span_count = 1, .process = r->process, .method = method,
                               .x_begin = fmaxf(x0, r->x[0]), .x_end = fminf(x1, r->x[1])};
}

/* The run of folded boxes has ended: a name for all of it, if there is room. */
static void end_run(scene *s, const row *r)
{
    struct scene_run run = s->run;
    s->run.span_count = 0;
    if (run.span_count == 0 || (run.x_end - run.x_begin) * r->px_per_unit < RUN_MIN_PX || s->labels.count >= SCENE_LABELS)
        return;
    scene_label *label = vec_push(&s->labels);
    if (label)
        *label = (scene_label){.box = run.first_box, .box_count = (uint32_t)s->boxes.count - run.first_box, .span_count = run.span_count,
                               .process = r->process, .method = run.method, .x_begin = fmaxf(run.x_begin, r->x[0]), .x_end = fminf(run.x_end, r->x[1])};
}

/* Would a folded box there lengthen the run? */
static bool is_of_run(const scene *s, const row *r, const history_node *node, float x0)
{
    return s->run.span_count > 0 && s->run.method == node->value && (x0 - s->run.x_end) * r->px_per_unit < RUN_GAP_PX;
}

/* A folded box was added. */
static void go_on_run(scene *s, const history_node *node, float x0, float x1)
{
    if (s->run.span_count == 0)
        s->run = (struct scene_run){.first_box = (uint32_t)s->boxes.count - 1, .method = node->value, .x_begin = x0};
    s->run.span_count += node->span_count;
    s->run.x_end = x1;
}

static uint32_t in_focus(scene *s, const scene_input *in, uint32_t color, const view_box_ref *what)
{
    if (!in->focus)
        return color;
    if (what->span_count == 1 && focus_is_call(in->focus, what->track, what->depth, what->begin_ns)) {
        s->has_selected = true;
        return palette_mix(color, PALETTE_ACCENT, 0.8f);
    }
    return focus_color(in->focus, color, what->process, what->value, what->thread, what->longest_ns);
}

/* How much of its row's height a box takes: as much as calls take of the time that it stands for. That reaches back to the
 * box before, as calls that are far less than a pixel long would else make a wall of what is a pixel wide each. */
static float drawn_share(scene *s, const scene_input *in, const row *r, const history_node *node)
{
    float x0 = scene_x(in, node->begin_ns), x1 = scene_x(in, node->end_ns), length = x1 - x0, before = x0 - s->row_end;
    s->row_end = x1;
    if (node->span_count == 1 && length * r->px_per_unit > SHARE_LONG_PX)
        return 1;
    float all = before > 0 && before * r->px_per_unit < SHARE_LONG_PX ? length + before : length;
    float share = all > 0 ? history_busy_share(node) * length / all : 1;
    return clampf(share, fminf(fmaxf(SHARE_MIN, SHARE_MIN_PX / fmaxf(r->box_px, 1e-3f)), 1), 1);
}

/* Of the height, from above of the depth, and at an angle of both: low boxes as deep as the lane would hide what is below. */
static row lower_row(const scene_input *in, const row *r, float share)
{
    row lower = *r;
    lower.y[1] = mixf(r->y[0], r->y[1], mixf(share, 1, in->layout->threads_share));
    lower.z[0] = mixf(r->z[1], r->z[0], mixf(share, 1, in->layout->flame));
    return lower;
}

static void add_node(scene *s, const scene_input *in, const row *r, const history_node *node)
{
    float x0, x1, share = drawn_share(s, in, r, node);
    if (!visible_part(in, r, node->begin_ns, node->end_ns, &x0, &x1))
        return;
    view_box_ref what = ref_of(r, node);
    bool is_folded = node->span_count > 1;
    if (!is_folded || !is_of_run(s, r, node, x0))
        end_run(s, r);
    row lower;
    if (share < 1)
        lower = lower_row(in, r, share);
    what.share = share;
    add_box(s, in, share < 1 ? &lower : r, x0, x1, in_focus(s, in, node_color(s, in, r, node), &what), &what);
    if (is_folded && s->boxes.count > 0)
        go_on_run(s, node, x0, x1);
    else if (node->span_count == 1)
        note_label(s, r, node->value, x0, x1);
}

/* Resolutions come in steps of half an octave: history/'s cells stay as they are while the zoom changes little, and parts of a
 * row that are about as far away are asked for together. */
static uint64_t rounded_resolution(double ns)
{
    return ns < 2 ? 1 : (uint64_t)exp2(floor(log2(ns) * 2 + 0.5) * 0.5);
}

/* Where to ask from, so that everything from at_ns on is answered as in any other frame. */
static uint64_t asked_from(uint64_t at_ns, uint64_t resolution_ns)
{
    uint64_t cell = at_ns / resolution_ns;
    return cell < 2 ? 0 : (cell - 2) * resolution_ns;
}

static uint64_t asked_to(uint64_t end_ns, uint64_t resolution_ns)
{
    uint64_t over_ns = end_ns % resolution_ns;
    return over_ns && end_ns < UINT64_MAX - resolution_ns ? end_ns - over_ns + resolution_ns : end_ns;
}

/* ns that a fold may hide at a place of the row. */
static uint64_t resolution_ns(const scene_input *in, const row *r, float x0, float x1, float resolution_px)
{
    float from[3] = {x0, r->y[0], r->z[1]}, to[3] = {x1, r->y[0], r->z[1]};
    float px = fmaxf(fmaxf(camera_px_per_x(in->camera, from), camera_px_per_x(in->camera, to)), 1e-3f);
    double ns = (double)resolution_px / (double)px / CAMERA_FILM * in->pose->window_ns;
    return rounded_resolution(ns);
}

/* Finished spans in [*at_ns, end_ns), and on from where the last one ends. */
static void add_stretch(scene *s, const scene_input *in, const row *r, uint64_t *at_ns, uint64_t end_ns, uint64_t resolution)
{
    while (*at_ns < end_ns && !s->is_full) {
        size_t count = history_query_cells(in->history, r->track, r->depth, *at_ns, end_ns, resolution, s->nodes, SCENE_NODES);
        for (size_t n = 0; n < count; n++) {
            if (r->is_gvl)
                states_take(&s->states, &s->nodes[n], resolution);
            else
                add_node(s, in, r, &s->nodes[n]);
        }
        if (count > 0 && s->nodes[count - 1].end_ns > *at_ns)
            *at_ns = s->nodes[count - 1].end_ns;
        if (count < SCENE_NODES)
            break;
    }
    if (*at_ns < end_ns)
        *at_ns = end_ns;
}

/* Finished spans of the row. In perspective its parts meet where a cell of the coarser one begins, so that the seam keeps its
 * place in time while the film moves. */
static void add_history(scene *s, const scene_input *in, const row *r)
{
    s->run.span_count = 0;
    s->row_end = -INFINITY;
    int segments = in->camera->is_parallel ? 1 : SEGMENTS;
    uint64_t resolutions[SEGMENTS];
    for (int i = 0; i < segments; i++)
        resolutions[i] = resolution_ns(in, r, mixf(r->x[0], r->x[1], (float)i / (float)segments),
                                       mixf(r->x[0], r->x[1], (float)(i + 1) / (float)segments), RESOLUTION_PX * s->coarseness);
    uint64_t at_ns = asked_from(r->ns[0], resolutions[0]);
    for (int i = 0; i < segments; i++) {
        uint64_t end_ns = asked_to(r->ns[1], resolutions[i]);
        if (i + 1 < segments) {
            if (resolutions[i] == resolutions[i + 1])
                continue;
            uint64_t coarser = resolutions[i] > resolutions[i + 1] ? resolutions[i] : resolutions[i + 1];
            end_ns = time_at(in, mixf(r->x[0], r->x[1], (float)(i + 1) / (float)segments)) / coarser * coarser;
        }
        add_stretch(s, in, r, &at_ns, end_ns, resolutions[i]);
    }
    end_run(s, r);
}

/* A frame that is still open, from its begin to end_ns. */
static void add_open(scene *s, const scene_input *in, const row *r, const sim_span *frame, uint64_t end_ns, bool is_idle)
{
    float x0, x1;
    if (frame->begin_ns >= end_ns || !visible_part(in, r, frame->begin_ns, end_ns, &x0, &x1))
        return;
    history_node node = {.begin_ns = frame->begin_ns, .end_ns = end_ns, .busy_ns = end_ns - frame->begin_ns,
                         .longest_ns = end_ns - frame->begin_ns, .span_count = 1, .value = frame->value,
                         .flags = frame->open_at_start ? HISTORY_OPEN_AT_START : 0};
    view_box_ref what = ref_of(r, &node);
    what.is_open = true;
    what.kind = is_idle ? VIEW_BOX_IDLE : VIEW_BOX_OPEN;
    const catalog_method *method = catalog_method_of(in->model->catalog, r->process, frame->value);
    uint32_t color = in_focus(s, in, call_color(s, in, method, r->depth, node.busy_ns), &what);
    if (is_idle)
        color = palette_idle(color);
    float cap = units_of(r, 3.0f * in->scale);
    bool has_cap = !is_idle && r->height_px >= 3 && x1 - x0 > 3 * cap && end_ns >= in->model->now_ns && x1 <= r->x[1] + 0.1f;
    add_box(s, in, r, x0, has_cap ? x1 - cap : x1, color, &what);
    note_label(s, r, frame->value, x0, x1);
    if (has_cap) {
        what.kind = VIEW_BOX_END;
        add_box(s, in, r, x1 - cap, x1, palette_open_end(color), &what);
    }
}

static uint64_t lane_end_ns(const scene_input *in, const layout_lane *lane)
{
    const catalog_thread *thread = catalog_thread_at(in->model->catalog, lane->thread);
    const catalog_process *process = catalog_process_at(in->model->catalog, lane->process);
    uint64_t end_ns = thread->end_ns ? thread->end_ns : process->end_ns;
    return end_ns && end_ns < in->model->now_ns ? end_ns : in->model->now_ns;
}

/* Sets what rows of a lane have in common, over heights [y0, y1). False: the lane is out of sight. */
static bool aim_row(const scene *s, const scene_input *in, row *r, float y0, float y1)
{
    const float y[2] = {y0, y1};
    r->x[0] = fmaxf(scene_x(in, s->begin_ns), -4 * (float)CAMERA_FILM);
    r->x[1] = fminf(scene_x(in, s->end_ns), 4 * (float)CAMERA_FILM);
    if (!clip_box(in, y, r->z, r->x))
        return false;
    r->ns[0] = time_at(in, r->x[0]);
    r->ns[1] = time_at(in, r->x[1]) + 1;
    if (r->ns[0] < s->begin_ns)
        r->ns[0] = s->begin_ns;
    float middle[3] = {0.5f * (r->x[0] + r->x[1]), y0, r->z[1]};
    r->px_per_unit = camera_px_per_x(in->camera, middle);
    return true;
}

/* From above each row hides those below it, and all of them would be painted: of a very deep stack, 48 rows are as good as
 * thousands. How high its rows count as. */
static float from_above_px(uint32_t rows)
{
    return rows <= ROWS_FROM_ABOVE ? ROW_MIN_PX * 1.5f : ROWS_FROM_ABOVE_FEW * ROW_MIN_PX / (float)rows;
}

/* How many levels a row stands for: one, unless that is less than a pixel, or there are too many. In powers of two, so that a
 * slowly changing height seldom changes the picture. */
static uint32_t row_levels(const scene *s, const scene_input *in, row *r, float row_height, uint32_t rows)
{
    float middle[3] = {0.5f * (r->x[0] + r->x[1]), r->y[0], r->z[1]};
    float px_per_unit = fmaxf(r->px_per_unit, camera_px_per_y(in->camera, middle)); /* from above, rows hide behind each other */
    r->height_px = row_height * px_per_unit;
    float counted_px = mixf(r->height_px, from_above_px(rows), in->layout->threads_share);
    uint32_t levels = s->level_stride;
    while ((float)levels * counted_px < ROW_MIN_PX && levels < STRIDE_MAX)
        levels *= 2;
    return levels;
}

/* The frame open at a depth of a track, from the chunk of them that s->open holds: [*first, *first + *count). */
static const sim_span *open_at(scene *s, const scene_input *in, uint32_t track, uint32_t depth, uint32_t *first, size_t *count)
{
    if (depth < *first || depth >= *first + *count) {
        *first = depth;
        *count = sim_open_frames(in->model->sim, track, depth, s->open, SCENE_OPEN);
    }
    return depth < *first + *count ? &s->open[depth - *first] : NULL;
}

/* How many rows have something in sight. Calls nest, so above a row without spans there are none: bisection finds it. */
static uint32_t rows_in_sight(const scene_input *in, const row *r, uint32_t rows, uint32_t open_depth)
{
    uint32_t low = open_depth < rows ? open_depth : rows, high = rows; /* rows below low have some, from high on none */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (history_has_spans(in->history, r->track, middle, r->ns[0], r->ns[1]))
            low = middle + 1;
        else
            high = middle;
    }
    return low > open_depth ? low : open_depth;
}

static void add_fiber(scene *s, const scene_input *in, const layout_lane *lane, uint32_t fiber_id)
{
    layout *l = in->layout;
    const catalog_fiber *fiber = catalog_fiber_at(in->model->catalog, fiber_id);
    layout_thread *state = &l->threads.items[lane->thread];
    uint32_t sub = l->fiber_subs.items[fiber_id];
    float y_floor;
    row r = {.lane = lane, .track = fiber->track, .process = lane->process};
    layout_sub(l, lane, sub, &r.z[0], &r.z[1], &y_floor);
    if (!aim_row(s, in, &r, y_floor, y_floor + fmaxf(l->tallest, l->row_height) + 1))
        return;
    uint64_t end_ns = lane_end_ns(in, lane);
    bool is_root = sub == 0, has_tail = state->last_fiber[sub] == fiber_id;
    uint64_t active_end_ns = is_root || fiber->end_ns > end_ns ? end_ns : fiber->end_ns;
    uint32_t open_depth = in->model->sim ? sim_open_depth(in->model->sim, fiber->track) : 0, open_first = 0;
    uint32_t rows = rows_in_sight(in, &r, history_rows(in->history, fiber->track), open_depth);
    float row_height = layout_row_height(l, lane);
    r.levels = row_levels(s, in, &r, row_height, rows);
    size_t open_count = 0;
    bool was_seen = false;
    if (rows > state->seen[sub])
        state->seen[sub] = rows;
    if (r.levels > state->levels_a_row)
        state->levels_a_row = r.levels < rows ? r.levels : rows;
    for (uint32_t depth = 0; depth < rows && !s->is_full; depth += r.levels) {
        r.depth = depth;
        r.y[0] = y_floor + (float)depth * row_height;
        r.y[1] = r.y[0] + (float)r.levels * row_height;
        float x[2] = {r.x[0], r.x[1]};
        if (!clip_box(in, r.y, r.z, x)) {
            if (was_seen)
                break; /* above the screen: so are all others */
            continue;
        }
        was_seen = true;
        s->row_count++;
        r.box_px = mixf(r.height_px * (float)r.levels, (r.z[1] - r.z[0]) * r.px_per_unit, l->threads_share);
        add_history(s, in, &r);
        const sim_span *open = depth < open_depth ? open_at(s, in, fiber->track, depth, &open_first, &open_count) : NULL;
        if (open) {
            sim_span frame = *open;
            add_open(s, in, &r, &frame, active_end_ns, false);
            if (active_end_ns < end_ns && has_tail) {
                frame.begin_ns = frame.begin_ns > active_end_ns ? frame.begin_ns : active_end_ns;
                add_open(s, in, &r, &frame, end_ns, true);
            }
        }
    }
}

static void add_strip(scene *s, const scene_input *in, const layout_lane *lane)
{
    const catalog_thread *thread = catalog_thread_at(in->model->catalog, lane->thread);
    row r = {.lane = lane, .track = thread->gvl_track, .process = lane->process, .is_gvl = true};
    layout_strip(in->layout, lane, r.z, r.y);
    if (thread->gvl_track == SIM_TRACK_NONE || !aim_row(s, in, &r, r.y[0], r.y[1]))
        return;
    strip_row strip = {.s = s, .in = in, .r = &r};
    states_begin(&s->states, add_piece, &strip);
    add_history(s, in, &r);
    sim_span open;
    uint64_t end_ns = lane_end_ns(in, lane);
    if (view_open_frame(in->model, thread->gvl_track, 0, &open) && open.begin_ns < end_ns) {
        uint64_t length_ns = end_ns - open.begin_ns;
        history_node node = {.begin_ns = open.begin_ns, .end_ns = end_ns, .busy_ns = length_ns, .longest_ns = length_ns, .span_count = 1, .value = open.value,
                             .flags = open.open_at_start ? HISTORY_OPEN_AT_START : 0};
        if (open.value < 2)
            node.of_ns[open.value] = length_ns;
        strip.is_open = true;
        states_take(&s->states, &node, resolution_ns(in, &r, r.x[1], r.x[1], RESOLUTION_PX * s->coarseness));
    }
    states_end(&s->states);
}

static void reverse_boxes(scene *s, size_t begin, size_t first_label)
{
    for (size_t i = begin, j = s->boxes.count; i + 1 < j; i++) {
        j--;
        gpu_box box = s->boxes.items[i];
        s->boxes.items[i] = s->boxes.items[j];
        s->boxes.items[j] = box;
        view_box_ref ref = s->refs.items[i];
        s->refs.items[i] = s->refs.items[j];
        s->refs.items[j] = ref;
    }
    for (size_t i = first_label; i < s->labels.count; i++)
        s->labels.items[i].box = (uint32_t)(begin + s->boxes.count - s->labels.items[i].box - s->labels.items[i].box_count);
}

static void add_lane(scene *s, const scene_input *in, const layout_lane *lane)
{
    const catalog *c = in->model->catalog;
    layout_thread *state = &in->layout->threads.items[lane->thread];
    size_t begin = s->boxes.count, first_label = s->labels.count;
    memset(state->seen, 0, sizeof state->seen);
    state->levels_a_row = 1;
    add_strip(s, in, lane);
    for (uint32_t id = catalog_thread_at(c, lane->thread)->first_fiber; id != CATALOG_NONE; id = catalog_fiber_at(c, id)->next) {
        const catalog_fiber *fiber = catalog_fiber_at(c, id);
        bool is_last = state->last_fiber[in->layout->fiber_subs.items[id]] == id;
        if (fiber->begin_ns < s->end_ns && (is_last || fiber->end_ns >= s->begin_ns))
            add_fiber(s, in, lane, id);
    }
    reverse_boxes(s, begin, first_label); /* found from the floor up, drawn from the top down: hidden faces are not painted */
    uint32_t *end = vec_push(&s->lane_ends);
    if (end)
        *end = (uint32_t)s->boxes.count;
}

static void add_plain(scene *s, const float x[2], const float y[2], const float z[2], uint32_t color)
{
    gpu_box *box = vec_push(&s->boxes);
    if (box)
        *box = (gpu_box){.low = {x[0], y[0], z[0]}, .high = {x[1], y[1], z[1]}, .color = color};
}

static void add_floors(scene *s, const scene_input *in)
{
    const layout *l = in->layout;
    for (size_t i = l->lanes.count; i-- > 0;) {
        const layout_lane *lane = &l->lanes.items[i];
        float depth = lane->z_end - lane->z_begin, y_top = lane->y_floor + FLOOR_Y * (1 - l->flame) - 1.02f * l->row_height * l->flame;
        float y[2] = {y_top - 0.03f * (1 - l->flame), y_top}, z[2] = {lane->z_begin + 0.03f * depth, lane->z_end - 0.02f * depth};
        row r = {.lane = lane, .z = {z[0], z[1]}};
        if (!aim_row(s, in, &r, y[0], y[1]))
            continue;
        float x[2];
        uint64_t begin_ns = catalog_thread_at(in->model->catalog, lane->thread)->begin_ns;
        if (visible_part(in, &r, begin_ns, lane_end_ns(in, lane), &x[0], &x[1]))
            add_plain(s, x, y, z, palette_under_light(PALETTE_LANE, 1 - l->flame));
    }
}

/* A place for the bars of each thread in sight. NULL: memory is out. */
static scene_bars *clear_bars(scene *s, const scene_input *in)
{
    const layout *l = in->layout;
    size_t threads = catalog_thread_count(in->model->catalog);
    if (!vec_reserve(&s->bars, threads))
        return NULL;
    for (size_t i = 0; i < threads; i++)
        s->bars.items[i].lane = SCENE_NO_BOX;
    for (size_t i = 0; i < l->lanes.count; i++)
        s->bars.items[l->lanes.items[i].thread] = (scene_bars){.lane = (uint32_t)i};
    return s->bars.items;
}

/* The lowest level that is free when the span begins, so that what lies within another is above it. */
static uint32_t span_level(scene_bars *bars, const notes_span *span)
{
    uint32_t level = 0;
    while (level + 1 < SCENE_SPAN_LEVELS && bars->end_ns[level] > span->begin_ns)
        level++;
    bars->end_ns[level] = span->end_ns;
    return level;
}

/* Too short to be told from the one before: they are one bar. False: not so. */
static bool fold_span(scene *s, const row *r, uint32_t last, const float x[2], const view_box_ref *ref)
{
    if (last == 0)
        return false;
    scene_span *before = &s->spans.items[last - 1];
    float folded_units = units_of(r, SPAN_FOLD_PX);
    bool is_short = before->ref.span_count > 1 || before->x[1] - before->x[0] < folded_units;
    if (!is_short || x[1] - x[0] > folded_units || x[0] - before->x[1] > 0.5f * folded_units)
        return false;
    before->x[1] = fmaxf(before->x[1], x[1]);
    s->boxes.items[before->box].high[0] = fmaxf(s->boxes.items[before->box].high[0], x[1]);
    s->boxes.items[before->box].color = palette_mix(PALETTE_BACKGROUND, PALETTE_SPAN, 0.8f);
    if (ref->longest_ns > before->ref.longest_ns) {
        before->ref.longest_ns = ref->longest_ns;
        before->ref.value = ref->value; /* its name stands for all */
    }
    before->ref.end_ns = ref->end_ns > before->ref.end_ns ? ref->end_ns : before->ref.end_ns;
    before->ref.busy_ns += ref->busy_ns;
    before->ref.span_count++;
    before->ref.is_open |= ref->is_open;
    return true;
}

static void add_span(scene *s, const scene_input *in, const notes_span *span, scene_bars *bars, uint32_t level)
{
    const layout *l = in->layout;
    const layout_lane *lane = &l->lanes.items[bars->lane];
    float x[2];
    row r = {.lane = lane};
    layout_span(l, lane, level, r.z, r.y);
    bool is_open = span->end_ns > in->model->now_ns;
    uint64_t end_ns = is_open ? in->model->now_ns : span->end_ns, length_ns = end_ns - span->begin_ns;
    if (end_ns < span->begin_ns || !aim_row(s, in, &r, r.y[0], r.y[1]) || !visible_part(in, &r, span->begin_ns, end_ns, &x[0], &x[1]))
        return;
    x[1] = fmaxf(x[1], x[0] + units_of(&r, 2 * in->scale));
    layout_thread *thread = &in->layout->threads.items[lane->thread];
    if (level >= thread->span_levels)
        thread->span_levels = (uint8_t)(level + 1);
    view_box_ref ref = {.begin_ns = span->begin_ns, .end_ns = end_ns, .busy_ns = length_ns, .longest_ns = length_ns, .track = span->id, .value = span->string,
                        .span_count = 1, .process = span->process, .thread = span->thread, .kind = VIEW_BOX_SPAN, .is_open = is_open};
    if (fold_span(s, &r, bars->last[level], x, &ref))
        return;
    scene_span *shown = s->spans.count < SPANS_MAX ? vec_push(&s->spans) : NULL;
    if (!shown)
        return;
    bool is_selected = in->focus && focus_is_span(in->focus, span->process, span->id, span->begin_ns);
    add_plain(s, x, r.y, r.z, is_selected ? palette_mix(PALETTE_SPAN, PALETTE_ACCENT, 0.8f) : PALETTE_SPAN);
    *shown = (scene_span){.x = {fmaxf(x[0], r.x[0]), fminf(x[1], r.x[1])}, .y = {r.y[0], r.y[1]}, .z = r.z[1], .box = (uint32_t)s->boxes.count - 1, .ref = ref};
    bars->last[level] = (uint32_t)s->spans.count;
}

/* Bars over the lanes of the threads that began them. */
static void add_spans(scene *s, const scene_input *in)
{
    size_t count = 0;
    const notes_span *spans = in->model->notes ? notes_spans(in->model->notes, &count) : NULL;
    s->spans.count = 0;
    scene_bars *all = count > 0 ? clear_bars(s, in) : NULL;
    for (size_t i = 0; all && i < count; i++) {
        scene_bars *bars = spans[i].thread < catalog_thread_count(in->model->catalog) ? &all[spans[i].thread] : NULL;
        if (!bars || bars->lane == SCENE_NO_BOX)
            continue;
        uint32_t level = span_level(bars, &spans[i]); /* also of what is out of sight: nothing changes its level by coming into it */
        if (spans[i].begin_ns < s->end_ns && spans[i].end_ns > s->begin_ns)
            add_span(s, in, &spans[i], bars, level);
    }
}

/* When the selected call ends, or now. */
static uint64_t selected_end_ns(const scene_input *in, const focus_call *call)
{
    sim_span open;
    history_node ended;
    if (!call->is_open)
        return call->end_ns;
    if (view_open_frame(in->model, call->track, call->depth, &open) && open.begin_ns == call->begin_ns)
        return in->model->now_ns;
    bool has_ended = history_query(in->history, call->track, call->depth, call->begin_ns, call->begin_ns + 1, 0, &ended, 1) == 1;
    return has_ended && ended.begin_ns == call->begin_ns ? ended.end_ns : call->end_ns;
}

/* The row of the selected call, and x of its visible part. False: it is out of sight. */
static bool aim_selected(const scene *s, const scene_input *in, row *r, float x[2])
{
    const focus_call *call = &in->focus->call;
    const layout *l = in->layout;
    const layout_lane *lane = NULL;
    const catalog *c = in->model->catalog;
    for (size_t i = 0; i < l->lanes.count && !lane; i++)
        lane = l->lanes.items[i].thread == call->thread ? &l->lanes.items[i] : NULL;
    uint32_t fiber = lane ? catalog_thread_at(c, call->thread)->first_fiber : CATALOG_NONE;
    while (fiber != CATALOG_NONE && catalog_fiber_at(c, fiber)->track != call->track)
        fiber = catalog_fiber_at(c, fiber)->next;
    if (fiber == CATALOG_NONE)
        return false;
    float y_floor, row_height = layout_row_height(l, lane);
    *r = (row){.lane = lane, .track = call->track, .depth = call->depth};
    layout_sub(l, lane, l->fiber_subs.items[fiber], &r->z[0], &r->z[1], &y_floor);
    r->y[0] = mixf(y_floor + (float)call->depth * row_height, l->tallest + row_height, l->threads_share);
    r->y[1] = r->y[0] + row_height;
    if (!aim_row(s, in, r, r->y[0], r->y[1]) || !visible_part(in, r, call->begin_ns, selected_end_ns(in, call), &x[0], &x[1]))
        return false;
    x[1] = fmaxf(x[1], x[0] + units_of(r, SELECTED_LEAST_PX * in->scale));
    return true;
}

/* From above a frame about its part of the lane: it lies below the calls that it has made. */
static void add_selected_frame(scene *s, const row *r, const float x[2], float width)
{
    const float sides[4][2][2] = {{{x[0], x[1]}, {r->z[1] - width, r->z[1]}}, {{x[0], x[1]}, {r->z[0], r->z[0] + width}},
                                  {{x[0], x[0] + width}, {r->z[0], r->z[1]}}, {{x[1] - width, x[1]}, {r->z[0], r->z[1]}}};
    for (int i = 0; i < 4; i++)
        add_plain(s, sides[i][0], r->y, sides[i][1], PALETTE_ACCENT);
}

/* The place of the call that is selected, where its box isn't seen as such: from above, and where it is folded. */
static void add_selected(scene *s, const scene_input *in)
{
    row r;
    float x[2];
    bool is_from_above = in->layout->threads_share > 0.5f;
    if (!in->focus || !in->focus->call.is_set || (s->has_selected && !is_from_above) || !aim_selected(s, in, &r, x))
        return;
    float depth = r.z[1] - r.z[0], z[2] = {r.z[0], r.z[1] + 0.02f * depth};
    if (is_from_above)
        add_selected_frame(s, &r, x, fminf(units_of(&r, SELECTED_PX * in->scale), 0.3f * depth));
    else
        add_plain(s, x, r.y, z, PALETTE_ACCENT);
}

/* Lines across the floor, or behind the flame chart, at the ticks of the time axis. */
static void add_grid(scene *s, const scene_input *in)
{
    const layout *l = in->layout;
    int64_t tick_ns;
    uint64_t step_ns;
    scene_ticks(in, s->begin_ns, &tick_ns, &step_ns);
    float y[2] = {mixf(FLOOR_Y - 0.002f, l->y_low, l->flame), mixf(FLOOR_Y + 0.006f, l->y_high, l->flame)};
    float z[2] = {mixf(-0.15f, -0.3f, l->flame), mixf(l->z_end + 0.25f, -0.2f, l->flame)};
    for (int i = 0; i < 64; i++, tick_ns += (int64_t)step_ns) {
        uint64_t at_ns = in->begin_ns + (uint64_t)tick_ns;
        if (at_ns > s->end_ns)
            break;
        float middle[3] = {scene_x(in, at_ns), y[0], 0.5f * z[1]};
        float half = 0.6f * in->scale / fmaxf(camera_px_per_x(in->camera, middle), 0.1f);
        float x[2] = {middle[0] - half, middle[0] + half};
        add_plain(s, x, y, z, PALETTE_GRID);
    }
}

static void add_glass(scene *s, const scene_input *in, const row *r, uint64_t begin_ns, uint64_t end_ns, uint32_t color, uint32_t id)
{
    float x0, x1;
    gpu_box *box;
    if (!visible_part(in, r, begin_ns, end_ns, &x0, &x1) || s->glass.count >= SCENE_GLASS_MAX || !(box = vec_push(&s->glass)))
        return;
    x1 = fmaxf(x1, x0 + units_of(r, 1.5f * in->scale)); /* a pause is never too short to be seen */
    *box = (gpu_box){.low = {x0, r->y[0], r->z[0]}, .high = {x1, r->y[1], r->z[1]}, .color = color, .id = id};
}

/* Its id, for the pane; 0: memory is out. */
static uint32_t add_pause(scene *s, const row *r, const history_node *node, bool is_open)
{
    scene_pause *pause = vec_push(&s->pauses);
    if (!pause)
        return 0;
    *pause = (scene_pause){.ref = ref_of(r, node), .mark = SCENE_NO_BOX};
    pause->ref.kind = VIEW_BOX_GC;
    pause->ref.is_open = is_open;
    return (uint32_t)s->pauses.count;
}

/* s->nodes[0, n): what of the row is in sight, coarser until it is less than max. */
static size_t ask_pauses(scene *s, const scene_input *in, const row *r, size_t max)
{
    uint64_t finest = resolution_ns(in, r, r->x[0], r->x[1], 1.5f), enough = rounded_resolution((double)(r->ns[1] - r->ns[0]) / (double)(4 * max));
    for (uint64_t resolution = finest > enough ? finest : enough;; resolution *= 2) {
        size_t count = history_query_cells(in->history, r->track, 0, asked_from(r->ns[0], resolution), asked_to(r->ns[1], resolution), resolution,
                                           s->nodes, SCENE_NODES);
        if (count < max)
            return count;
    }
}

/* The same in front of the group's last lane, opaque: readable where panes are many and therefore faint. Folded ones are as
 * high, from above as deep, as the share of the time that is GC. */
static void add_gc_mark(scene *s, const scene_input *in, const row *panes, const history_node *node)
{
    const layout *l = in->layout;
    float x[2], busy = history_busy_share(node), share = fmaxf(busy, MARK_SHARE_MIN), y_low = panes->y[0] + mixf(0.01f, -0.04f * l->row_height, l->flame);
    float y[2] = {y_low, y_low + mixf(0.05f, 0.22f * l->row_height, l->flame) * mixf(share, 1, l->threads_share)};
    float z_high = panes->z[1] + 0.10f * l->pitch, z[2] = {z_high - 0.09f * l->pitch * mixf(1, share, l->threads_share), z_high};
    if (!visible_part(in, panes, node->begin_ns, node->end_ns, &x[0], &x[1]))
        return;
    x[1] = fmaxf(x[1], x[0] + units_of(panes, 1.5f * in->scale));
    uint32_t id = add_pause(s, panes, node, false), color = palette_mix(PALETTE_LANE, PALETTE_GC, 0.35f + 0.65f * busy);
    size_t boxes = s->boxes.count;
    add_plain(s, x, y, z, palette_under_light(color, 1 - l->flame));
    if (id && s->boxes.count > boxes)
        s->pauses.items[id - 1].mark = (uint32_t)boxes;
}

/* What GC takes of the time that is in sight, by s->nodes[0, count). */
static float pause_share(const scene *s, const row *r, size_t count)
{
    uint64_t busy_ns = 0, all_ns = r->ns[1] - r->ns[0];
    for (size_t i = 0; i < count; i++)
        busy_ns += s->nodes[i].end_ns > r->ns[0] && s->nodes[i].begin_ns < r->ns[1] ? s->nodes[i].busy_ns : 0;
    return all_ns ? fminf((float)((double)busy_ns / (double)all_ns), 1) : 0;
}

/* Finer than panes, which cover many pixels each: a mark that stands for pauses far from each other says that all is GC. Returns
 * what GC takes of the time in sight. */
static float add_gc_marks(scene *s, const scene_input *in, const row *panes)
{
    size_t most = s->budget / 4 / catalog_process_count(in->model->catalog);
    size_t count = ask_pauses(s, in, panes, most < GLASS_MIN ? GLASS_MIN : most > SCENE_NODES ? SCENE_NODES : most);
    for (size_t i = 0; i < count; i++)
        add_gc_mark(s, in, panes, &s->nodes[i]);
    return pause_share(s, panes, count);
}

/* Panes that a ray crosses beside its first one, for each pane: seen from the side they lie behind each other. */
static float layers_a_pane(const scene_input *in, const row *r)
{
    float aslant = tanf(fabsf(in->pose->yaw_rad)) + 0.25f;
    return (1 - in->pose->flatness) * (r->z[1] - r->z[0]) * aslant / (float)CAMERA_FILM;
}

/* How much panes behind each other may hide together: it follows the share of the time that they stand for. */
static float glass_sum(const scene_input *in, float share)
{
    return mixf(fminf(GLASS_SUM_LEAST + GLASS_SUM_A_SHARE * share, GLASS_ALPHA_SUM), GLASS_ALPHA_FLAT, in->pose->flatness);
}

/* So many that none is too faint to be drawn. */
static size_t panes_max(const scene *s, const scene_input *in, const row *r, float sum)
{
    size_t most = s->budget / BOXES_PER_PANE;
    most = most < GLASS_MIN ? GLASS_MIN : most > GLASS_MAX ? GLASS_MAX : most;
    float layers = logf(1 - sum) / logf(1 - GLASS_ALPHA_MIN), count = (layers - 1) / fmaxf(layers_a_pane(in, r), 1e-4f);
    return count < (float)most ? (size_t)fmaxf(count, GLASS_FEWEST) : most;
}

/* How much of what is drawn of a pane is GC. */
static float pane_share(const scene_input *in, const row *r, const history_node *node)
{
    float length = scene_x(in, node->end_ns) - scene_x(in, node->begin_ns), least = units_of(r, 1.5f * in->scale);
    return history_busy_share(node) * fminf(length / least, 1);
}

static void add_panes(scene *s, const scene_input *in, const row *r, float share)
{
    float sum = glass_sum(in, share);
    size_t count = ask_pauses(s, in, r, panes_max(s, in, r, sum));
    float alpha = 1 - powf(1 - sum, 1 / (1 + (float)count * layers_a_pane(in, r)));
    for (size_t i = 0; i < count; i++) {
        float its = pane_share(in, r, &s->nodes[i]), own = alpha * mixf(1, its, in->pose->flatness);
        own = clampf(own, fminf(GLASS_ALPHA_MIN, alpha), GLASS_ALPHA_MAX);
        /* In the scene, where its place says little, a pane that stands for several is as wide as their time. */
        uint64_t begin_ns = s->nodes[i].begin_ns, length_ns = s->nodes[i].end_ns - begin_ns;
        double wide = (double)mixf(history_busy_share(&s->nodes[i]), 1, in->pose->flatness);
        add_glass(s, in, r, begin_ns, begin_ns + (uint64_t)(wide * (double)length_ns), palette_alpha(PALETTE_GC, own), add_pause(s, r, &s->nodes[i], false));
    }
}

/* In the flame chart the group's lanes end below those of the one before. */
static float group_top(const layout *l, const layout_group *group)
{
    const layout_lane *first = &l->lanes.items[group->lane_begin];
    float above = group->lane_begin > 0 ? l->lanes.items[group->lane_begin - 1].y_floor - l->row_height : l->y_high;
    return fminf(first->y_floor + l->tallest, above);
}

/* A process's pauses lie across all lanes of its group, and of no other. */
static void add_gc(scene *s, const scene_input *in, const layout_group *group, uint32_t process)
{
    const layout *l = in->layout;
    uint32_t track = catalog_process_at(in->model->catalog, process)->gc_track;
    const layout_lane *first = &l->lanes.items[group->lane_begin], *last = &l->lanes.items[group->lane_end - 1];
    row r = {.lane = first, .track = track, .process = process};
    r.z[0] = first->z_begin;
    r.z[1] = last->z_end;
    r.y[0] = mixf(FLOOR_Y, last->y_floor - l->row_height, l->flame);
    r.y[1] = mixf(l->tallest * 1.06f + 0.12f, group_top(l, group), l->flame);
    if (track == SIM_TRACK_NONE || !aim_row(s, in, &r, r.y[0], r.y[1]))
        return;
    float share = add_gc_marks(s, in, &r);
    add_panes(s, in, &r, share);
    sim_span open;
    if (view_open_frame(in->model, track, 0, &open) && open.begin_ns < in->model->now_ns) {
        uint64_t length_ns = in->model->now_ns - open.begin_ns;
        history_node node = {.begin_ns = open.begin_ns, .end_ns = in->model->now_ns, .busy_ns = length_ns, .longest_ns = length_ns, .span_count = 1};
        add_glass(s, in, &r, open.begin_ns, in->model->now_ns, palette_alpha(PALETTE_GC, glass_sum(in, share)), add_pause(s, &r, &node, true));
    }
}

/* Over all lanes, and a little more. */
static void add_measure(scene *s, const scene_input *in)
{
    const layout *l = in->layout;
    row r = {.lane = l->lanes.items, .z = {-0.05f, l->z_end + 0.05f}};
    r.y[0] = mixf(FLOOR_Y, l->y_low, l->flame);
    r.y[1] = mixf(l->tallest * 1.06f + 0.12f, l->y_high, l->flame);
    if (in->measure_ns[0] < in->measure_ns[1] && l->lanes.count > 0 && aim_row(s, in, &r, r.y[0], r.y[1]))
        add_glass(s, in, &r, in->measure_ns[0], in->measure_ns[1], palette_alpha(PALETTE_ACCENT, MEASURE_ALPHA), 0);
}

static int farther_first(const void *a, const void *b, void *eye_x)
{
    const gpu_box *left = a, *right = b;
    float x = *(const float *)eye_x;
    float l = fabsf(0.5f * (left->low[0] + left->high[0]) - x), r = fabsf(0.5f * (right->low[0] + right->high[0]) - x);
    return l > r ? -1 : l < r;
}

static void add_all_glass(scene *s, const scene_input *in)
{
    layout *l = in->layout;
    s->pauses.count = 0;
    for (size_t g = 0; g < l->groups.count; g++) {
        const layout_group *group = &l->groups.items[g];
        for (uint32_t id = group->process; id != CATALOG_NONE; id = l->followers.items[id])
            add_gc(s, in, group, id);
    }
    add_measure(s, in);
    float eye_x = in->camera->is_parallel ? -1e4f * in->camera->forward[0] : in->camera->eye[0];
    qsort_r(s->glass.items, s->glass.count, sizeof *s->glass.items, farther_first, &eye_x);
}

static void build_once(scene *s, const scene_input *in)
{
    const layout *l = in->layout;
    s->boxes.count = s->glass.count = s->refs.count = s->labels.count = s->lane_ends.count = 0;
    s->row_count = 0;
    s->is_full = s->has_selected = false;
    scene_range(in, &s->begin_ns, &s->end_ns);
    for (size_t i = l->lanes.count; i-- > 0;)
        add_lane(s, in, &l->lanes.items[i]);
    for (size_t i = 0; i < s->boxes.count; i++)
        s->boxes.items[i].id = (uint32_t)i + 1;
}

/* Fewer boxes: calls are folded over more time. A picture that leaves levels of the stacks out lies about who calls whom: only where there are
 * more of them than a few boxes each rows stand for several. */
static void coarsen(scene *s)
{
    bool has_too_many_rows = (uint64_t)s->row_count * ROW_BOXES > s->budget;
    if (s->coarseness >= FOLD_FIRST && has_too_many_rows && s->level_stride < STRIDE_MAX)
        s->level_stride *= 2;
    else
        s->coarseness *= s->is_full ? 3.0f : clampf((float)s->boxes.count / (float)s->budget, 1.15f, 3.0f);
}

/* A little finer next time if there is room; the gap between the two bounds keeps it from swinging. Where finer was too much a moment
 * ago it stays as it is, while the picture stands still. */
static void refine(scene *s, bool was_too_much)
{
    bool is_elsewhere = s->limit.begin_ns != s->begin_ns || s->limit.end_ns != s->end_ns || s->budget > s->limit.budget + s->limit.budget / 8;
    if (was_too_much)
        s->limit.begin_ns = s->begin_ns, s->limit.end_ns = s->end_ns, s->limit.budget = s->budget;
    bool is_half_empty = s->boxes.count < s->budget * 2 / 5, has_room = is_half_empty || (s->boxes.count < s->budget * 4 / 5 && is_elsewhere && !was_too_much);
    bool has_levels = s->level_stride > 1 && (is_half_empty || (uint64_t)s->row_count * 2 * ROW_BOXES * 5 / 4 <= s->budget);
    s->gets_finer = has_levels || (has_room && s->coarseness > 1);
    if (has_levels)
        s->level_stride /= 2;
    else if (s->gets_finer)
        s->coarseness = fmaxf(1, s->coarseness * 0.97f);
}

void scene_build(scene *s, const scene_input *in)
{
    bool was_too_much = false;
    s->coarseness = fmaxf(s->coarseness, 1);
    s->level_stride += s->level_stride == 0;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        build_once(s, in);
        if (s->boxes.count <= s->budget && !s->is_full)
            break;
        was_too_much = true;
        if (attempt + 1 < ATTEMPTS)
            coarsen(s);
    }
    refine(s, was_too_much);
    add_spans(s, in);
    add_floors(s, in);
    add_selected(s, in);
    if (in->layout->lanes.count > 0)
        add_grid(s, in);
    if (s->glass.items || vec_reserve(&s->glass, SCENE_GLASS_MAX))
        add_all_glass(s, in);
}
