/* What is seen: sessions drawn off-screen by a software driver. TEST_PICTURES=FOLDER keeps the pictures as PNG. */
#include "view_scenes.h"

#include "gpu/gpu.h"
#include <errno.h>
#include "view/palette.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#if defined(__SANITIZE_THREAD__)
#define PICTURE_SKIP TEST_SKIP("the driver's own threads confuse the thread sanitizer")
#else
#define PICTURE_SKIP (void)0
#endif

enum { WIDTH = 1280, HEIGHT = 720 };

typedef struct picture {
    gpu *gpu;
    view *view;
    gpu_frame frame;
    uint8_t *rgba; /* owned; WIDTH * HEIGHT * 4 */
} picture;

static void picture_open(picture *p, const view_desc *desc)
{
    PICTURE_SKIP;
    *p = (picture){.rgba = malloc((size_t)WIDTH * HEIGHT * 4)};
    gpu_desc device = {.width = WIDTH, .height = HEIGHT, .validation = true};
    if (gpu_new(&p->gpu, &device) == -ENOTSUP)
        TEST_SKIP(gpu_error(p->gpu));
    CHECK_STR(gpu_error(p->gpu), "");
    CHECK_EQ(view_new(&p->view, desc), 0);
}

static void picture_draw(picture *p, session *s, const view_status *status, double frame_time_s)
{
    const uint8_t *atlas;
    uint32_t width, height;
    view_model model = session_model(s);
    view_build(p->view, &model, status, WIDTH, HEIGHT, frame_time_s, &p->frame);
    if (view_atlas(p->view, &atlas, &width, &height))
        CHECK_EQ(gpu_set_atlas(p->gpu, atlas, width, height), 0);
    CHECK_EQ(gpu_draw(p->gpu, &p->frame), GPU_DRAWN);
    CHECK_EQ(gpu_read_pixels(p->gpu, p->rgba, (size_t)WIDTH * HEIGHT * 4), 0);
}

static void picture_keep(const picture *p, const char *name)
{
    const char *folder = getenv("TEST_PICTURES");
    char path[512];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    CHECK(stbi_write_png(path, WIDTH, HEIGHT, 4, p->rgba, WIDTH * 4));
}

static void picture_close(picture *p)
{
    CHECK_EQ(gpu_validation_count(p->gpu), 0);
    view_delete(p->view);
    gpu_delete(p->gpu);
    free(p->rgba);
}

static const view_status still_status = {.ended = false, .event_count = 123456, .memory_budget = 1u << 30, .memory_bytes = 44u << 20,
                                         .events_per_s = 1.234e6, .frames_per_s = 30};

TEST(a_web_server_is_drawn_from_every_camera)
{
    static const char *const names[] = {"web-scene", "web-flame", "web-threads"};
    for (int kind = 0; kind < 3; kind++) {
        picture p;
        session s;
        session_new(&s);
        scenes_web(&s, 3, 5);
        view_desc desc = {.is_still = true, .camera = (view_camera)kind};
        picture_open(&p, &desc);
        picture_draw(&p, &s, &still_status, 0);
        picture_keep(&p, names[kind]);
        CHECK(p.frame.box_count > 500);
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(a_short_script_that_has_ended_is_shown_whole)
{
    static const char *const names[] = {"script-scene", "script-flame", "script-threads"};
    for (int kind = 0; kind < 3; kind++) {
        picture p;
        session s;
        session_new(&s);
        scenes_script(&s);
        view_desc desc = {.is_still = true, .camera = (view_camera)kind};
        view_status status = still_status;
        status.ended = true;
        picture_open(&p, &desc);
        picture_draw(&p, &s, &status, 0);
        picture_keep(&p, names[kind]);
        uint64_t begin_ns, end_ns;
        view_range(p.view, &begin_ns, &end_ns);
        CHECK_EQ(begin_ns, SESSION_BEGIN_NS);
        CHECK_EQ(end_ns, s.now_ns);
        picture_close(&p);
        session_delete(&s);
    }
}

TEST(a_live_window_says_what_it_can_do)
{
    picture p;
    session s;
    session_new(&s);
    scenes_web(&s, 3, 5);
    view_desc desc = {.is_software = true};
    picture_open(&p, &desc);
    for (int i = 0; i < 40; i++)
        picture_draw(&p, &s, &still_status, 0.05);
    picture_keep(&p, "live");
    view_input_event help = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_HELP, .is_down = true};
    view_input_event space = {.type = VIEW_INPUT_KEY, .key = VIEW_KEY_SPACE, .is_down = true};
    CHECK(view_input(p.view, &help));
    CHECK(view_input(p.view, &space));
    picture_draw(&p, &s, &still_status, 0.05);
    picture_keep(&p, "live-help");
    CHECK(view_is_paused(p.view));
    picture_close(&p);
    session_delete(&s);
}

static void draw_still(const char *name, void (*make)(session *), view_camera camera_kind)
{
    picture p;
    session s;
    session_new(&s);
    make(&s);
    view_desc desc = {.is_still = true, .camera = camera_kind};
    picture_open(&p, &desc);
    picture_draw(&p, &s, &still_status, 0);
    picture_keep(&p, name);
    CHECK(p.frame.box_count > 10);
    picture_close(&p);
    session_delete(&s);
}

static void make_many_threads(session *s) { scenes_threads(s, 60); }
static void make_deep(session *s) { scenes_deep(s, 4000); }
static void make_empty(session *s) { session_process(s, 1, "ruby empty.rb"); }

TEST(processes_threads_depth_and_fibers_are_drawn)
{
    draw_still("processes-scene", scenes_processes, VIEW_CAMERA_SCENE);
    draw_still("processes-flame", scenes_processes, VIEW_CAMERA_FLAME);
    draw_still("threads-scene", make_many_threads, VIEW_CAMERA_SCENE);
    draw_still("threads-threads", make_many_threads, VIEW_CAMERA_THREADS);
    draw_still("threads-flame", make_many_threads, VIEW_CAMERA_FLAME);
    draw_still("deep-scene", make_deep, VIEW_CAMERA_SCENE);
    draw_still("deep-flame", make_deep, VIEW_CAMERA_FLAME);
    draw_still("fibers-scene", scenes_fibers, VIEW_CAMERA_SCENE);
    draw_still("fibers-flame", scenes_fibers, VIEW_CAMERA_FLAME);
}

TEST(a_session_without_calls_says_that_it_waits)
{
    picture p;
    session s;
    session_new(&s);
    make_empty(&s);
    picture_open(&p, &(view_desc){.is_software = true});
    picture_draw(&p, &s, &still_status, 0.02);
    picture_keep(&p, "empty");
    CHECK_EQ(p.frame.box_count, 0);
    CHECK(p.frame.quad_count > 20);
    picture_close(&p);
    session_delete(&s);
}
