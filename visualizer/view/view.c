#include "view/view.h"

#include "base/mem.h"
#include "view/font.h"
#include "view/inspect.h"
#include "view/inspect_draw.h"
#include "view/layout.h"
#include "view/navigate.h"
#include "view/palette.h"
#include "view/panels.h"
#include "view/scene.h"
#include "view/strip.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define BUDGET_SOFTWARE 4000u /* boxes a CPU driver draws in some 30 ms at 720p */
#define BUDGET_HARDWARE 20000u
#define BUDGET_STILL 40000u /* a picture has time */
#define BUDGET_MIN 1500u /* below, a CPU driver's frame is hardly cheaper: its pixels cost more than its boxes */
#define BUDGET_MAX 120000u
#define TARGET_MS_SOFTWARE 40.0 /* 50 at most, see OVER */
#define TARGET_MS_HARDWARE 3.2
#define TARGET_MS_CPU 2.3 /* of view_build, under the model lock for the most part; 2.9 at most */
#define OVER 1.25 /* times the target: fewer boxes; between the two nothing changes, so that the picture stands still */
#define UNDER 0.85 /* … more */
#define HINT_S 12.0
#define HINT_FADE_S 2.0
#define SETTLE_ROUNDS 6 /* of a still or a first picture: the stack's height, the rows and the camera depend on each other */

struct view {
    view_desc desc;
    font *font; /* owned */
    nav nav;
    layout layout;
    scene scene;
    strip strip;
    float strip_px;       /* its height now; 0: there is none */
    quad_list quads;
    paint_taken taken;    /* by what lies over the picture in this frame */
    inspect inspect;
    uint64_t base_ns;     /* the session's begin: what relative times count from */
    bool has_base, has_range;
    double age_s;
    double budget;        /* boxes */
    double cost;          /* of the last frames, eased; 1: the target */
    uint64_t measure_ns[2]; /* as scene_input's */
    bool is_moving;
};

int view_new(view **out, const view_desc *desc)
{
    view *v = *out = mem_zalloc(1, sizeof *v);
    if (!v)
        return -ENOMEM;
    v->desc = *desc;
    if (v->desc.scale <= 0)
        v->desc.scale = 1;
    v->budget = desc->is_still ? BUDGET_STILL : desc->is_software ? BUDGET_SOFTWARE : BUDGET_HARDWARE;
    v->cost = 1;
    nav_init(&v->nav, desc->camera, v->desc.scale);
    inspect_init(&v->inspect, v->desc.scale);
    int error = font_new(&v->font);
    if (error) {
        view_delete(v);
        *out = NULL;
    }
    return error;
}

void view_delete(view *v)
{
    if (!v)
        return;
    inspect_free(&v->inspect);
    quad_list_free(&v->quads);
    scene_free(&v->scene);
    layout_free(&v->layout);
    font_delete(v->font);
    mem_free(v);
}

const char *view_font_problem(const view *v) { return font_problem(v->font); }

bool view_atlas(view *v, const uint8_t **pixels, uint32_t *width, uint32_t *height)
{
    return font_atlas(v->font, pixels, width, height);
}

bool view_input(view *v, const view_input_event *input)
{
    bool moves, sticks, changes;
    strip_input_range range;
    if (input->type == VIEW_INPUT_WHEEL && v->strip.is_shown && input->y_px >= v->strip.low_px[1]) {
        view_input_event middle = *input; /* the time under the pointer is not the film's there: zoom about what is in sight */
        middle.x_px = 0.5f * v->nav.camera.width_px;
        middle.y_px = 0.5f * v->nav.camera.height_px;
        return nav_input(&v->nav, &middle);
    }
    if (strip_input(&v->strip, input, &moves, &sticks, &range)) {
        if (moves)
            nav_show(&v->nav, range.begin_ns, range.end_ns, sticks);
        return moves;
    }
    bool is_taken = inspect_input(&v->inspect, input, &v->nav, &changes);
    return (!is_taken && nav_input(&v->nav, input)) || changes;
}

bool view_take_request(view *v, view_request *out) { return inspect_take_request(&v->inspect, out); }
void view_say(view *v, const char *line) { inspect_say(&v->inspect, line); }

/* The session begins with its first process, whose first events may be older than the moment when it was let in. */
static void find_base(view *v, const view_model *model)
{
    uint32_t count = catalog_process_count(model->catalog);
    uint64_t first_ns = v->has_base ? v->base_ns : UINT64_MAX;
    if (count == 0) {
        v->base_ns = model->now_ns;
        return;
    }
    for (uint32_t id = 0; id < count; id++) {
        const catalog_process *p = catalog_process_at(model->catalog, id);
        first_ns = p->begin_ns < first_ns ? p->begin_ns : first_ns;
        if (p->first_thread == CATALOG_NONE)
            continue;
        uint64_t thread_ns = catalog_thread_at(model->catalog, p->first_thread)->begin_ns; /* a process's clock is found out by and by */
        first_ns = thread_ns < first_ns ? thread_ns : first_ns;
    }
    first_ns = model->begin_ns ? model->begin_ns : first_ns; /* as reports of it do */
    bool had_base = v->has_base;
    if (had_base && first_ns < v->base_ns)
        nav_shift(&v->nav, (double)(v->base_ns - first_ns));
    v->base_ns = first_ns;
    v->has_base = true;
    if (had_base)
        return;
    if (v->desc.end_ns > v->desc.begin_ns)
        nav_show(&v->nav, (double)(int64_t)(v->desc.begin_ns - v->base_ns), (double)(int64_t)(v->desc.end_ns - v->base_ns), true);
}

static double relative(const view *v, uint64_t time_ns) { return (double)(int64_t)(time_ns - v->base_ns); }

static void build_boxes(view *v, const view_model *model, const view_status *status, uint32_t width_px, uint32_t height_px,
                        double time_s, scene_input *in)
{
    float scale = v->desc.scale;
    nav_scene measures = {.z_end = v->layout.z_end, .y_low = v->layout.y_low, .y_high = v->layout.y_high, .strip_px = v->strip_px,
                          .panel_px = v->desc.is_still ? 0 : inspect_panel_px(&v->inspect, (float)width_px)};
    nav_step(&v->nav, &measures, relative(v, model->now_ns), status->ended, time_s, width_px, height_px);
    *in = (scene_input){.model = model, .camera = &v->nav.camera, .pose = &v->nav.pose, .layout = &v->layout,
                        .base_ns = v->base_ns, .begin_ns = v->base_ns, .scale = scale, .focus = &v->inspect.focus, .tint = v->inspect.tint,
                        .measure_ns = {v->measure_ns[0], v->measure_ns[1]}};
    layout_desc desc = {.flame = v->nav.flame, .threads = v->nav.threads, .row_px = 15 * scale, .lane_px = 26 * scale, .stretch = v->nav.stretch,
                        .units_per_px = nav_units_per_px(nav_free_px(&v->nav, width_px), scale), .time_s = time_s};
    desc.free_height_px = fmaxf((float)height_px - (PANELS_TOP_PX + PANELS_BOTTOM_PX) * scale - v->strip_px, 32);
    scene_range(in, &desc.begin_ns, &desc.end_ns);
    bool is_within = model->detail && model->detail_begin_ns <= desc.begin_ns && desc.end_ns <= model->detail_end_ns;
    in->history = is_within ? model->detail : model->history;
    layout_update(&v->layout, model->catalog, &desc);
    v->scene.budget = (uint32_t)v->budget;
    scene_build(&v->scene, in);
    v->is_moving = v->nav.is_moving || v->layout.is_moving || v->scene.gets_finer;
}

static float hint_alpha(const view *v)
{
    if (v->desc.is_still)
        return 0;
    return (float)fmin(fmax((HINT_S + HINT_FADE_S - v->age_s) / HINT_FADE_S, 0), 1);
}

static void fill_frame(const view *v, gpu_frame *out)
{
    const camera *c = &v->nav.camera;
    *out = (gpu_frame){.is_orthographic = c->is_parallel, .background = PALETTE_BACKGROUND};
    memcpy(out->view_projection, c->view_projection, sizeof out->view_projection);
    memcpy(out->eye, c->eye, sizeof out->eye);
    memcpy(out->eye_direction, c->forward, sizeof out->eye_direction);
    if (!c->is_parallel && v->nav.pose.flatness < 0.01f) {
        float distance = glm_vec3_distance((float *)c->eye, (float *)v->nav.pose.target);
        out->fog_begin = distance + 4;
        out->fog_end = distance + 40;
    }
    out->boxes = v->scene.boxes.items;
    out->box_count = v->scene.boxes.count;
    out->glass = v->scene.glass.items;
    out->glass_count = v->scene.glass.count;
    out->quads = v->quads.items;
    out->quad_count = v->quads.count;
}

static void draw_strip(view *v, const view_model *model, uint32_t width_px, uint32_t height_px)
{
    if (v->strip_px == 0) {
        strip_hide(&v->strip);
        return;
    }
    const camera_pose *pose = &v->nav.pose;
    strip_draw(&v->strip, &(strip_picture){.model = model, .begin_ns = v->base_ns, .width_px = (float)width_px, .height_px = (float)height_px,
                                           .frame_begin_ns = pose->center_ns - 0.5 * pose->window_ns, .scale = v->desc.scale,
                                           .frame_end_ns = pose->center_ns + 0.5 * pose->window_ns, .is_live = v->nav.is_following,
                                           .marks = v->inspect.marks, .mark_count = v->inspect.mark_count},
               v->font, &v->quads);
}

void view_build(view *v, const view_model *model, const view_status *status, uint32_t width_px, uint32_t height_px,
                double frame_time_s, gpu_frame *out)
{
    scene_input in;
    find_base(v, model);
    v->age_s += frame_time_s;
    inspect_begin(&v->inspect, model);
    inspect_measured(&v->inspect, v->base_ns, v->measure_ns);
    bool is_at_once = v->desc.is_still || !v->has_range;
    v->strip_px = v->desc.is_still ? 0 : strip_height(v->desc.scale, height_px); /* pictures are of what was asked for alone */
    for (int i = 0; i < (is_at_once ? SETTLE_ROUNDS : 1); i++)
        build_boxes(v, model, status, width_px, height_px, is_at_once ? INFINITY : frame_time_s, &in);
    v->has_range = v->layout.lanes.count > 0;
    v->quads.count = 0;
    scene_draw_labels(&v->scene, &in, v->font, &v->quads);
    paint p = {.f = v->font, .out = &v->quads, .scale = v->desc.scale, .width_px = (float)width_px, .height_px = (float)height_px};
    panels_input panels = {.scene = &in, .built = &v->scene, .status = status,
                           .is_paused = view_is_paused(v) && !v->desc.is_still && !status->ended,
                           .is_live = !status->ended && v->nav.is_following, .is_still = v->desc.is_still, .hint_alpha = hint_alpha(v),
                           .strip_px = v->strip_px, .find_px = inspect_find_px(&v->inspect),
                           .panel_px = v->desc.is_still ? 0 : inspect_panel_px(&v->inspect, (float)width_px), .taken = &v->taken};
    v->taken.count = 0;
    v->inspect.bottom_px = v->strip_px;
    if (!v->desc.is_still)
        panels.said = inspect_line_place(&v->inspect, &p);
    draw_strip(v, model, width_px, height_px);
    v->inspect.top_px = panels_draw(&panels, v->font, &v->quads);
    if (v->layout.lanes.count > 0)
        inspect_draw_notes(&v->inspect, &v->scene, &in, &p, &v->taken);
    if (v->nav.has_help)
        panels_draw_help(&panels, v->font, &v->quads);
    if (!v->desc.is_still)
        inspect_end(&v->inspect, &v->nav, &v->scene, &in, &p, frame_time_s);
    fill_frame(v, out);
}

void view_frame_cost(view *v, double frame_ms, double cpu_ms)
{
    double share = frame_ms / (v->desc.is_software ? TARGET_MS_SOFTWARE : TARGET_MS_HARDWARE);
    share = fmax(share, cpu_ms / TARGET_MS_CPU);
    v->cost += 0.2 * (fmin(share, 2) - v->cost); /* one slow frame says nothing */
    /* Slow to give, quick to take: a frame that is late is worse than one that is a little coarser. */
    if (v->cost > OVER)
        v->budget *= 0.93;
    else if (v->cost < UNDER && v->scene.coarseness > 1)
        v->budget *= 1.03;
    v->budget = fmin(fmax(v->budget, BUDGET_MIN), BUDGET_MAX);
}

bool view_is_moving(const view *v)
{
    return v->is_moving || v->inspect.is_moving || (!v->desc.is_still && v->age_s > HINT_S && v->age_s < HINT_S + HINT_FADE_S);
}

bool view_is_paused(const view *v) { return !v->nav.is_following; }
view_camera view_camera_of(const view *v) { return v->nav.mode; }
bool view_wants_quit(const view *v) { return v->nav.wants_quit; }

void view_range(const view *v, uint64_t *begin_ns, uint64_t *end_ns)
{
    *begin_ns = v->has_range ? v->scene.begin_ns : 0;
    *end_ns = v->has_range ? v->scene.end_ns : 0;
}

bool view_hover(const view *v, view_box_ref *out)
{
    *out = v->inspect.tip.ref;
    return v->inspect.has_tip;
}

bool view_box_of(const view *v, uint32_t id, view_box_ref *out)
{
    if (id == 0 || id > v->scene.refs.count)
        return false;
    *out = v->scene.refs.items[id - 1];
    return true;
}
