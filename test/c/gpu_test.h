/* test/c/gpu_test.h - what the tests and the benchmark of gpu/ share: a device or a skip, cameras, pictures.
 * Use:     #include it before test.h's main is wanted; gpu_test_open, then gpu calls, then gpu_test_close.
 *          With TEST_PICTURES=FOLDER in the environment, gpu_test_picture writes PNG files there to look at.
 */
#ifndef RRTRACE_GPU_TEST_H
#define RRTRACE_GPU_TEST_H

#include "gpu/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define GPU_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GPU_TEST_THREAD_SANITIZER 1
#endif
#endif

typedef struct gpu_test_vec { float x, y, z; } gpu_test_vec;

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
static inline void gpu_test_orthographic(gpu_frame *frame, gpu_test_vec eye, gpu_test_vec at, float half_height, float aspect,
                                         float range)
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

#endif
