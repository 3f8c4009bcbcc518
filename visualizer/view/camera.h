/* view/camera.h - where we look from, how time becomes x, and what of the world can be seen.
 * For:     view.c (moves it), scene.c and panels.c (project with it).
 * Idea:    the film is always CAMERA_FILM units long, whatever time it shows: zooming stretches time, not space, so floats
 *          stay small and the scene keeps its shape. A pose is plain numbers; the camera eases from its pose to its goal,
 *          each number by itself, so every transition can be interrupted by the next.
 * Threads: one.
 * Units:   world units; times in ns relative to the caller's base (double: exact to 1 ns for 100 days).
 * Source:  reversed depth after Reed, "Depth Precision Visualized" (2015); frustum planes after Gribb and Hartmann (2001).
 */
#ifndef RRTRACE_VIEW_CAMERA_H
#define RRTRACE_VIEW_CAMERA_H

#include <cglm/cglm.h>
#include <stdbool.h>
#include <stdint.h>

#define CAMERA_FILM 16.0 /* world units that window_ns takes */
#define CAMERA_WINDOW_MIN_NS 200.0
#define CAMERA_WINDOW_MAX_NS 1.0e15 /* eleven days */
#define CAMERA_YAW_MAX_RAD 1.35f    /* short of looking along the lanes */
#define CAMERA_PITCH_MIN_RAD 0.03f  /* never under the floor */
#define CAMERA_PITCH_MAX_RAD 1.5708f
#define CAMERA_WIDTH_MIN 0.5f
#define CAMERA_WIDTH_MAX 200.0f

typedef struct camera_pose {
    double center_ns, window_ns; /* the time at x = 0, and what CAMERA_FILM units are long */
    float yaw_rad;   /* around y; positive: the eye is on the right, where now is */
    float pitch_rad; /* 0: from the front, pi/2: from above */
    float width;     /* world units that the target plane is wide on screen */
    float target[3]; /* what is in the middle of the screen; [0] moves the film sideways without moving in time */
    float flatness;  /* 0: perspective … 1: parallel */
} camera_pose;

/* What a pose means on a screen of some size. */
typedef struct camera {
    mat4 view_projection, inverse;
    vec4 planes[6]; /* inward; a point is inside when dot(plane, point) >= 0 for all */
    vec3 eye, forward, right, up;
    bool is_parallel;
    float width_px, height_px;
} camera;

void camera_limit(camera_pose *pose);
/* Move every number of *pose towards goal: all but 1/e of the way in tau_s. True: not there yet. */
bool camera_ease(camera_pose *pose, const camera_pose *goal, double time_s, double tau_s);
void camera_set(camera *c, const camera_pose *pose, uint32_t width_px, uint32_t height_px);

double camera_x(const camera_pose *pose, double time_ns); /* world x of a time */
double camera_time(const camera_pose *pose, double x);
/* Zoom by factor (below 1: closer), keeping the time at world x where it is. */
void camera_zoom_at(camera_pose *pose, double x, double factor);

typedef struct camera_margins { float left_px, right_px, top_px, bottom_px; } camera_margins;
/* Set the pose's width and target so that a box of the world just fills the screen but for the margins, seen at its angles. */
void camera_fit(camera_pose *pose, const float low[3], const float high[3], const camera_margins *margins, uint32_t width_px,
                uint32_t height_px);

/* Pixel of a world point; false: it lies behind the eye. */
bool camera_project(const camera *c, const float world[3], float px[2]);
/* The ray through a pixel: origin and unit direction. */
void camera_ray(const camera *c, float x_px, float y_px, vec3 origin, vec3 direction);
/* Where the ray through a pixel meets the film's plane z = z_world or, if it misses, the floor. False: neither. */
bool camera_film_x(const camera *c, float x_px, float y_px, float z_world, double *x);
/* What can be seen of a bar along x through (y, z) with those half sizes, within [*x_begin, *x_end): narrowed; false: nothing. */
bool camera_clip_bar(const camera *c, float y, float z, float y_half, float z_half, float *x_begin, float *x_end);
/* Pixels that one world unit along x takes at a point; along y likewise. */
float camera_px_per_x(const camera *c, const float world[3]);
float camera_px_per_y(const camera *c, const float world[3]);

#endif
