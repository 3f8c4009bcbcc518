/* A window on an X server of its own (Xvfb): drawing, resizing, hiding, reading back. Skipped where there is no Xvfb. */
#include "test.h"

#include "gpu_test.h"

#include <SDL.h>
#include <fcntl.h>
#include <sys/prctl.h>

#define BACKGROUND 0xff1b1612u

static pid_t server;

static void stop_server(void)
{
    if (server > 0) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
}

/* Xvfb writes the number of the display it took. It ends with the test, however that ends. */
static void start_server(void)
{
    int ends[2];
    char number[16] = "";
    CHECK_EQ(pipe(ends), 0);
    server = fork();
    if (server == 0) {
        char end[16];
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        close(ends[0]);
        snprintf(end, sizeof end, "%d", ends[1]);
        execlp("Xvfb", "Xvfb", "-displayfd", end, "-screen", "0", "1000x800x24", "-nolisten", "tcp", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    atexit(stop_server);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof number - 2 && (got = read(ends[0], number + 1 + length, sizeof number - 2 - length)) > 0) {
        length += (size_t)got;
        if (number[length] == '\n')
            break;
    }
    close(ends[0]);
    if (length == 0)
        TEST_SKIP("Xvfb is not installed");
    number[0] = ':';
    number[length] = '\0';
    setenv("DISPLAY", number, 1);
    setenv("SDL_VIDEODRIVER", "x11", 1);
}

typedef struct window_test {
    SDL_Window *window;
    gpu_test gpu;
} window_test;

static window_test open_window(int width, int height)
{
#ifdef GPU_TEST_THREAD_SANITIZER
    TEST_SKIP("the driver's own threads are not instrumented, so the thread sanitizer would see races that are none");
#endif
    window_test w = {0};
    start_server();
    if (SDL_Init(SDL_INIT_VIDEO) != 0)
        TEST_SKIP(SDL_GetError());
    w.window = SDL_CreateWindow("rrtrace test", 0, 0, width, height, SDL_WINDOW_VULKAN | SDL_WINDOW_RESIZABLE);
    if (!w.window)
        TEST_SKIP(SDL_GetError());
    w.gpu = gpu_test_open(w.window, 0, 0);
    return w;
}

static void close_window(window_test *w)
{
    gpu_test_close(&w->gpu);
    SDL_DestroyWindow(w->window);
    SDL_Quit();
}

static void pump(void)
{
    SDL_Event event;
    while (SDL_PollEvent(&event))
        ;
}

/* A unit a pixel; a box of a third of the window's size in its middle. */
static gpu_frame frame_for(const gpu_test *t, gpu_box *box)
{
    uint32_t width, height;
    gpu_extent(t->g, &width, &height);
    float w = (float)width, h = (float)height;
    gpu_frame frame = {.background = BACKGROUND, .boxes = box, .box_count = 1};
    *box = (gpu_box){{-w / 6, -h / 6, 0}, {w / 6, h / 6, 1}, 0xff2080e0, 42};
    gpu_test_orthographic(&frame, (gpu_test_vec){0, 0, 50}, (gpu_test_vec){0, 0, 0}, h / 2, w / h, 100);
    return frame;
}

static int draw(window_test *w)
{
    gpu_box box;
    gpu_frame frame = frame_for(&w->gpu, &box);
    int status = gpu_draw(w->gpu.g, &frame);
    if (status < 0)
        TEST_FAILED("gpu_draw: %d: %s", status, gpu_error(w->gpu.g));
    return status;
}

/* Resizing reaches the window a little later, so frames are drawn until the picture has the size. */
static void draw_until_size(window_test *w, uint32_t width, uint32_t height)
{
    uint32_t is_width = 0, is_height = 0;
    for (int i = 0; i < 500; i++) {
        pump();
        draw(w);
        gpu_extent(w->gpu.g, &is_width, &is_height);
        if (is_width == width && is_height == height)
            return;
        SDL_Delay(2);
    }
    TEST_FAILED("the picture is %u x %u, wanted %u x %u", is_width, is_height, width, height);
}

static void check_picture(window_test *w)
{
    CHECK_EQ(gpu_capture(w->gpu.g, true), 0);
    CHECK_EQ(draw(w), GPU_DRAWN);
    CHECK_EQ(gpu_capture(w->gpu.g, false), 0);
    gpu_test_read(&w->gpu);
    uint32_t width = w->gpu.width, height = w->gpu.height;
    CHECK_PIXEL(&w->gpu, width / 2, height / 2, 0xff2080e0);
    CHECK_PIXEL(&w->gpu, 1, 1, BACKGROUND);
    CHECK_PIXEL(&w->gpu, width - 2, height - 2, BACKGROUND);
    CHECK_EQ(gpu_read_id(w->gpu.g, width / 2, height / 2), 42);
    CHECK_EQ(gpu_read_id(w->gpu.g, 1, 1), 0);
}

TEST(a_window_shows_a_hundred_frames_and_can_be_read_among_them)
{
    window_test w = open_window(320, 240);
    draw_until_size(&w, 320, 240);
    uint8_t rgba[4];
    CHECK_EQ(gpu_read_pixels(w.gpu.g, rgba, sizeof rgba), -ENODATA); /* nobody asked for a capture yet */
    for (int i = 0; i < 100; i++) {
        pump();
        CHECK_EQ(draw(&w), GPU_DRAWN);
        if (i % 30 == 29)
            check_picture(&w);
    }
    close_window(&w);
}

TEST(a_window_with_vsync_is_drawn_and_resized)
{
    gpu_test_vsync = true;
    window_test w = open_window(320, 240);
    for (int i = 0; i < 6; i++) {
        SDL_SetWindowSize(w.window, 300 + 20 * i, 200);
        draw_until_size(&w, 300 + 20 * (uint32_t)i, 200);
        check_picture(&w);
    }
    close_window(&w);
}

TEST(what_is_captured_is_what_the_screen_shows)
{
    window_test w = open_window(320, 240);
    draw_until_size(&w, 320, 240);
    check_picture(&w);
    for (int i = 0; i < 4; i++) /* later frames show the same */
        draw(&w);
    gpu_test_save(&w.gpu, "window");

    static uint8_t screen[320 * 240 * 4];
    size_t different = sizeof screen;
    for (int tries = 0; tries < 20 && different > 0; tries++) { /* the screen is a moment behind */
        FILE *pipe = popen("import -silent -window root -crop 320x240+0+0 -depth 8 rgba:- 2>/dev/null", "r");
        CHECK(pipe);
        size_t got = fread(screen, 1, sizeof screen, pipe);
        if (pclose(pipe) != 0 || got != sizeof screen)
            TEST_SKIP("no import (ImageMagick) to look at the screen with");
        different = 0;
        for (size_t i = 0; i < sizeof screen; i++)
            different += i % 4 != 3 && screen[i] != w.gpu.rgba[i];
        SDL_Delay(20);
    }
    CHECK_EQ(different, 0);
    close_window(&w);
}

TEST(a_window_can_be_resized_again_and_again)
{
    window_test w = open_window(320, 240);
    draw_until_size(&w, 320, 240);
    for (int i = 0; i < 24; i++) {
        int width = 200 + i * 53 % 400, height = 150 + i * 71 % 300;
        SDL_SetWindowSize(w.window, width, height);
        if (i % 3 == 0) { /* others are overtaken by the next before anything fits */
            draw_until_size(&w, (uint32_t)width, (uint32_t)height);
            check_picture(&w);
        } else {
            pump();
            draw(&w);
        }
    }
    close_window(&w);
}

TEST(the_smallest_window_is_drawn_and_grows_again)
{
    window_test w = open_window(320, 240);
    SDL_SetWindowSize(w.window, 1, 1);
    draw_until_size(&w, 1, 1);
    SDL_SetWindowSize(w.window, 900, 700);
    draw_until_size(&w, 900, 700);
    check_picture(&w);
    close_window(&w);
}

TEST(a_hidden_window_skips_frames_and_is_drawn_when_shown)
{
    window_test w = open_window(320, 240);
    draw_until_size(&w, 320, 240);
    for (int i = 0; i < 3; i++) {
        SDL_HideWindow(w.window);
        pump();
        CHECK_EQ(draw(&w), GPU_SKIPPED);
        if (i == 1)
            SDL_SetWindowSize(w.window, 400, 300);
        SDL_ShowWindow(w.window);
        pump();
        draw_until_size(&w, i < 1 ? 320 : 400, i < 1 ? 240 : 300);
        check_picture(&w);
    }
    close_window(&w);
}

TEST(a_pick_follows_the_pointer_while_the_window_is_resized)
{
    window_test w = open_window(320, 240);
    draw_until_size(&w, 320, 240);
    for (int i = 0; i < 12; i++) {
        int width = 240 + i * 37 % 200, height = 200 + i * 29 % 100;
        uint32_t id = 0;
        SDL_SetWindowSize(w.window, width, height);
        draw_until_size(&w, (uint32_t)width, (uint32_t)height);
        for (int frames = 0; frames < 4; frames++) {
            id = gpu_pick(w.gpu.g, (uint32_t)width / 2, (uint32_t)height / 2);
            draw(&w);
        }
        CHECK_EQ(id, 42);
        for (int frames = 0; frames < 4; frames++) {
            id = gpu_pick(w.gpu.g, 1, 1);
            draw(&w);
        }
        CHECK_EQ(id, 0);
    }
    close_window(&w);
}

TEST(a_gpu_can_be_deleted_with_frames_in_flight_and_made_again_on_the_same_window)
{
    window_test w = open_window(320, 240);
    for (int i = 0; i < 3; i++) {
        draw_until_size(&w, 320, 240);
        draw(&w);
        gpu_test_close(&w.gpu);
        w.gpu = gpu_test_open(w.window, 0, 0);
    }
    draw_until_size(&w, 320, 240);
    check_picture(&w);
    close_window(&w);
}
