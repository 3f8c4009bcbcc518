#include "view/navigate.h"

#include "view/panels.h"

#include <math.h>
#include <string.h>

#define SCENE_YAW_RAD 0.38f
#define SCENE_PITCH_RAD 0.44f
#define TURN_RAD_PER_PX 0.0035f /* a third of a turn for a screen of 600 px: enough, and fine enough to aim */
#define WHEEL_ZOOM 0.20      /* per notch: four notches double */
#define KEY_ZOOM_PER_S 1.8
#define KEY_MOVE_PER_S 0.7   /* windows */
#define KEY_PAN_PER_S 0.5f   /* screen widths */
#define KEY_PAN_CHART_PER_S 1.1f /* … in the charts, where it goes from thread to thread: a tap moves a seventh of the height */
#define STRETCH_MIN 0.25f
#define STRETCH_MAX 32.0f
#define FINE 0.25
#define FAST 4.0
#define LEAST_LIVE_NS 1e8    /* what now is shown in, after a closer look: a live film would be a blur, … */
#define LEAST_ENDED_NS 1e6   /* … and a program's last moments may well be empty */
#define NOW_MARGIN 0.012     /* of the window, right of now */

void nav_init(nav *n, view_camera mode, float scale)
{
    *n = (nav){.mode = mode, .scale = scale, .is_following = true, .yaw_rad = SCENE_YAW_RAD, .pitch_rad = SCENE_PITCH_RAD,
               .stretch = 1, .stretch_goal = 1};
    n->goal = (camera_pose){.window_ns = NAV_WINDOW_FIRST_NS, .width = 20};
    n->pose = n->goal;
}

/* A key that was pressed and released between two frames counts for this long. */
#define KEY_TAP_S 0.1

static bool is_down(const nav *n, view_key a, view_key b)
{
    return n->is_held[a] || n->is_held[b] || n->is_tapped[a] || n->is_tapped[b];
}

static double speed(const nav *n)
{
    return n->modifiers & VIEW_MOD_SHIFT ? FAST : n->modifiers & VIEW_MOD_CTRL ? FINE : 1;
}

static double live_center(double now_ns, double window_ns) { return now_ns - window_ns * (0.5 - NOW_MARGIN); }

static void follow(nav *n)
{
    n->is_following = true;
    n->goal.center_ns = live_center(n->now_ns, n->goal.window_ns);
}

/* Back at the end after a close look elsewhere: the last microseconds would be empty, or fly past. */
static void widen(nav *n)
{
    double least_ns = n->has_ended ? LEAST_ENDED_NS : LEAST_LIVE_NS;
    if (n->goal.window_ns < least_ns && n->now_ns > least_ns)
        n->goal.window_ns = fmin(n->now_ns * (1 + 2 * NOW_MARGIN), NAV_WINDOW_LIVE_NS);
}

/* … as asked for: keys that were tapped before are done with, or they would move away from there again. */
static void return_to_now(nav *n)
{
    memset(n->is_tapped, 0, sizeof n->is_tapped);
    widen(n);
    follow(n);
}

static void fit_all(nav *n)
{
    n->goal.window_ns = fmax(n->now_ns * (1 + 2 * NOW_MARGIN), 1e4);
    camera_limit(&n->goal);
    follow(n);
}

void nav_show(nav *n, double begin_ns, double end_ns, bool is_at_once)
{
    n->goal.window_ns = fmax(end_ns - begin_ns, CAMERA_WINDOW_MIN_NS);
    camera_limit(&n->goal);
    n->goal.center_ns = 0.5 * (begin_ns + end_ns);
    if (is_at_once) {
        n->pose.window_ns = n->goal.window_ns;
        n->pose.center_ns = n->goal.center_ns;
    }
    n->is_following = false;
    n->has_chosen = true;
}

void nav_shift(nav *n, double by_ns)
{
    n->pose.center_ns += by_ns;
    n->goal.center_ns += by_ns;
    n->now_ns += by_ns;
}

static void set_mode(nav *n, view_camera mode)
{
    if (mode == VIEW_CAMERA_SCENE && n->mode == VIEW_CAMERA_SCENE) {
        n->yaw_rad = SCENE_YAW_RAD; /* asked for again: as it was at first */
        n->pitch_rad = SCENE_PITCH_RAD;
    }
    n->mode = mode;
    memset(n->pan, 0, sizeof n->pan);
}

static void reset(nav *n)
{
    set_mode(n, n->mode);
    n->yaw_rad = SCENE_YAW_RAD;
    n->pitch_rad = SCENE_PITCH_RAD;
    n->stretch_goal = 1;
    n->has_chosen = false;
    n->goal.window_ns = NAV_WINDOW_LIVE_NS;
    if (n->has_ended && n->now_ns <= NAV_FIT_ENDED_NS)
        fit_all(n);
    else
        follow(n);
}

/* Move in time by ns; now and the begin stay in sight. drag: pose as well, at once. */
static void move_time(nav *n, double by_ns, bool is_drag)
{
    n->is_following = false;
    n->has_chosen = true;
    double half = 0.5 * n->goal.window_ns, before = n->goal.center_ns;
    n->goal.center_ns = fmin(fmax(before + by_ns, -0.8 * half), n->now_ns + 0.8 * half);
    if (is_drag)
        n->pose.center_ns += n->goal.center_ns - before;
}

/* About the time at a pointer; beside the film: about the end that is nearer. */
static void zoom_at(nav *n, double factor, double x)
{
    double time_ns = fmin(fmax(camera_time(&n->pose, x), 0), n->now_ns);
    x = camera_x(&n->pose, time_ns);
    n->is_following = false;
    n->goal.window_ns *= factor;
    camera_limit(&n->goal);
    n->goal.center_ns = time_ns - x / CAMERA_FILM * n->goal.window_ns;
}

static void zoom(nav *n, double factor, bool about_pointer, float x_px, float y_px)
{
    double x;
    n->has_chosen = true;
    if (n->is_following && !n->has_ended) { /* zooming keeps following: about now */
        n->goal.window_ns *= factor;
        camera_limit(&n->goal);
        follow(n);
    } else if (about_pointer && camera_film_x(&n->camera, x_px, y_px, n->scene.z_end, &x)) {
        zoom_at(n, factor, x);
    } else {
        n->is_following = false;
        camera_zoom_at(&n->goal, 0, factor);
    }
}

static bool press(nav *n, view_key key)
{
    switch (key) {
    case VIEW_KEY_SPACE:
        if (!n->is_following)
            return_to_now(n);
        else if (n->has_ended)
            return false; /* nothing moves that could be stopped */
        else
            n->is_following = false;
        return true;
    case VIEW_KEY_L:
    case VIEW_KEY_END: return_to_now(n); return true;
    case VIEW_KEY_HOME:
    case VIEW_KEY_0: reset(n); return true;
    case VIEW_KEY_1: set_mode(n, VIEW_CAMERA_SCENE); return true;
    case VIEW_KEY_2: set_mode(n, VIEW_CAMERA_FLAME); return true;
    case VIEW_KEY_3: set_mode(n, VIEW_CAMERA_THREADS); return true;
    case VIEW_KEY_F:
        n->has_chosen = true;
        memset(n->pan, 0, sizeof n->pan);
        fit_all(n);
        return true;
    case VIEW_KEY_HELP: n->has_help = !n->has_help; return true;
    case VIEW_KEY_ESC:
        if (!n->has_help)
            return false;
        n->has_help = false;
        return true;
    case VIEW_KEY_Q:
        n->wants_quit |= (n->modifiers & VIEW_MOD_CTRL) != 0;
        return n->wants_quit;
    default: return key != VIEW_KEY_NONE && key < VIEW_KEY_COUNT; /* held keys move in nav_step */
    }
}

static nav_drag drag_of(const nav *n, view_button button)
{
    bool has_shift = n->modifiers & VIEW_MOD_SHIFT, has_alt = n->modifiers & VIEW_MOD_ALT;
    switch (button) {
    case VIEW_BUTTON_RIGHT: return NAV_DRAG_TIME;
    case VIEW_BUTTON_MIDDLE: return has_shift ? NAV_DRAG_PAN : NAV_DRAG_TURN;
    case VIEW_BUTTON_LEFT:
        if (has_alt)
            return has_shift ? NAV_DRAG_PAN : NAV_DRAG_TURN;
        return n->mode == VIEW_CAMERA_SCENE ? NAV_DRAG_TURN : NAV_DRAG_CHART;
    default: return NAV_DRAG_NONE;
    }
}

static void pan_by(nav *n, float right_px, float down_px)
{
    float units_per_px = n->pose.width / fmaxf(n->camera.width_px, 1);
    for (int i = 0; i < 3; i++) {
        float by = (-right_px * n->camera.right[i] + down_px * n->camera.up[i]) * units_per_px;
        n->pan[i] += by;
        n->pose.target[i] += by;
        n->goal.target[i] += by;
    }
}

static void turn_by(nav *n, float right_px, float down_px)
{
    if (n->mode != VIEW_CAMERA_SCENE) { /* turning leaves the chart, from where it stands */
        n->yaw_rad = n->pose.yaw_rad;
        n->pitch_rad = n->pose.pitch_rad;
        set_mode(n, VIEW_CAMERA_SCENE);
    }
    camera_pose turned = {.window_ns = 1e9, .width = 10};
    turned.yaw_rad = n->yaw_rad - right_px * TURN_RAD_PER_PX / n->scale;
    turned.pitch_rad = n->pitch_rad + down_px * TURN_RAD_PER_PX / n->scale;
    camera_limit(&turned);
    n->pose.yaw_rad += turned.yaw_rad - n->yaw_rad;
    n->pose.pitch_rad += turned.pitch_rad - n->pitch_rad;
    n->goal.yaw_rad = n->yaw_rad = turned.yaw_rad;
    n->goal.pitch_rad = n->pitch_rad = turned.pitch_rad;
}

static bool drag_to(nav *n, float x_px, float y_px)
{
    double from, to;
    float right_px = x_px - n->x_px, down_px = y_px - n->y_px;
    switch (n->drag) {
    case NAV_DRAG_NONE: return false;
    case NAV_DRAG_TURN: turn_by(n, right_px, down_px); return true;
    case NAV_DRAG_PAN: pan_by(n, right_px, down_px); return true;
    case NAV_DRAG_CHART: pan_by(n, 0, down_px); /* fall through */
    case NAV_DRAG_TIME:
        if (right_px != 0 && camera_film_x(&n->camera, n->x_px, n->y_px, n->scene.z_end, &from) &&
            camera_film_x(&n->camera, x_px, n->y_px, n->scene.z_end, &to))
            move_time(n, (from - to) / CAMERA_FILM * n->pose.window_ns, true);
        return true;
    }
    return false;
}

static bool wheel(nav *n, const view_input_event *e)
{
    double notches = (double)e->wheel_y;
    if (n->modifiers & VIEW_MOD_ALT) {
        n->stretch_goal = fminf(fmaxf(n->stretch_goal * (float)exp(notches * WHEEL_ZOOM), STRETCH_MIN), STRETCH_MAX);
        return notches != 0;
    }
    if (notches == 0 && (n->modifiers & VIEW_MOD_SHIFT))
        notches = (double)e->wheel_x; /* some systems turn the wheel sideways while Shift is held */
    else if (e->wheel_x != 0)
        move_time(n, (double)e->wheel_x * 0.08 * n->goal.window_ns, false);
    if (notches != 0)
        zoom(n, exp(-notches * WHEEL_ZOOM * speed(n)), true, e->x_px, e->y_px);
    return notches != 0 || e->wheel_x != 0;
}

bool nav_input(nav *n, const view_input_event *e)
{
    bool changes = false;
    if (e->type != VIEW_INPUT_RESIZE)
        n->modifiers = e->modifiers;
    switch (e->type) {
    case VIEW_INPUT_KEY:
        if (e->key >= VIEW_KEY_COUNT)
            return false;
        changes = e->is_down && press(n, e->key);
        n->is_held[e->key] = e->is_down && !(e->modifiers & VIEW_MOD_CTRL && e->key == VIEW_KEY_Q);
        n->is_tapped[e->key] |= n->is_held[e->key];
        return changes;
    case VIEW_INPUT_BUTTON:
        if (e->is_down && n->drag == NAV_DRAG_NONE) {
            n->drag = drag_of(n, e->button);
            n->drag_button = e->button;
        } else if (!e->is_down && e->button == n->drag_button) {
            n->drag = NAV_DRAG_NONE;
        }
        break;
    case VIEW_INPUT_MOVE: changes = drag_to(n, e->x_px, e->y_px); break;
    case VIEW_INPUT_WHEEL: return wheel(n, e);
    case VIEW_INPUT_TEXT: return false; /* inspect.h has seen it */
    case VIEW_INPUT_RESIZE: return true;
    case VIEW_INPUT_LEAVE:
        memset(n->is_held, 0, sizeof n->is_held);
        n->drag = NAV_DRAG_NONE;
        return false;
    }
    n->x_px = e->x_px;
    n->y_px = e->y_px;
    return changes;
}

static void move_by_keys(nav *n, double time_s)
{
    double later = (is_down(n, VIEW_KEY_D, VIEW_KEY_RIGHT) ? 1 : 0) - (is_down(n, VIEW_KEY_A, VIEW_KEY_LEFT) ? 1 : 0);
    double closer = (is_down(n, VIEW_KEY_W, VIEW_KEY_W) ? 1 : 0) - (is_down(n, VIEW_KEY_S, VIEW_KEY_S) ? 1 : 0);
    float up = (is_down(n, VIEW_KEY_UP, VIEW_KEY_UP) ? 1.0f : 0.0f) - (is_down(n, VIEW_KEY_DOWN, VIEW_KEY_DOWN) ? 1.0f : 0.0f);
    for (int key = 0; key < VIEW_KEY_COUNT; key++)
        if (n->is_tapped[key] && !n->is_held[key] && time_s < KEY_TAP_S)
            time_s = KEY_TAP_S;
    memset(n->is_tapped, 0, sizeof n->is_tapped);
    if (later != 0)
        move_time(n, later * KEY_MOVE_PER_S * speed(n) * time_s * n->goal.window_ns, false);
    if (closer != 0)
        zoom(n, exp(-closer * KEY_ZOOM_PER_S * speed(n) * time_s), false, 0, 0);
    if (up != 0)
        pan_by(n, 0, up * (n->mode == VIEW_CAMERA_SCENE ? KEY_PAN_PER_S : KEY_PAN_CHART_PER_S) * (float)(speed(n) * time_s) * n->camera.width_px);
    n->is_moving |= later != 0 || closer != 0 || up != 0;
}

float nav_units_per_px(uint32_t width_px, float scale)
{
    float free_px = fmaxf((float)width_px - 2 * PANELS_SIDE_PX * scale, 64);
    return (float)CAMERA_FILM / free_px;
}

uint32_t nav_free_px(const nav *n, uint32_t width_px) { return width_px > (uint32_t)n->side_px ? width_px - (uint32_t)n->side_px : 1; }

/* The newest of a live program is not to be hidden; what stands still stays where it is until the panel is closed. */
static void choose_side(nav *n)
{
    if (n->scene.panel_px == 0 || (n->is_following && !n->has_ended))
        n->side_px = n->scene.panel_px;
}

/* Where each camera stands, from the scene's measures and what the user has done. */
static void aim(nav *n, uint32_t width_px, uint32_t height_px)
{
    camera_pose *goal = &n->goal;
    float half_film = 0.5f * (float)CAMERA_FILM, top = PANELS_TOP_PX * n->scale, bottom = PANELS_BOTTOM_PX * n->scale + n->scene.strip_px;
    float units_per_px = nav_units_per_px(nav_free_px(n, width_px), n->scale), half_height_px = 0.5f * (float)height_px;
    goal->flatness = n->mode == VIEW_CAMERA_SCENE ? 0 : 1;
    if (n->mode == VIEW_CAMERA_SCENE) {
        camera_margins margins = {PANELS_SIDE_PX * n->scale, PANELS_SIDE_PX * n->scale + n->side_px, top, bottom};
        float low[3] = {-half_film, 0, 0}, high[3] = {half_film, fmaxf(n->scene.y_high, 0.4f), n->scene.z_end + 0.4f};
        /* Fitted at the usual angles, so that turning does not also zoom. */
        camera_pose usual = {.window_ns = 1e9, .yaw_rad = SCENE_YAW_RAD, .pitch_rad = SCENE_PITCH_RAD, .width = 20};
        camera_fit(&usual, low, high, &margins, width_px, height_px);
        goal->width = usual.width;
        glm_vec3_copy(usual.target, goal->target);
        goal->yaw_rad = n->yaw_rad;
        goal->pitch_rad = n->pitch_rad;
    } else {
        goal->width = units_per_px * (float)width_px;
        goal->yaw_rad = 0;
        goal->target[0] = 0.5f * n->side_px * units_per_px;
        if (n->mode == VIEW_CAMERA_FLAME) { /* the first lane's top right under the title */
            goal->pitch_rad = 0;
            goal->target[1] = n->scene.y_high - (half_height_px - top) * units_per_px;
            goal->target[2] = 0.5f * n->scene.z_end;
        } else {
            goal->pitch_rad = CAMERA_PITCH_MAX_RAD;
            goal->target[1] = 0;
            goal->target[2] = (half_height_px - top) * units_per_px;
        }
    }
    for (int i = 0; i < 3; i++)
        goal->target[i] += n->pan[i];
}

static void choose_window(nav *n)
{
    if (n->has_chosen || (n->is_set && !n->is_following)) /* what stands still stays, also when the program ends */
        return;
    if (!n->has_ended)
        n->goal.window_ns = fmin(fmax(n->now_ns * 1.1, NAV_WINDOW_FIRST_NS), NAV_WINDOW_LIVE_NS);
    else if (n->now_ns <= NAV_FIT_ENDED_NS || !n->is_set)
        n->goal.window_ns = fmax(n->now_ns * (1 + 2 * NOW_MARGIN), 1e4);
    camera_limit(&n->goal);
}

void nav_step(nav *n, const nav_scene *measures, double now_ns, bool has_ended, double time_s, uint32_t width_px, uint32_t height_px)
{
    bool is_at_once = !n->is_set || isinf(time_s);
    double advance_ns = now_ns - n->now_ns;
    n->scene = *measures;
    n->now_ns = now_ns;
    bool ends = has_ended && !n->has_ended && n->is_set;
    n->has_ended = has_ended;
    if (ends && n->is_following)
        widen(n);
    n->is_moving = false;
    choose_window(n);
    choose_side(n);
    if (!isinf(time_s))
        move_by_keys(n, time_s);
    if (n->is_following) {
        n->pose.center_ns += advance_ns; /* the film itself does not ease: it flows */
        n->goal.center_ns = live_center(now_ns, n->goal.window_ns);
    }
    aim(n, width_px, height_px);
    float flame = n->mode == VIEW_CAMERA_FLAME, threads = n->mode == VIEW_CAMERA_THREADS;
    if (is_at_once) {
        n->pose = n->goal;
        n->stretch = n->stretch_goal;
        n->flame = flame;
        n->threads = threads;
    } else {
        n->is_moving |= fabsf(n->stretch_goal / n->stretch - 1) > 1e-3f;
        n->stretch += (n->stretch_goal - n->stretch) * (float)(1 - exp(-time_s / NAV_TAU_S));
        bool is_changing = n->flame != flame || n->threads != threads;
        float share = (float)(1 - exp(-time_s / NAV_MODE_TAU_S));
        n->flame = fabsf(flame - n->flame) < 2e-3f ? flame : n->flame + (flame - n->flame) * share;
        n->threads = fabsf(threads - n->threads) < 2e-3f ? threads : n->threads + (threads - n->threads) * share;
        n->is_moving |= camera_ease(&n->pose, &n->goal, time_s, is_changing ? NAV_MODE_TAU_S : NAV_TAU_S) || is_changing;
    }
    n->is_set = true;
    camera_set(&n->camera, &n->pose, width_px, height_px);
}
