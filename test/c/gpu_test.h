/* test/c/gpu_test.h - what the tests and the benchmark of gpu/ share: cameras, pictures, a device or a skip.
 * Use:     tests include test.h first: gpu_test_open, gpu calls, gpu_test_close, which also looks for complaints.
 *          With TEST_PICTURES=FOLDER in the environment, gpu_test_save writes PNG files there to look at.
 */
#ifndef RRTRACE_GPU_TEST_H
#define RRTRACE_GPU_TEST_H

#include "gpu/gpu.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gpu_test_vec {
    float x, y, z;
} gpu_test_vec;

static inline gpu_test_vec gpu_test_minus(gpu_test_vec a, gpu_test_vec b)
{
    return (gpu_test_vec){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline float gpu_test_dot(gpu_test_vec a, gpu_test_vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static inline gpu_test_vec gpu_test_cross(gpu_test_vec a, gpu_test_vec b)
{
    return (gpu_test_vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline gpu_test_vec gpu_test_unit(gpu_test_vec a)
{
    float length = sqrtf(gpu_test_dot(a, a));
    return (gpu_test_vec){a.x / length, a.y / length, a.z / length};
}

/* Rows of the view: right, down (clip y goes down), ahead. +y of the world is up. */
static inline void gpu_test_axes(gpu_test_vec eye, gpu_test_vec at, gpu_test_vec axes[3])
{
    gpu_test_vec up = {0, 1, 0};
    axes[2] = gpu_test_unit(gpu_test_minus(at, eye));
    if (fabsf(axes[2].y) > 0.999f)
        up = (gpu_test_vec){0, 0, -1};
    axes[0] = gpu_test_unit(gpu_test_cross(axes[2], up));
    axes[1] = gpu_test_cross(axes[2], axes[0]);
}

static inline void gpu_test_place(gpu_frame *frame, gpu_test_vec eye, gpu_test_vec ahead)
{
    memcpy(frame->eye, &eye, sizeof frame->eye);
    memcpy(frame->eye_direction, &ahead, sizeof frame->eye_direction);
}

/* 50 degrees high, reversed depth: 1 at near, 0 at infinity. */
static inline void gpu_test_perspective(gpu_frame *frame, gpu_test_vec eye, gpu_test_vec at, float aspect)
{
    const float near = 0.1f, scale = 1.0f / tanf(25.0f * 3.14159265f / 180.0f);
    gpu_test_vec axes[3];
    gpu_test_axes(eye, at, axes);
    gpu_test_place(frame, eye, axes[2]);
    const float scales[3] = {scale / aspect, scale, 0};
    float *m = frame->view_projection;
    for (int row = 0; row < 4; row++) {
        gpu_test_vec axis = axes[row < 2 ? row : 2];
        float s = row < 2 ? scales[row] : row == 2 ? 0.0f : 1.0f;
        m[row] = axis.x * s;
        m[4 + row] = axis.y * s;
        m[8 + row] = axis.z * s;
        m[12 + row] = row == 2 ? near : -gpu_test_dot(axis, eye) * s;
    }
    frame->is_orthographic = false;
}

/* half_height world units from the middle to the top; what is between 0 and range ahead of the eye is seen. */
static inline void gpu_test_orthographic(gpu_frame *frame, gpu_test_vec eye, gpu_test_vec at, float half_height,
                                         float aspect, float range)
{
    gpu_test_vec axes[3];
    gpu_test_axes(eye, at, axes);
    gpu_test_place(frame, eye, axes[2]);
    const float scales[3] = {1.0f / (half_height * aspect), 1.0f / half_height, -1.0f / range};
    float *m = frame->view_projection;
    memset(m, 0, sizeof frame->view_projection);
    for (int row = 0; row < 3; row++) {
        m[row] = axes[row].x * scales[row];
        m[4 + row] = axes[row].y * scales[row];
        m[8 + row] = axes[row].z * scales[row];
        m[12 + row] = -gpu_test_dot(axes[row], eye) * scales[row] + (row == 2 ? 1.0f : 0.0f);
    }
    m[15] = 1.0f;
    frame->is_orthographic = true;
}

/* Where a point of the world is seen, in pixels. */
static inline void gpu_test_project(const gpu_frame *frame, gpu_test_vec p, uint32_t width, uint32_t height, uint32_t px[2])
{
    const float *m = frame->view_projection;
    float clip[4];
    for (int row = 0; row < 4; row++)
        clip[row] = m[row] * p.x + m[4 + row] * p.y + m[8 + row] * p.z + m[12 + row];
    px[0] = (uint32_t)((clip[0] / clip[3] * 0.5f + 0.5f) * (float)width);
    px[1] = (uint32_t)((clip[1] / clip[3] * 0.5f + 0.5f) * (float)height);
}

#ifdef RRTRACE_TEST_H /* the rest is for tests */

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>

#if defined(__SANITIZE_THREAD__)
#define GPU_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GPU_TEST_THREAD_SANITIZER 1
#endif
#endif

/* Drivers keep memory for good and are unloaded before the leak check looks, so its reports could name nothing. What gpu/
 * itself owns are Vulkan objects, and the validation layer complains about those that are left. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) { return "detect_leaks=0"; }

typedef struct gpu_test {
    gpu *g;
    uint32_t width, height;
    uint8_t *rgba; /* of the last gpu_test_read */
} gpu_test;

static bool gpu_test_vsync; /* for gpu_test_open */

/* With validation. No driver or no layer here: the test is skipped. */
__attribute__((unused)) static gpu_test gpu_test_open(struct SDL_Window *window, uint32_t width, uint32_t height)
{
    gpu_test t = {.width = width, .height = height};
#ifdef GPU_TEST_THREAD_SANITIZER
    TEST_SKIP("the driver's own threads are not instrumented, so the thread sanitizer would see races that are none");
#endif
    gpu_desc desc = {.window = window, .width = width, .height = height, .validation = true, .vsync = gpu_test_vsync};
    int status = gpu_new(&t.g, &desc);
    if (status == -ENOTSUP)
        TEST_SKIP(gpu_error(t.g));
    if (status)
        TEST_FAILED("gpu_new: %d: %s", status, gpu_error(t.g));
    return t;
}

#define GPU_TEST_DRAW(t, frame)                                                                                            \
    do {                                                                                                                   \
        int status_ = gpu_draw((t)->g, frame);                                                                             \
        if (status_ != GPU_DRAWN)                                                                                          \
            TEST_FAILED("gpu_draw is %d, wanted GPU_DRAWN: %s", status_, gpu_error((t)->g));                               \
    } while (0)

/* Nothing may be complained about, also not on the way out, where objects that are left would be named. */
__attribute__((unused)) static void gpu_test_close(gpu_test *t)
{
    uint32_t complaints = gpu_validation_count(t->g);
    if (complaints)
        TEST_FAILED("the validation layer has %u complaints", complaints);
    FILE *file = tmpfile();
    CHECK(file);
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    gpu_delete(t->g);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    char line[512];
    rewind(file);
    while (fgets(line, sizeof line, file))
        if (strstr(line, "rrtrace: Vulkan"))
            TEST_FAILED("gpu_delete: %s", line);
    fclose(file);
    free(t->rgba);
}

__attribute__((unused)) static void gpu_test_read(gpu_test *t)
{
    gpu_extent(t->g, &t->width, &t->height);
    size_t bytes = (size_t)t->width * t->height * 4;
    t->rgba = realloc(t->rgba, bytes);
    int status = gpu_read_pixels(t->g, t->rgba, bytes);
    if (status)
        TEST_FAILED("gpu_read_pixels: %d: %s", status, gpu_error(t->g));
}

__attribute__((unused)) static uint32_t gpu_test_pixel(const gpu_test *t, uint32_t x, uint32_t y)
{
    if (x >= t->width || y >= t->height)
        TEST_FAILED("no pixel %u, %u", x, y);
    const uint8_t *p = t->rgba + ((size_t)y * t->width + x) * 4;
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

__attribute__((unused)) static void gpu_test_save(const gpu_test *t, const char *name)
{
    const char *folder = getenv("TEST_PICTURES");
    char path[512];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    stbi_write_png(path, (int)t->width, (int)t->height, 4, t->rgba, (int)t->width * 4);
}

#define CHECK_PIXEL(t, x, y, want)                                                                                         \
    do {                                                                                                                   \
        uint32_t pixel_ = gpu_test_pixel(t, x, y), wanted_ = (want);                                                       \
        if (pixel_ != wanted_)                                                                                             \
            TEST_FAILED("pixel %u, %u is %08x, wanted %08x", (unsigned)(x), (unsigned)(y), pixel_, wanted_);               \
    } while (0)

#endif
#endif
