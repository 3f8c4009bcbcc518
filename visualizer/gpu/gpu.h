/* gpu/gpu.h - boxes, glass and flat quads on a Vulkan device, in a window or off-screen. Knows nothing of traces.
 * For:     app/ (owns the device and the frame loop), view/ (fills gpu_frame).
 * Idea:    a frame is three arrays of instances and a camera; the device draws them in that order: opaque boxes (nearest
 *          first is fastest), translucent boxes, then quads in pixels on top (panels and text from one glyph atlas).
 * Use:     gpu_new; gpu_set_atlas; then gpu_draw each frame; gpu_read_pixels for pictures; gpu_delete.
 * Light:   the z faces of a box show its colour exactly as given; the top is lighter, the x faces and the bottom darker.
 *          Targets are UNORM and all mixing happens on sRGB values, so what is given is what is stored, as in most UIs.
 * Memory:  owns device memory and host-visible instance buffers, doubled as frames ask for; no allocation after that.
 *          Arrays in gpu_frame are borrowed during gpu_draw only.
 * Threads: one: the one that made it (SDL's window thread).
 * Units:   world units of the caller for boxes; pixels of the target, origin top left, for quads; colours 0xAABBGGRR, sRGB.
 * Errors:  calls return 0 or -errno and keep one line of text (gpu_error) that says what failed and what to do.
 */
#ifndef RRTRACE_GPU_GPU_H
#define RRTRACE_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct SDL_Window;
typedef struct gpu gpu;

/* An axis-aligned box; every component low <= high. 32 bytes, the same struct in shaders/. */
typedef struct gpu_box {
    float low[3], high[3];
    uint32_t color; /* alpha only counts in the translucent list */
    uint32_t id;    /* written to the id attachment where the box is seen; 0: none */
} gpu_box;
_Static_assert(sizeof(gpu_box) == 32, "the layout that the shaders read");

/* A flat rectangle in pixels; a pixel is covered when its middle is. A glyph's alpha is multiplied by how far the pixel is
 * inside the outline that the atlas holds as a signed distance; a plain one does not look at uv. */
typedef struct gpu_quad {
    float low_px[2], high_px[2];
    float uv_low[2], uv_high[2]; /* 0 … 1 of the atlas */
    uint32_t color;
    uint32_t flags; /* GPU_QUAD_… */
} gpu_quad;
#define GPU_GLYPH_STEP 25 /* 128 within five texels */
enum { GPU_QUAD_PLAIN = 0, GPU_QUAD_GLYPH = 1 };
_Static_assert(sizeof(gpu_quad) == 40, "the layout that the shaders read");

typedef struct gpu_frame {
    float view_projection[16]; /* column-major, Vulkan clip space (y down, depth 0 … 1, reversed: 1 is near) */
    float eye[3];              /* world; decides which faces of a box are drawn */
    float eye_direction[3];    /* unit, from the eye into the scene; decides instead of eye when is_orthographic */
    bool is_orthographic;
    bool y_is_down;           /* world: false: the +y side of a box is its lit top; true: the -y side */
    float fog_begin, fog_end; /* distance along the view direction (perspective: clip w) where boxes begin to and have
                                 faded into the background; 0, 0: off */
    uint32_t background;
    const gpu_box *boxes;
    const gpu_box *glass; /* translucent: drawn back to front as given, no depth writes */
    const gpu_quad *quads;
    size_t box_count, glass_count, quad_count;
} gpu_frame;

typedef struct gpu_desc {
    struct SDL_Window *window; /* NULL: off-screen, width × height */
    uint32_t width, height;
    bool validation; /* turn on VK_LAYER_KHRONOS_validation; its messages are counted and printed to stderr */
    bool vsync;
} gpu_desc;

typedef enum gpu_status {
    GPU_DRAWN = 0,
    GPU_SKIPPED = 1, /* nothing to draw on now: the window is hidden, minimised, has no area or gives no image. Returns at
                        once or after half a second, so the caller paces itself */
} gpu_status;

/* 0, -ENOTSUP: no Vulkan, no fit device, or no validation layer when asked for; -EINVAL: no size; -ENOMEM, -EIO.
 * *out is set even on failure, for gpu_error and gpu_delete (NULL when there was no memory for it; both take that). */
int gpu_new(gpu **out, const gpu_desc *desc);
void gpu_delete(gpu *g);             /* also half-made, also NULL; waits for frames in flight; before the window goes */
const char *gpu_error(const gpu *g); /* one line on what failed last, "" when nothing has */
const char *gpu_device_name(const gpu *g);
bool gpu_is_software(const gpu *g);          /* a CPU driver such as llvmpipe */
uint32_t gpu_validation_count(const gpu *g); /* messages of the validation layer so far */

/* One 8-bit channel, width × height bytes, row by row: 128 is a glyph's edge, more is inside, by GPU_GLYPH_STEP a texel. May be called again, also
 * with another size; it waits for frames in flight, so call it when glyphs are new rather than each frame. */
int gpu_set_atlas(gpu *g, const uint8_t *pixels, uint32_t width, uint32_t height);

/* Size of the target in pixels, as of the last gpu_draw or gpu_new. */
void gpu_extent(const gpu *g, uint32_t *width, uint32_t *height);

/* Draw one frame and present it (window) or set it going (off-screen; reading waits for it). Two frames are in flight: it
 * waits for the frame before the last. Resizing and a lost surface or swapchain are handled inside. gpu_status, or
 * -E2BIG, -ENOMEM: this frame was too much, a smaller one may do; -EIO: the device or the window is gone for good. */
int gpu_draw(gpu *g, const gpu_frame *frame);

/* What the newest frame that is known to be finished cost: the one before the last, as a rule. */
typedef struct gpu_times {
    double device_ms; /* the device's work alone, by its own clock, without waits for the window; 0: not known (yet) */
} gpu_times;
gpu_times gpu_times_of(const gpu *g);

/* Pictures: the last frame drawn off-screen, or of a window the last frame drawn while gpu_capture was on. Off-screen it is
 * on from the start; turned off, frames have no ids, which saves a software device a tenth or more of its time.
 * gpu_capture: 0, -ENOTSUP: this window cannot be read. gpu_read_pixels: width × height × 4 bytes (of that frame), RGBA,
 * row by row from the top; 0, -ENODATA: there is no such frame yet, -EINVAL: bytes does not fit, -ENOMEM, -EIO. */
int gpu_capture(gpu *g, bool on);
int gpu_read_pixels(gpu *g, uint8_t *rgba, size_t bytes);
/* Id of the box seen at a pixel of that frame, 0: none. */
uint32_t gpu_read_id(gpu *g, uint32_t x_px, uint32_t y_px);

/* Picking while frames go on: call it with the pointer's pixel before each gpu_draw. It never waits. The coming frame notes
 * the id of the box at that pixel; the answer is what the newest finished frame noted (so one or two frames old), 0: none.
 * A frame before which it was not called, or with a pixel outside the target, notes nothing and pays nothing. */
uint32_t gpu_pick(gpu *g, uint32_t x_px, uint32_t y_px);

#endif
