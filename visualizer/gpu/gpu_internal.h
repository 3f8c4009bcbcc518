/* gpu/gpu_internal.h - what the files of this room share.
 * For:     device.c, memory.c, target.c, pipeline.c, frame.c, times.c, readback.c; nobody outside.
 * Idea:    one struct holds every Vulkan object; all start as VK_NULL_HANDLE and are destroyed only if made, so the way out
 *          of a failure and gpu_delete are the same calls in the same order: readback, frames, pipelines, targets, device.
 * Errors:  functions that can fail return 0 or -errno after gpu_fail has written the line; gpu_status where named.
 */
#ifndef RRTRACE_GPU_INTERNAL_H
#define RRTRACE_GPU_INTERNAL_H

#include "gpu/gpu.h"

#include <volk.h>

/* Two frames in flight: the device draws one while the next is prepared. More would only add delay. */
#define FRAME_SLOTS 2
#define FAMILIES_MAX 32 /* of queues, on one device */
#define SWAPCHAIN_IMAGES 16 /* more than any driver gives for a wish of three */

/* No wait is without an end: a device that takes longer than this for a frame has hung. Long, since a software device
 * under a sanitizer and a debugger is still expected to come back. */
#define WAIT_LIMIT_NS UINT64_C(30000000000)

#define DEPTH_FORMAT VK_FORMAT_D32_SFLOAT
#define ID_FORMAT VK_FORMAT_R32_UINT
#define OFFSCREEN_FORMAT VK_FORMAT_R8G8B8A8_UNORM

typedef struct gpu_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    void *mapped; /* host visible and coherent: always mapped */
    VkDeviceSize bytes;
} gpu_buffer;

typedef struct gpu_image {
    VkImage image;
    VkDeviceMemory memory;
    VkImageView view;
} gpu_image;

/* What one frame in flight owns. Its fence is signalled when the device no longer reads any of it. */
typedef struct frame_slot {
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence done;
    VkSemaphore acquired; /* window: the image that vkAcquireNextImageKHR gave is free to be drawn on */
    VkDescriptorSet set;
    gpu_buffer boxes;     /* gpu_box[box_count + glass_count] */
    gpu_buffer quads;     /* gpu_quad[quad_count] */
    uint32_t set_version; /* of g->set_version when the set was last written; 0: never */
    uint32_t pick_index;  /* the frame's pick goes to this word of pick_words */
    bool has_pick;        /* the frame was asked to note an id */
    bool has_times;       /* the frame has noted when the device began and ended it */
    uint64_t number;      /* of the frame, from 1; 0: not used yet */
} frame_slot;

/* A frame with ids has one attachment more, so each kind has a render pass and pipelines of its own. */
typedef enum pass_kind { PASS_PLAIN, PASS_IDS, PASS_COUNT } pass_kind;

struct gpu {
    char error[320];
    struct SDL_Window *window; /* borrowed; NULL: off-screen */
    bool wants_validation, wants_vsync;
    bool is_lost; /* the device is gone; nothing but gpu_delete helps */

    /* device.c */
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    uint32_t validation_count;
    VkSurfaceKHR surface;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    uint32_t queue_family;
    VkQueue queue;

    /* target.c */
    VkSwapchainKHR swapchain;
    VkFormat color_format;
    VkExtent2D extent;
    int drawable_width, drawable_height; /* SDL's answer when the swapchain was made: where the surface cannot tell */
    bool is_stale;                       /* the swapchain wants to be made anew before the next frame */
    bool can_read_swapchain;
    uint32_t image_count;
    VkImage images[SWAPCHAIN_IMAGES]; /* of the swapchain; off-screen: [0] = offscreen.image */
    VkImageView views[SWAPCHAIN_IMAGES];
    VkSemaphore drawn[SWAPCHAIN_IMAGES]; /* one an image, since presenting says nothing about when it is done with one */
    VkFramebuffer framebuffers[PASS_COUNT][SWAPCHAIN_IMAGES];
    gpu_image offscreen, depth, ids;

    /* pipeline.c */
    VkRenderPass passes[PASS_COUNT];
    VkFormat passes_format; /* that the passes and pipelines were made for */
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline box_pipelines[PASS_COUNT], glass_pipelines[PASS_COUNT], quad_pipelines[PASS_COUNT];

    /* frame.c */
    frame_slot slots[FRAME_SLOTS];
    uint64_t frame_number; /* of the newest frame submitted */
    VkDescriptorPool set_pool;
    uint32_t set_version; /* goes up when what every set points at changes (the atlas) */
    gpu_buffer box_indices, quad_indices;

    /* times.c */
    VkQueryPool time_pool; /* two timestamps a slot; null: the device has no clock */
    uint64_t time_mask;
    gpu_times times;

    /* atlas.c */
    gpu_image atlas;
    uint32_t atlas_width, atlas_height;
    VkSampler sampler;
    VkCommandPool once_pool;
    VkCommandBuffer once;
    VkFence once_done;

    /* readback.c */
    bool wants_capture;
    gpu_buffer capture; /* colours, then ids: 4 bytes a pixel each */
    VkExtent2D capture_extent;
    VkFormat capture_format;
    uint64_t capture_number; /* frame in the buffer; 0: none */
    bool has_capture_ids;
    bool frame_has_ids;    /* the newest frame wrote ids */
    gpu_buffer pick_words; /* one u32 a slot */
    bool wants_pick;
    uint32_t pick_x, pick_y, picked;
    uint64_t picked_number; /* the frame that picked comes from */
};

/* gpu.c */
int gpu_fail(gpu *g, int error, const char *format, ...) __attribute__((format(printf, 3, 4))); /* returns error */
int gpu_check(gpu *g, VkResult result, const char *what); /* 0 when VK_SUCCESS, else -errno with a line "what: why" */

/* device.c */
int device_make(gpu *g);
int device_make_surface(gpu *g); /* also after the old one was lost */
void device_free(gpu *g);

/* memory.c */
typedef enum memory_use {
    MEMORY_DEVICE,   /* images */
    MEMORY_UPLOAD,   /* written by us once, read by the device */
    MEMORY_READBACK, /* written by the device, read by us */
} memory_use;
int memory_buffer(gpu *g, gpu_buffer *out, VkDeviceSize bytes, VkBufferUsageFlags usage, memory_use use);
/* At least bytes, doubled (up to limit) when made anew; what was in it is lost. *is_new says so. The device must be done
 * with it. */
int memory_reserve(gpu *g, gpu_buffer *buffer, VkDeviceSize bytes, VkDeviceSize limit, VkBufferUsageFlags usage,
                   memory_use use, bool *is_new);
void memory_buffer_free(gpu *g, gpu_buffer *buffer);
int memory_image(gpu *g, gpu_image *out, VkExtent2D extent, VkFormat format, VkImageUsageFlags usage);
int memory_view(gpu *g, VkImage image, VkFormat format, VkImageView *out);
void memory_image_free(gpu *g, gpu_image *image);

/* target.c */
int target_make(gpu *g);    /* gpu_status or -errno; makes everything that has the target's size */
int target_refresh(gpu *g); /* before a frame: makes it anew if it no longer fits. gpu_status or -errno */
void target_free(gpu *g);

/* pipeline.c */
int pipeline_make_layout(gpu *g); /* first: sets are laid out by it */
int pipeline_make(gpu *g);        /* for g->color_format; nothing to do when they fit already */
void pipeline_free(gpu *g);

/* frame.c */
int frame_make(gpu *g);
void frame_free(gpu *g);
int frame_wait(gpu *g, uint64_t number); /* until that frame and all before it are finished */

/* times.c */
int times_make(gpu *g);
void times_free(gpu *g);
void times_begin(gpu *g, frame_slot *slot); /* outside the render pass */
void times_end(gpu *g, const frame_slot *slot);
void times_collect(gpu *g, const frame_slot *slot); /* the slot's frame is finished */

/* atlas.c */
int atlas_make(gpu *g);
void atlas_free(gpu *g);
int once_begin(gpu *g); /* record into g->once, then once_end submits and waits */
int once_end(gpu *g);

/* readback.c */
int readback_make(gpu *g);
void readback_free(gpu *g);
bool readback_needs_ids(const gpu *g);
int readback_prepare(gpu *g, frame_slot *slot); /* before recording: buffers large enough, the slot's pick settled */
void readback_record(gpu *g, frame_slot *slot, uint32_t image_index); /* after the render pass */
void readback_submitted(gpu *g, const frame_slot *slot);              /* the frame has its number and is on its way */

/* Also used between files: a barrier on a colour image's only level. */
typedef struct image_step {
    VkPipelineStageFlags stage;
    VkAccessFlags access;
    VkImageLayout layout;
} image_step;
void image_barrier(VkCommandBuffer commands, VkImage image, image_step from, image_step to);

#endif
