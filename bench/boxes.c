/* bench/boxes.c - how long does a frame of N boxes take?
 * Idea:    towers of boxes on lanes, as calls of threads look, from a fixed seed; drawn off-screen in a loop. With two
 *          frames in flight the time from one gpu_draw's return to the next is the time of a frame. Two views: the scene
 *          at an angle and the flat chart from the front. Boxes come nearest lane first, as the header advises.
 * Use:     bench_boxes [width height]; RRTRACE_BENCH_IDS=0 leaves the id attachment out, RRTRACE_BENCH_ORDER=far turns the
 *          order round.
 * Prints:  a table, then `key: value` lines: medians of the time a frame took, and CPU time of all threads a frame, which
 *          on a software device says more on a busy machine.
 */
#include "gpu/gpu.h"

#include "base/mem.h"
#include "../test/c/gpu_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LANES 8
#define LENGTH 24.0f /* of a lane, world units */

typedef struct scene {
    gpu_box *boxes;
    size_t count, wanted;
    uint64_t random;
} scene;

static float random_part(scene *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (float)(s->random * UINT64_C(0x2545F4914F6CDD1D) >> 40) / 16777216.0f;
}

static uint32_t random_color(scene *s)
{
    uint32_t color = 0xff;
    for (int i = 0; i < 3; i++)
        color = color << 8 | (uint32_t)(100 + 120 * random_part(s));
    return color;
}

/* One call and what it calls, none shorter than least, until the lane has its share of boxes. */
static void add_tower(scene *s, float begin, float end, float least, int depth, float z, size_t lane_end)
{
    if (s->count == lane_end || end - begin < least)
        return;
    float y = (float)depth * 0.5f;
    s->boxes[s->count] = (gpu_box){{begin, y, z}, {end, y + 0.46f, z + 0.8f}, random_color(s), (uint32_t)s->count + 1};
    s->count++;
    for (float at = begin; depth < 15;) { /* ends: widths are at least 0.15 * least */
        float width = (end - begin) * (0.15f + 0.5f * random_part(s));
        if (at + width > end)
            return;
        if (random_part(s) < 0.7f)
            add_tower(s, at, at + width * 0.97f, least, depth + 1, z, lane_end);
        at += width;
    }
}

static void build(scene *s)
{
    s->count = 0;
    s->random = UINT64_C(88172645463325252);
    for (size_t lane = 0; lane < LANES; lane++) {
        size_t share = (s->wanted * (lane + 1)) / LANES;
        /* A tower has 1 to a few hundred boxes, so the lane is filled with as many of equal width as its share needs. */
        float width = LENGTH / (1.0f + (float)(s->wanted / LANES) / 24.0f);
        for (float at = -LENGTH / 2; s->count < share; at += width)
            add_tower(s, at, at + width * 0.96f, width / 40, 0, -2.0f * (float)lane, share);
    }
}

static void reverse(scene *s)
{
    for (size_t i = 0; i < s->count / 2; i++) {
        gpu_box swapped = s->boxes[i];
        s->boxes[i] = s->boxes[s->count - 1 - i];
        s->boxes[s->count - 1 - i] = swapped;
    }
}

static double now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct timing {
    double median_ms, min_ms, max_ms, cpu_ms;
} timing;

/* About a second, at least 11 frames, after a warm-up in which pipelines are compiled and buffers grow. */
static int measure(gpu *g, const gpu_frame *frame, timing *out)
{
    enum { MOST = 301, LEAST = 11, WARM_UP = 4 };
    double times[MOST], begin = 0, last = 0, begin_cpu = 0;
    int count = 0;
    for (int i = 0; count < MOST && (count < LEAST || last - begin < 1000.0); i++) {
        int status = gpu_draw(g, frame);
        double now = now_ms(CLOCK_MONOTONIC);
        if (status < 0)
            return status;
        if (i >= WARM_UP)
            times[count++] = now - last;
        else {
            begin = now;
            begin_cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        }
        last = now;
    }
    double cpu_ms = (now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu) / count;
    qsort(times, (size_t)count, sizeof *times, compare);
    *out = (timing){times[count / 2], times[0], times[count - 1], cpu_ms};
    return 0;
}

/* The answer is checked too: a picture in which nothing is seen would be quick. */
static bool shows_boxes(gpu *g, uint32_t width, uint32_t height)
{
    size_t bytes = (size_t)width * height * 4, other = 0;
    uint8_t *rgba = mem_alloc(bytes, 1);
    bool is_read = rgba && gpu_read_pixels(g, rgba, bytes) == 0;
    for (size_t i = 0; is_read && i < bytes; i += 4)
        other += rgba[i] != 0x12;
    mem_free(rgba);
    return other > bytes / 4 / 20;
}

static int run(gpu *g, scene *s, uint32_t width, uint32_t height)
{
    static const char *const names[] = {"1k", "10k", "100k"};
    const char *order = getenv("RRTRACE_BENCH_ORDER");
    timing results[3][2];
    float aspect = (float)width / (float)height;
    printf("%-6s  %-36s  %s\n", "boxes", "scene: median (min, max), CPU", "flat: median (min, max), CPU");
    for (int size = 0; size < 3; size++) {
        s->wanted = size == 0 ? 1000 : size == 1 ? 10000 : 100000;
        build(s);
        if (order && strcmp(order, "far") == 0)
            reverse(s);
        gpu_frame frame = {
            .background = 0xff1b1612, .boxes = s->boxes, .box_count = s->count, .fog_begin = 14, .fog_end = 44};
        for (int view = 0; view < 2; view++) {
            if (view == 0)
                gpu_test_perspective(&frame, (gpu_test_vec){-7, 7.5f, 9}, (gpu_test_vec){0, 2.2f, -3}, aspect);
            else
                gpu_test_orthographic(&frame, (gpu_test_vec){0, 4, 10}, (gpu_test_vec){0, 4, 0}, 5, aspect, 40);
            if (measure(g, &frame, &results[size][view]) || !shows_boxes(g, width, height)) {
                fprintf(stderr, "boxes: %s\n", gpu_error(g)[0] ? gpu_error(g) : "the picture shows no boxes");
                return 1;
            }
        }
        printf("%-6s", names[size]);
        for (int view = 0; view < 2; view++) {
            timing t = results[size][view];
            printf("  %7.2f ms (%6.2f, %6.2f), %7.2f ms", t.median_ms, t.min_ms, t.max_ms, t.cpu_ms);
        }
        printf("\n");
    }
    printf("\nboxes.device: %s\nboxes.size: %ux%u\n", gpu_device_name(g), width, height);
    for (int size = 0; size < 3; size++)
        printf("boxes.scene_ms.%s: %.3f\nboxes.flat_ms.%s: %.3f\n", names[size], results[size][0].median_ms, names[size],
               results[size][1].median_ms);
    return 0;
}

int main(int argc, char **argv)
{
    gpu *g;
    const char *ids = getenv("RRTRACE_BENCH_IDS");
    gpu_desc desc = {.width = argc > 2 ? (uint32_t)atoi(argv[1]) : 1280,
                     .height = argc > 2 ? (uint32_t)atoi(argv[2]) : 720};
    scene s = {.boxes = mem_alloc(100000, sizeof(gpu_box))};
    int status = gpu_new(&g, &desc);
    if (status || !s.boxes) {
        fprintf(stderr, "boxes: %s\n", gpu_error(g));
        gpu_delete(g);
        return 1;
    }
    gpu_capture(g, !(ids && ids[0] == '0'));
    status = run(g, &s, desc.width, desc.height);
    gpu_delete(g);
    mem_free(s.boxes);
    return status;
}
