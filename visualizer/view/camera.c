#include "view/camera.h"

#include <math.h>

#define FOV_RAD 0.60f       /* 34 degrees: depth is seen, and straight lines stay calm */
#define FLAT_FOV_RAD 0.010f /* the last step to parallel cannot be seen from here */

static float clampf(float x, float low, float high) { return fminf(fmaxf(x, low), high); }

void camera_limit(camera_pose *pose)
{
    pose->window_ns = fmin(fmax(pose->window_ns, CAMERA_WINDOW_MIN_NS), CAMERA_WINDOW_MAX_NS);
    pose->yaw_rad = clampf(pose->yaw_rad, -CAMERA_YAW_MAX_RAD, CAMERA_YAW_MAX_RAD);
    pose->pitch_rad = clampf(pose->pitch_rad, CAMERA_PITCH_MIN_RAD * (1 - pose->flatness), CAMERA_PITCH_MAX_RAD);
    pose->width = clampf(pose->width, CAMERA_WIDTH_MIN, CAMERA_WIDTH_MAX);
    pose->flatness = clampf(pose->flatness, 0, 1);
}

static bool ease(double *value, double goal, double share, double close_enough)
{
    *value += (goal - *value) * share;
    if (fabs(goal - *value) > close_enough)
        return true;
    *value = goal;
    return false;
}

static bool easef(float *value, float goal, double share, double close_enough)
{
    double wide = *value;
    bool is_moving = ease(&wide, goal, share, close_enough);
    *value = (float)wide;
    return is_moving;
}

bool camera_ease(camera_pose *pose, const camera_pose *goal, double time_s, double tau_s)
{
    double share = tau_s > 0 ? 1 - exp(-time_s / tau_s) : 1;
    /* The window eases in its logarithm: zooming feels the same at every scale. The times of both edges follow from it and
     * from where the centre is in units of the window, so that what is under the pointer stays there on the way. */
    double log_window = log(pose->window_ns), before = pose->window_ns;
    bool is_moving = ease(&log_window, log(goal->window_ns), share, 1e-4);
    pose->window_ns = is_moving ? exp(log_window) : goal->window_ns;
    if (fabs(goal->window_ns - before) > 1e-3 * before)
        share = (pose->window_ns - before) / (goal->window_ns - before);
    is_moving |= ease(&pose->center_ns, goal->center_ns, share, goal->window_ns * 1e-5);
    share = tau_s > 0 ? 1 - exp(-time_s / tau_s) : 1;
    is_moving |= easef(&pose->yaw_rad, goal->yaw_rad, share, 1e-4);
    is_moving |= easef(&pose->pitch_rad, goal->pitch_rad, share, 1e-4);
    is_moving |= easef(&pose->width, goal->width, share, 1e-3);
    for (int i = 0; i < 3; i++)
        is_moving |= easef(&pose->target[i], goal->target[i], share, 1e-3);
    is_moving |= easef(&pose->flatness, goal->flatness, share, 1e-3);
    return is_moving;
}

/* Reversed depth, Vulkan's y down. */
static void set_projection(mat4 out, bool is_parallel, float half_width, float half_height, float distance, float near_z, float far_z)
{
    glm_mat4_zero(out);
    float range = far_z - near_z;
    if (is_parallel) {
        out[0][0] = 1 / half_width;
        out[1][1] = -1 / half_height;
        out[2][2] = 1 / range;
        out[3][2] = far_z / range;
        out[3][3] = 1;
    } else {
        out[0][0] = distance / half_width;
        out[1][1] = -distance / half_height;
        out[2][2] = near_z / range;
        out[3][2] = near_z * far_z / range;
        out[2][3] = -1;
    }
}

static void set_planes(camera *c)
{
    for (int i = 0; i < 6; i++) {
        int row = i / 2;
        float sign = i % 2 ? -1.0f : 1.0f;
        for (int k = 0; k < 4; k++) {
            float w = c->view_projection[k][3], v = c->view_projection[k][row];
            /* x and y lie in [-w, w]; z in [0, w] */
            c->planes[i][k] = row == 2 && i % 2 == 0 ? v : w + sign * v;
        }
        float length = glm_vec3_norm(c->planes[i]);
        if (length > 0)
            glm_vec4_scale(c->planes[i], 1 / length, c->planes[i]);
    }
}

void camera_set(camera *c, const camera_pose *pose, uint32_t width_px, uint32_t height_px)
{
    float sy = sinf(pose->yaw_rad), cy = cosf(pose->yaw_rad), sp = sinf(pose->pitch_rad), cp = cosf(pose->pitch_rad);
    c->width_px = (float)width_px;
    c->height_px = (float)height_px;
    c->is_parallel = pose->flatness > 0.999f;
    glm_vec3_copy((vec3){-sy * cp, -sp, -cy * cp}, c->forward);
    glm_vec3_copy((vec3){cy, 0, -sy}, c->right);
    glm_vec3_copy((vec3){-sy * sp, cp, -cy * sp}, c->up); /* made from the angles: straight down has an up, too */
    float half_width = 0.5f * pose->width, half_height = half_width * c->height_px / c->width_px;
    /* A narrower and narrower angle from farther and farther away becomes parallel without a jump. */
    float fov_rad = expf(logf(FOV_RAD) + pose->flatness * (logf(FLAT_FOV_RAD) - logf(FOV_RAD)));
    float distance = half_width / tanf(0.5f * fov_rad);
    for (int i = 0; i < 3; i++)
        c->eye[i] = pose->target[i] - distance * c->forward[i];
    mat4 look, projection;
    glm_mat4_identity(look);
    for (int i = 0; i < 3; i++) {
        look[i][0] = c->right[i];
        look[i][1] = c->up[i];
        look[i][2] = -c->forward[i];
    }
    look[3][0] = -glm_vec3_dot(c->right, c->eye);
    look[3][1] = -glm_vec3_dot(c->up, c->eye);
    look[3][2] = glm_vec3_dot(c->forward, c->eye);
    /* The scene is some hundred units across at most. */
    float near_z = fmaxf(distance - 150.0f, 0.02f * distance), far_z = distance + 400.0f;
    set_projection(projection, c->is_parallel, half_width, half_height, distance, near_z, far_z);
    glm_mat4_mul(projection, look, c->view_projection);
    glm_mat4_inv(c->view_projection, c->inverse);
    set_planes(c);
}

/* An axis of the screen that a box must fit: what is left of it on either side of its middle, as slopes of rays. */
typedef struct fit_axis {
    float before, after;
    float low, high; /* of all corners: least of place + before * depth, most of place - after * depth */
} fit_axis;

static fit_axis fit_axis_of(float size_px, float before_px, float after_px, float slope_per_px)
{
    float lacking = fmaxf(16 - (size_px - before_px - after_px), 0);
    return (fit_axis){.before = (0.5f * (size_px - before_px * 2 + lacking)) * slope_per_px,
                      .after = (0.5f * (size_px - after_px * 2 + lacking)) * slope_per_px, .low = INFINITY, .high = -INFINITY};
}

static void fit_corner(fit_axis *axis, float place, float depth)
{
    axis->low = fminf(axis->low, place + axis->before * depth);
    axis->high = fmaxf(axis->high, place - axis->after * depth);
}

/* How far the eye may go forward, at most. */
static float fit_depth(const fit_axis *axis) { return (axis->low - axis->high) / (axis->before + axis->after); }

/* Where on the axis the eye is from there: in the middle of where it may be. */
static float fit_place(const fit_axis *axis, float depth)
{
    return 0.5f * (axis->low - axis->before * depth + axis->high + axis->after * depth);
}

/* Each corner and each edge of the screen set a bound to where the eye may be. The bounds are even in its place and depth, so
 * the nearest place follows at once, however deep the box. */
void camera_fit(camera_pose *pose, const float low[3], const float high[3], const camera_margins *margins, uint32_t width_px,
                uint32_t height_px)
{
    camera c;
    camera_set(&c, pose, width_px, height_px);
    float distance_per_width = glm_vec3_distance(c.eye, pose->target) / pose->width;
    float slope_per_px = 1 / (distance_per_width * (float)width_px);
    fit_axis across = fit_axis_of((float)width_px, margins->left_px, margins->right_px, slope_per_px);
    fit_axis down = fit_axis_of((float)height_px, margins->top_px, margins->bottom_px, slope_per_px);
    for (int corner = 0; corner < 8; corner++) {
        float world[3];
        for (int axis = 0; axis < 3; axis++)
            world[axis] = corner >> axis & 1 ? high[axis] : low[axis];
        float depth = glm_vec3_dot(world, c.forward);
        fit_corner(&across, glm_vec3_dot(world, c.right), depth);
        fit_corner(&down, -glm_vec3_dot(world, c.up), depth);
    }
    float eye_depth = fminf(fit_depth(&across), fit_depth(&down)), target_depth = glm_vec3_dot(pose->target, c.forward);
    float right = fit_place(&across, eye_depth), up = -fit_place(&down, eye_depth);
    pose->width = clampf((target_depth - eye_depth) / distance_per_width, CAMERA_WIDTH_MIN, CAMERA_WIDTH_MAX);
    for (int i = 0; i < 3; i++)
        pose->target[i] = right * c.right[i] + up * c.up[i] + target_depth * c.forward[i];
}

double camera_x(const camera_pose *pose, double time_ns)
{
    return (time_ns - pose->center_ns) / pose->window_ns * CAMERA_FILM;
}

double camera_time(const camera_pose *pose, double x) { return pose->center_ns + x / CAMERA_FILM * pose->window_ns; }

void camera_zoom_at(camera_pose *pose, double x, double factor)
{
    double time_ns = camera_time(pose, x);
    pose->window_ns *= factor;
    camera_limit(pose);
    pose->center_ns = time_ns - x / CAMERA_FILM * pose->window_ns;
}

static void to_clip(const camera *c, const float world[3], vec4 clip)
{
    for (int row = 0; row < 4; row++)
        clip[row] = c->view_projection[0][row] * world[0] + c->view_projection[1][row] * world[1] +
                    c->view_projection[2][row] * world[2] + c->view_projection[3][row];
}

bool camera_project(const camera *c, const float world[3], float px[2])
{
    vec4 clip;
    to_clip(c, world, clip);
    if (clip[3] <= 1e-6f)
        return false;
    px[0] = (clip[0] / clip[3] * 0.5f + 0.5f) * c->width_px;
    px[1] = (clip[1] / clip[3] * 0.5f + 0.5f) * c->height_px;
    return true;
}

void camera_ray(const camera *c, float x_px, float y_px, vec3 origin, vec3 direction)
{
    float x = x_px / c->width_px * 2 - 1, y = y_px / c->height_px * 2 - 1;
    vec4 near_point = {x, y, 1, 1}, far_point = {x, y, 0, 1}, from, to;
    mat4 inverse;
    glm_mat4_copy((vec4 *)c->inverse, inverse);
    glm_mat4_mulv(inverse, near_point, from);
    glm_mat4_mulv(inverse, far_point, to);
    for (int i = 0; i < 3; i++) {
        origin[i] = from[i] / from[3];
        direction[i] = to[i] / to[3] - origin[i];
    }
    glm_vec3_normalize(direction);
}

bool camera_film_x(const camera *c, float x_px, float y_px, float z_world, double *x)
{
    vec3 origin, direction;
    camera_ray(c, x_px, y_px, origin, direction);
    const float level[2] = {z_world, 0}; /* the plane z = z_world, then the floor y = 0 */
    for (int i = 0; i < 2; i++) {
        int axis = i == 0 ? 2 : 1;
        if (fabsf(direction[axis]) < 1e-4f)
            continue;
        float t = (level[i] - origin[axis]) / direction[axis];
        if (t < 0 || (i == 0 && origin[1] + t * direction[1] < -0.2f && direction[1] < -1e-4f))
            continue; /* below the floor: what is seen there is the floor */
        *x = (double)origin[0] + (double)t * (double)direction[0];
        return true;
    }
    return false;
}

bool camera_clip_bar(const camera *c, float y, float z, float y_half, float z_half, float *x_begin, float *x_end)
{
    for (int i = 0; i < 6; i++) {
        const float *p = c->planes[i];
        /* The plane, moved outwards by the bar's extent, cuts the bar's middle line. */
        float rest = p[1] * y + p[2] * z + p[3] + fabsf(p[1]) * y_half + fabsf(p[2]) * z_half;
        if (fabsf(p[0]) < 1e-7f) {
            if (rest < 0)
                return false;
            continue;
        }
        float x = -rest / p[0];
        if (p[0] > 0)
            *x_begin = fmaxf(*x_begin, x);
        else
            *x_end = fminf(*x_end, x);
    }
    return *x_begin < *x_end;
}

static float px_per(const camera *c, const float world[3], int axis)
{
    /* The derivative of clip.xy / clip.w along the axis. */
    vec4 clip;
    to_clip(c, world, clip);
    float w = fmaxf(clip[3], 1e-4f);
    float dw = c->view_projection[axis][3];
    float dx = (c->view_projection[axis][0] - clip[0] / w * dw) / w * 0.5f * c->width_px;
    float dy = (c->view_projection[axis][1] - clip[1] / w * dw) / w * 0.5f * c->height_px;
    return hypotf(dx, dy);
}

float camera_px_per_x(const camera *c, const float world[3]) { return px_per(c, world, 0); }
float camera_px_per_y(const camera *c, const float world[3]) { return px_per(c, world, 1); }
