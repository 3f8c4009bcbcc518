#include "test.h"

#include "view/camera.h"
#include "view/navigate.h"

#include <math.h>

enum { WIDTH = 1280, HEIGHT = 720 };

#define CHECK_NEAR(got, want, within)                                                                    \
    do {                                                                                                 \
        double got_ = (double)(got), want_ = (double)(want);                                             \
        if (!(fabs(got_ - want_) <= (double)(within)))                                                   \
            TEST_FAILED("%s is %.9g, wanted %.9g (%s)", #got, got_, want_, #want);                       \
    } while (0)

static camera_pose some_pose(uint64_t *state)
{
    camera_pose pose = {.center_ns = (double)test_random_below(state, 1000000000), .window_ns = 1e6 + (double)test_random_below(state, 1000000000),
                        .yaw_rad = (float)test_random_below(state, 2400) * 1e-3f - 1.2f, .pitch_rad = 0.05f + (float)test_random_below(state, 1500) * 1e-3f,
                        .width = 5 + (float)test_random_below(state, 200) * 0.1f, .target = {0, 1, 2},
                        .flatness = (float)test_random_below(state, 3) * 0.5f};
    camera_limit(&pose);
    return pose;
}

TEST(a_projected_point_lies_on_the_ray_through_its_pixel)
{
    uint64_t seed = test_seed(11), state = seed;
    for (int i = 0; i < 500; i++) {
        camera_pose pose = some_pose(&state);
        camera c;
        camera_set(&c, &pose, WIDTH, HEIGHT);
        float world[3], px[2];
        for (int axis = 0; axis < 3; axis++)
            world[axis] = (float)test_random_below(&state, 800) * 0.01f - 4;
        CHECK(camera_project(&c, world, px));
        vec3 origin, direction, to;
        camera_ray(&c, px[0], px[1], origin, direction);
        glm_vec3_sub(world, origin, to);
        float along = glm_vec3_dot(to, direction), off = sqrtf(fmaxf(glm_vec3_norm2(to) - along * along, 0));
        if (off > 2e-3f * fmaxf(along, 1))
            TEST_FAILED("seed %" PRIu64 ", round %d: %g off the ray at %g", seed, i, (double)off, (double)along);
    }
}

TEST(the_target_is_in_the_middle_and_width_is_what_the_screen_shows)
{
    for (int flat = 0; flat < 2; flat++) {
        camera_pose pose = {.window_ns = 1e9, .yaw_rad = 0.3f, .pitch_rad = 0.5f, .width = 20, .target = {1, 2, 3}, .flatness = (float)flat};
        camera c;
        float px[2];
        camera_set(&c, &pose, WIDTH, HEIGHT);
        CHECK(camera_project(&c, pose.target, px));
        CHECK_NEAR(px[0], WIDTH / 2, 0.1);
        CHECK_NEAR(px[1], HEIGHT / 2, 0.1);
        float right[3];
        for (int i = 0; i < 3; i++)
            right[i] = pose.target[i] + 10 * c.right[i];
        CHECK(camera_project(&c, right, px));
        CHECK_NEAR(px[0], WIDTH, 0.2);
    }
}

TEST(nearer_is_deeper_in_reversed_depth_and_all_depths_lie_in_clip_space)
{
    for (int flat = 0; flat < 2; flat++) {
        camera_pose pose = {.window_ns = 1e9, .pitch_rad = 0.5f, .width = 20, .flatness = (float)flat};
        camera c;
        camera_set(&c, &pose, WIDTH, HEIGHT);
        float last = 2;
        for (float ahead = -8; ahead <= 8; ahead += 2) {
            vec4 world = {c.forward[0] * ahead, c.forward[1] * ahead, c.forward[2] * ahead, 1}, clip;
            glm_mat4_mulv(c.view_projection, world, clip);
            float depth = clip[2] / clip[3];
            CHECK(depth > 0 && depth < 1 && depth < last);
            last = depth;
        }
    }
}

TEST(up_in_the_world_is_up_on_the_screen_from_any_angle)
{
    uint64_t state = test_seed(5);
    for (int i = 0; i < 200; i++) {
        camera_pose pose = some_pose(&state);
        pose.pitch_rad = fminf(pose.pitch_rad, 1.4f);
        camera c;
        float low[2], high[2];
        camera_set(&c, &pose, WIDTH, HEIGHT);
        CHECK(camera_project(&c, (float[]){0, 1, 2}, low));
        CHECK(camera_project(&c, (float[]){0, 2, 2}, high));
        CHECK(high[1] < low[1]);
    }
}

TEST(turning_stops_short_of_looking_along_the_lanes_or_from_below)
{
    camera_pose pose = {.window_ns = 1, .yaw_rad = 9, .pitch_rad = -3, .width = 1e9f};
    camera_limit(&pose);
    CHECK_NEAR(pose.yaw_rad, CAMERA_YAW_MAX_RAD, 1e-6);
    CHECK_NEAR(pose.pitch_rad, CAMERA_PITCH_MIN_RAD, 1e-6);
    CHECK_NEAR(pose.window_ns, CAMERA_WINDOW_MIN_NS, 1e-6);
    CHECK(pose.width < 1e3f);
    pose.pitch_rad = 7;
    camera_limit(&pose);
    CHECK_NEAR(pose.pitch_rad, CAMERA_PITCH_MAX_RAD, 1e-6);
}

TEST(zooming_keeps_the_time_under_the_pointer_at_every_moment_of_the_way)
{
    camera_pose pose = {.center_ns = 5e9, .window_ns = 1e9, .width = 20}, goal = pose;
    double x = 3.7, time_ns = camera_time(&pose, x);
    camera_zoom_at(&goal, x, 0.05);
    CHECK_NEAR(camera_time(&goal, x), time_ns, 1);
    for (int frame = 0; frame < 200 && camera_ease(&pose, &goal, 0.016, 0.1); frame++)
        CHECK_NEAR(camera_time(&pose, x), time_ns, pose.window_ns * 1e-3);
    CHECK_NEAR(pose.window_ns, 5e7, 1);
    CHECK_NEAR(camera_time(&pose, x), time_ns, 100);
}

TEST(a_clipped_bar_is_where_its_pixels_are_on_the_screen)
{
    uint64_t seed = test_seed(3), state = seed;
    int seen = 0;
    for (int i = 0; i < 300; i++) {
        camera_pose pose = some_pose(&state);
        camera c;
        camera_set(&c, &pose, WIDTH, HEIGHT);
        float y = (float)test_random_below(&state, 40) * 0.1f, z = (float)test_random_below(&state, 60) * 0.1f, x[2] = {-30, 30};
        bool is_seen = camera_clip_bar(&c, y, z, 0, 0, &x[0], &x[1]);
        for (float at = -29.9f; at < 30; at += 0.37f) {
            float px[2];
            bool on_screen = camera_project(&c, (float[]){at, y, z}, px) && px[0] > 1 && px[1] > 1 && px[0] < WIDTH - 1 && px[1] < HEIGHT - 1;
            if (on_screen && !(is_seen && at >= x[0] - 0.01f && at <= x[1] + 0.01f))
                TEST_FAILED("seed %" PRIu64 ", round %d: x %g is on the screen but was cut off", seed, i, (double)at);
            seen += on_screen;
        }
    }
    CHECK(seen > 1000);
}

TEST(fitting_fills_the_space_between_the_margins_however_deep_the_scene)
{
    static const float depths[] = {0.5f, 5, 12, 24, 36, 60, 150};
    for (size_t n = 0; n < sizeof depths / sizeof depths[0]; n++) {
        camera_margins margins = {100, 50, 60, 80};
        float low[3] = {-8, 0, 0}, high[3] = {8, 3, depths[n]};
        camera_pose pose = {.window_ns = 1e9, .yaw_rad = 0.4f, .pitch_rad = 0.45f, .width = 3};
        camera_fit(&pose, low, high, &margins, WIDTH, HEIGHT);
        camera c;
        camera_set(&c, &pose, WIDTH, HEIGHT);
        float left = WIDTH, right = 0, top = HEIGHT, bottom = 0;
        for (int i = 0; i < 8; i++) {
            float px[2];
            CHECK(camera_project(&c, (float[]){i & 1 ? 8.0f : -8.0f, i & 2 ? 3.0f : 0.0f, i & 4 ? depths[n] : 0.0f}, px));
            left = fminf(left, px[0]);
            right = fmaxf(right, px[0]);
            top = fminf(top, px[1]);
            bottom = fmaxf(bottom, px[1]);
        }
        CHECK(left >= 99 && right <= WIDTH - 49 && top >= 59 && bottom <= HEIGHT - 79);
        CHECK(right - left > WIDTH - 160 || bottom - top > HEIGHT - 150); /* one of them is tight */
    }
}

TEST(px_per_x_is_what_moving_along_x_does_on_the_screen)
{
    uint64_t state = test_seed(8);
    for (int i = 0; i < 100; i++) {
        camera_pose pose = some_pose(&state);
        camera c;
        float a[2], b[2];
        camera_set(&c, &pose, WIDTH, HEIGHT);
        CHECK(camera_project(&c, (float[]){0.99f, 1, 1}, a));
        CHECK(camera_project(&c, (float[]){1.01f, 1, 1}, b));
        float want = hypotf(b[0] - a[0], b[1] - a[1]) / 0.02f;
        CHECK_NEAR(camera_px_per_x(&c, (float[]){1, 1, 1}), want, 0.02 * (double)want + 0.2);
    }
}

/* Navigation. */

static nav started(view_camera mode, double now_ns)
{
    nav n;
    nav_init(&n, mode, 1);
    nav_step(&n, &(nav_scene){.z_end = 2, .y_high = 3}, now_ns, false, 0.016, WIDTH, HEIGHT);
    return n;
}

static void step(nav *n, double now_ns, double time_s)
{
    nav_step(n, &(nav_scene){.z_end = 2, .y_high = 3}, now_ns, n->has_ended, time_s, WIDTH, HEIGHT);
}

static bool key(nav *n, view_key k, uint32_t modifiers)
{
    bool changes = nav_input(n, &(view_input_event){.type = VIEW_INPUT_KEY, .key = k, .is_down = true, .modifiers = modifiers});
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_KEY, .key = k, .is_down = false, .modifiers = modifiers});
    return changes;
}

static void drag(nav *n, view_button button, uint32_t modifiers, float right_px, float down_px)
{
    float x = 640, y = 360;
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_MOVE, .x_px = x, .y_px = y, .modifiers = modifiers});
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_BUTTON, .button = button, .is_down = true, .x_px = x, .y_px = y, .modifiers = modifiers});
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_MOVE, .x_px = x + right_px, .y_px = y + down_px, .modifiers = modifiers});
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_BUTTON, .button = button, .x_px = x + right_px, .y_px = y + down_px, .modifiers = modifiers});
}

static void wheel(nav *n, float notches, uint32_t modifiers, float x, float y)
{
    nav_input(n, &(view_input_event){.type = VIEW_INPUT_WHEEL, .wheel_y = notches, .x_px = x, .y_px = y, .modifiers = modifiers});
}

TEST(a_live_film_flows_with_now_at_its_right_end_and_no_lag)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    double right = camera_x(&n.pose, 60e9);
    CHECK(right > 0.45 * CAMERA_FILM && right <= 0.5 * CAMERA_FILM);
    for (int i = 1; i < 60; i++) {
        step(&n, 60e9 + i * 0.016e9, 0.016);
        CHECK_NEAR(camera_x(&n.pose, 60e9 + i * 0.016e9), right, 1e-3);
    }
}

TEST(space_stops_the_film_and_l_goes_back_to_now)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    CHECK(key(&n, VIEW_KEY_SPACE, 0));
    double center_ns = n.pose.center_ns;
    for (int i = 0; i < 50; i++)
        step(&n, 61e9 + i * 1e8, 0.016);
    CHECK(!n.is_following);
    CHECK_NEAR(n.pose.center_ns, center_ns, 1);
    CHECK(key(&n, VIEW_KEY_L, 0));
    for (int i = 0; i < 200; i++)
        step(&n, 66e9, 0.016);
    CHECK(n.is_following);
    CHECK_NEAR(camera_x(&n.pose, 66e9), 0.488 * CAMERA_FILM, 0.01);
}

/* Microseconds of long ago are looked at, then it is wanted back to the end. */
TEST(back_at_the_end_there_is_something_to_see_after_a_close_look)
{
    for (int has_ended = 0; has_ended < 2; has_ended++) {
        nav n = started(VIEW_CAMERA_FLAME, 60e9);
        nav_scene measures = {.z_end = 2, .y_high = 1};
        nav_show(&n, 20e9, 20e9 + 2000, true);
        for (int i = 0; i < 100; i++)
            nav_step(&n, &measures, 60e9, has_ended, 0.016, 1280, 720);
        CHECK_NEAR(n.pose.window_ns, 2000, 1);
        CHECK(key(&n, VIEW_KEY_L, 0));
        for (int i = 0; i < 200; i++)
            nav_step(&n, &measures, 60e9, has_ended, 0.016, 1280, 720);
        CHECK_NEAR(n.pose.window_ns, NAV_WINDOW_LIVE_NS, 1e6);
    }
    nav n = started(VIEW_CAMERA_FLAME, 60e9); /* a program ends under a close look at now */
    nav_scene measures = {.z_end = 2, .y_high = 1};
    nav_show(&n, 0, 1000, true);
    n.is_following = true;
    for (int i = 0; i < 200; i++)
        nav_step(&n, &measures, 60e9, i > 10, 0.016, 1280, 720);
    CHECK(n.pose.window_ns > 1e9);
}

/* With a panel open at the right. */
TEST(now_is_left_of_an_open_panel_while_live_and_what_stands_still_does_not_move)
{
    for (int kind = 0; kind < 3; kind++) {
        nav n = started((view_camera)kind, 60e9);
        nav_scene measures = {.z_end = 2, .y_high = 1, .panel_px = 354};
        float px[2];
        for (int i = 0; i < 300; i++)
            nav_step(&n, &measures, 60e9, false, 0.016, 1280, 720);
        const float now[3] = {(float)camera_x(&n.pose, 60e9), 0, measures.z_end};
        CHECK(camera_project(&n.camera, now, px) && px[0] < 1280 - 354 && px[0] > 500);
        CHECK(key(&n, VIEW_KEY_SPACE, 0));
        measures.panel_px = 354;
        camera_pose before = n.pose;
        for (int i = 0; i < 100; i++)
            nav_step(&n, &measures, 61e9, false, 0.016, 1280, 720);
        CHECK_NEAR(n.pose.width, before.width, 1e-3f);
        measures.panel_px = 0; /* closed, and opened again over what stands still */
        for (int i = 0; i < 300; i++)
            nav_step(&n, &measures, 61e9, false, 0.016, 1280, 720);
        before = n.pose;
        measures.panel_px = 354;
        for (int i = 0; i < 100; i++)
            nav_step(&n, &measures, 61e9, false, 0.016, 1280, 720);
        CHECK(n.pose.width == before.width && n.pose.target[0] == before.target[0]);
    }
}

/* So many notches, so many times, a frame after each: the time under the pointer stays there. */
static void check_zoom_about_pointer(nav *n, double now_ns, float notches, int times)
{
    double x, before = n->pose.window_ns;
    CHECK(camera_film_x(&n->camera, 400, 420, n->scene.z_end, &x));
    double time_ns = camera_time(&n->pose, x);
    for (int i = 0; i < times; i++) {
        wheel(n, notches, 0, 400, 420);
        step(n, now_ns, 0.016);
    }
    for (int i = 0; i < 200; i++)
        step(n, now_ns, 0.016);
    CHECK(n->pose.window_ns < 0.5 * before);
    CHECK(camera_film_x(&n->camera, 400, 420, n->scene.z_end, &x));
    CHECK_NEAR(camera_time(&n->pose, x), time_ns, before * 1e-4);
}

TEST(the_wheel_zooms_about_the_pointer_in_every_camera)
{
    for (int mode = 0; mode < 3; mode++) {
        nav n = started((view_camera)mode, 60e9);
        key(&n, VIEW_KEY_SPACE, 0);
        check_zoom_about_pointer(&n, 60e9, 4, 1);
    }
}

TEST(what_has_ended_zooms_about_the_pointer_also_at_its_end)
{
    for (int mode = 0; mode < 3; mode++) {
        nav n = started((view_camera)mode, 4.6e9);
        nav_step(&n, &n.scene, 4.6e9, true, INFINITY, WIDTH, HEIGHT);
        CHECK(n.is_following);
        check_zoom_about_pointer(&n, 4.6e9, 1, 6);
    }
}

TEST(beside_the_film_the_wheel_zooms_about_its_end)
{
    nav n = started(VIEW_CAMERA_FLAME, 4.6e9);
    nav_step(&n, &n.scene, 4.6e9, true, INFINITY, WIDTH, HEIGHT);
    double end_x = camera_x(&n.pose, 4.6e9);
    wheel(&n, 20, 0, WIDTH - 1, 360);
    for (int i = 0; i < 200; i++)
        step(&n, 4.6e9, 0.016);
    CHECK_NEAR(camera_x(&n.pose, 4.6e9), end_x, 1e-3);
}

TEST(ctrl_zooms_finer_and_shift_faster)
{
    double windows[3];
    const uint32_t modifiers[3] = {VIEW_MOD_CTRL, 0, VIEW_MOD_SHIFT};
    for (int i = 0; i < 3; i++) {
        nav n = started(VIEW_CAMERA_FLAME, 60e9);
        wheel(&n, 1, modifiers[i], 640, 360);
        windows[i] = n.goal.window_ns;
    }
    CHECK(windows[0] > windows[1] && windows[1] > windows[2] && windows[0] < 5e9);
}

TEST(zooming_keeps_following_and_moving_in_time_does_not)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    wheel(&n, 3, 0, 200, 300);
    CHECK(n.is_following);
    step(&n, 60.1e9, INFINITY);
    CHECK_NEAR(camera_x(&n.pose, 60.1e9), 0.488 * CAMERA_FILM, 0.01);
    nav_input(&n, &(view_input_event){.type = VIEW_INPUT_KEY, .key = VIEW_KEY_A, .is_down = true});
    double before = n.goal.center_ns;
    step(&n, 60.2e9, 0.1);
    CHECK(!n.is_following);
    CHECK(n.goal.center_ns < before + 0.1e9);
    CHECK(n.is_moving);
    nav_input(&n, &(view_input_event){.type = VIEW_INPUT_LEAVE});
    before = n.goal.center_ns;
    step(&n, 60.3e9, 0.1);
    CHECK_NEAR(n.goal.center_ns, before, 1); /* the key was let go outside the window */
}

TEST(a_right_drag_moves_the_time_with_the_pointer)
{
    for (int mode = 0; mode < 3; mode++) {
        nav n = started((view_camera)mode, 60e9);
        double from, to, grabbed;
        CHECK(camera_film_x(&n.camera, 640, 360, n.scene.z_end, &from));
        grabbed = camera_time(&n.pose, from);
        drag(&n, VIEW_BUTTON_RIGHT, 0, 150, 0);
        step(&n, 60e9, 0.016);
        CHECK(!n.is_following);
        CHECK(camera_film_x(&n.camera, 790, 360, n.scene.z_end, &to));
        CHECK_NEAR(camera_time(&n.pose, to), grabbed, n.pose.window_ns * 2e-3);
    }
}

TEST(the_begin_and_now_cannot_be_left_behind)
{
    nav n = started(VIEW_CAMERA_FLAME, 60e9);
    for (int i = 0; i < 500; i++) {
        drag(&n, VIEW_BUTTON_RIGHT, 0, 600, 0);
        step(&n, 60e9, 0.016);
    }
    CHECK(camera_time(&n.pose, 0.5 * CAMERA_FILM) > 0);
    for (int i = 0; i < 500; i++) {
        drag(&n, VIEW_BUTTON_RIGHT, 0, -600, 0);
        step(&n, 60e9, 0.016);
    }
    CHECK(camera_time(&n.pose, -0.5 * CAMERA_FILM) < 60e9);
}

TEST(a_left_drag_turns_the_scene_within_limits_and_shift_middle_pans)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    float yaw = n.pose.yaw_rad, pitch = n.pose.pitch_rad;
    drag(&n, VIEW_BUTTON_LEFT, 0, -60, 40);
    CHECK(n.pose.yaw_rad > yaw && n.pose.pitch_rad > pitch);
    for (int i = 0; i < 50; i++)
        drag(&n, VIEW_BUTTON_MIDDLE, 0, -300, -300);
    CHECK_NEAR(n.goal.yaw_rad, CAMERA_YAW_MAX_RAD, 1e-3);
    CHECK_NEAR(n.goal.pitch_rad, CAMERA_PITCH_MIN_RAD, 1e-3);
    n = started(VIEW_CAMERA_SCENE, 60e9);
    float px[2], target[3];
    memcpy(target, n.pose.target, sizeof target);
    drag(&n, VIEW_BUTTON_MIDDLE, VIEW_MOD_SHIFT, 100, -50);
    step(&n, 60e9, 0.016);
    CHECK(camera_project(&n.camera, target, px));
    CHECK_NEAR(px[0], 740, 1);
    CHECK_NEAR(px[1], 310, 1);
    CHECK(n.is_following);
}

TEST(turning_a_chart_leaves_it_without_a_jump)
{
    nav n = started(VIEW_CAMERA_THREADS, 60e9);
    float pitch = n.pose.pitch_rad;
    drag(&n, VIEW_BUTTON_MIDDLE, 0, 10, -10);
    CHECK_EQ(n.mode, VIEW_CAMERA_SCENE);
    step(&n, 60e9, 0.016);
    CHECK_NEAR(n.pose.pitch_rad, pitch, 0.1);
    CHECK(n.threads > 0.8f);
}

TEST(cameras_change_smoothly_and_settle)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    key(&n, VIEW_KEY_2, 0);
    float last = n.pose.pitch_rad;
    int frames = 0;
    do {
        step(&n, 60e9, 0.016);
        CHECK(fabsf(n.pose.pitch_rad - last) < 0.06f);
        last = n.pose.pitch_rad;
    } while (n.is_moving && ++frames < 400);
    CHECK(frames > 10 && frames < 250);
    CHECK_NEAR(n.pose.pitch_rad, 0, 1e-4);
    CHECK(n.camera.is_parallel);
    CHECK_NEAR(n.flame, 1, 0);
}

TEST(a_program_that_has_ended_is_shown_whole_unless_the_user_has_chosen)
{
    for (int chosen = 0; chosen < 2; chosen++) {
        nav n = started(VIEW_CAMERA_FLAME, 2e9);
        if (chosen)
            wheel(&n, 5, 0, 640, 360);
        nav_step(&n, &(nav_scene){.z_end = 2, .y_high = 3}, 2e9, true, INFINITY, WIDTH, HEIGHT);
        double begin_x = camera_x(&n.pose, 0), end_x = camera_x(&n.pose, 2e9);
        CHECK(end_x <= 0.5 * CAMERA_FILM);
        CHECK((begin_x >= -0.5 * CAMERA_FILM) == !chosen);
    }
}

TEST(keys_do_what_the_help_says)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    CHECK(key(&n, VIEW_KEY_HELP, 0) && n.has_help);
    CHECK(key(&n, VIEW_KEY_ESC, 0) && !n.has_help);
    CHECK(!key(&n, VIEW_KEY_ESC, 0));
    CHECK(!key(&n, VIEW_KEY_Q, 0) && !n.wants_quit);
    key(&n, VIEW_KEY_F, 0);
    step(&n, 60e9, INFINITY);
    CHECK(camera_x(&n.pose, 0) >= -0.5 * CAMERA_FILM);
    key(&n, VIEW_KEY_HOME, 0);
    step(&n, 60e9, INFINITY);
    CHECK_NEAR(n.pose.window_ns, NAV_WINDOW_LIVE_NS, 1);
    wheel(&n, 5, VIEW_MOD_ALT, 640, 360);
    CHECK(n.stretch_goal > 2);
    CHECK_NEAR(n.goal.window_ns, NAV_WINDOW_LIVE_NS, 1);
    CHECK(key(&n, VIEW_KEY_Q, VIEW_MOD_CTRL) && n.wants_quit);
}

TEST(a_range_asked_for_is_shown_as_it_is)
{
    nav n;
    nav_init(&n, VIEW_CAMERA_FLAME, 1);
    nav_show(&n, 3e9, 4e9, false);
    nav_step(&n, &(nav_scene){.z_end = 1, .y_high = 1}, 60e9, false, INFINITY, WIDTH, HEIGHT);
    CHECK_NEAR(camera_time(&n.pose, -0.5 * CAMERA_FILM), 3e9, 10);
    CHECK_NEAR(camera_time(&n.pose, 0.5 * CAMERA_FILM), 4e9, 10);
}

TEST(a_key_pressed_and_released_between_two_frames_still_counts)
{
    nav n = started(VIEW_CAMERA_SCENE, 60e9);
    double before = n.goal.window_ns;
    nav_input(&n, &(view_input_event){.type = VIEW_INPUT_KEY, .key = VIEW_KEY_W, .is_down = true});
    nav_input(&n, &(view_input_event){.type = VIEW_INPUT_KEY, .key = VIEW_KEY_W});
    step(&n, 60e9, 0.016);
    double after = n.goal.window_ns;
    CHECK(after < before * 0.99);
    step(&n, 60e9, 0.016);
    CHECK_NEAR(n.goal.window_ns, after, 1); /* once */
}
