/* view/navigate.h - from keys and pointer to where the camera goes.
 * For:     view.c.
 * Idea:    input changes a goal; the pose eases towards it each frame. What the pointer drags moves pose and goal alike, so it
 *          sticks to the pointer. While following, both move with now, and only zoom and angles ease.
 * Threads: one.
 * Units:   times in ns relative to the session's begin.
 */
#ifndef RRTRACE_VIEW_NAVIGATE_H
#define RRTRACE_VIEW_NAVIGATE_H

#include "view/camera.h"
#include "view/view.h"

#define NAV_WINDOW_LIVE_NS 5e9   /* what a live session shows */
#define NAV_WINDOW_FIRST_NS 1e9  /* … when it has just begun */
#define NAV_FIT_ENDED_NS 60e9    /* programs up to this long are shown whole when they have ended */
#define NAV_TAU_S 0.13           /* of eased moves: settled in half a second */
#define NAV_MODE_TAU_S 0.22      /* of the way from one camera to another */

typedef enum nav_drag { NAV_DRAG_NONE = 0, NAV_DRAG_TURN, NAV_DRAG_PAN, NAV_DRAG_TIME, NAV_DRAG_CHART } nav_drag;

/* What the scene measures, from layout/. */
typedef struct nav_scene {
    float z_end, y_low, y_high;
    float strip_px; /* what the time strip takes of the screen's height */
    float panel_px; /* … and an open panel of its right side */
} nav_scene;

typedef struct nav {
    camera_pose pose, goal;
    camera camera;       /* of pose, as of the last nav_step */
    nav_scene scene;
    view_camera mode;
    float flame, threads;/* eased shares of those cameras */
    float yaw_rad, pitch_rad; /* the scene camera's, as the user turned it */
    float stretch, stretch_goal; /* of rows: Alt+wheel */
    float pan[3];        /* what the user moved the target by */
    bool is_following;   /* now stays at the right end */
    bool has_chosen;     /* the user or the caller has set the window: no more fitting by itself */
    bool is_set;         /* the first step has been made */
    bool has_help, wants_quit;
    bool is_held[VIEW_KEY_COUNT];
    bool is_tapped[VIEW_KEY_COUNT]; /* pressed since the last step, perhaps released again already */
    uint32_t modifiers;
    nav_drag drag;
    view_button drag_button;
    float x_px, y_px;
    float scale;
    float side_px;       /* what is left free at the right, so that a panel does not hide now */
    double now_ns;
    bool has_ended;
    bool is_moving;
} nav;

void nav_init(nav *n, view_camera mode, float scale);
bool nav_input(nav *n, const view_input_event *e); /* true: something changes */
/* Show this range, standing still. is_at_once: without easing. */
void nav_show(nav *n, double begin_ns, double end_ns, bool is_at_once);
/* What times are relative to has moved back by so much: the picture stays. */
void nav_shift(nav *n, double by_ns);
/* A frame: move to now, ease, set the camera. time_s infinite: everything at once. */
void nav_step(nav *n, const nav_scene *measures, double now_ns, bool has_ended, double time_s, uint32_t width_px, uint32_t height_px);
/* World units that a pixel of the parallel cameras takes; width_px: without side_px. */
float nav_units_per_px(uint32_t width_px, float scale);
/* The screen's width without side_px. */
uint32_t nav_free_px(const nav *n, uint32_t width_px);

#endif
