/* gpu/readback.c - pictures and ids back to the CPU.
 * Idea:    off-screen, the last frame's images stay as they are, so they are copied when somebody asks. A window's image is
 *          the window system's once presented, so a frame that is to be read copies itself. A pick copies one pixel.
 */
#include "gpu/gpu_internal.h"

#include <errno.h>
#include <string.h>

int readback_make(gpu *g)
{
    g->wants_capture = !g->window;
    g->pick_x = g->pick_y = UINT32_MAX;
    return memory_buffer(g, &g->pick_words, FRAME_SLOTS * sizeof(uint32_t), VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                         MEMORY_READBACK);
}

void readback_free(gpu *g)
{
    if (!g->device)
        return;
    memory_buffer_free(g, &g->capture);
    memory_buffer_free(g, &g->pick_words);
}

static bool is_pick_inside(const gpu *g)
{
    return g->wants_pick && g->pick_x < g->extent.width && g->pick_y < g->extent.height;
}

bool readback_needs_ids(const gpu *g) { return g->wants_capture || is_pick_inside(g); }

static size_t color_bytes(VkExtent2D extent) { return (size_t)extent.width * extent.height * 4; }

static int reserve_capture(gpu *g)
{
    bool is_new;
    size_t bytes = 2 * color_bytes(g->extent);
    if (g->capture.bytes >= bytes)
        return 0;
    int error = frame_wait(g, g->frame_number); /* a frame in flight may be writing to it */
    g->capture_number = 0;
    return error ? error
                 : memory_reserve(g, &g->capture, bytes, bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT, MEMORY_READBACK, &is_new);
}

/* The newest finished frame that was asked for an id answers. The two slots are looked at in any order. */
static void collect_picks(gpu *g)
{
    for (uint32_t i = 0; i < FRAME_SLOTS; i++) {
        frame_slot *slot = &g->slots[i];
        if (!slot->has_pick || slot->number <= g->picked_number || vkGetFenceStatus(g->device, slot->done) != VK_SUCCESS)
            continue;
        g->picked = ((const uint32_t *)g->pick_words.mapped)[slot->pick_index];
        g->picked_number = slot->number;
    }
}

int readback_prepare(gpu *g, frame_slot *slot)
{
    collect_picks(g); /* before the slot's word is written anew */
    slot->has_pick = false;
    return g->window && g->wants_capture ? reserve_capture(g) : 0;
}

static VkBufferImageCopy whole(VkExtent2D extent, VkDeviceSize offset)
{
    return (VkBufferImageCopy){
        .bufferOffset = offset,
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
        .imageExtent = {extent.width, extent.height, 1},
    };
}

static void transfer_barrier(VkCommandBuffer commands, VkPipelineStageFlags to, VkAccessFlags access)
{
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = access,
    };
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* Copies the picture, and ids if the frame has them. The image must be in TRANSFER_SRC_OPTIMAL. */
static void copy_all(gpu *g, VkCommandBuffer commands, VkImage image, bool has_ids)
{
    VkBufferImageCopy colors = whole(g->extent, 0), ids = whole(g->extent, color_bytes(g->extent));
    /* An earlier frame's copy may still be under way. */
    transfer_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, g->capture.buffer, 1, &colors);
    if (has_ids)
        vkCmdCopyImageToBuffer(commands, g->ids.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, g->capture.buffer, 1, &ids);
    transfer_barrier(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

static void copy_window(gpu *g, VkCommandBuffer commands, VkImage image)
{
    const image_step drawn = {VK_PIPELINE_STAGE_TRANSFER_BIT, 0, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR};
    const image_step copied = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT,
                               VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL};
    const image_step shown = {VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR};
    image_barrier(commands, image, drawn, copied);
    copy_all(g, commands, image, true);
    image_barrier(commands, image, copied, shown);
}

static void copy_pick(gpu *g, frame_slot *slot)
{
    VkBufferImageCopy pixel = {
        .bufferOffset = slot->pick_index * sizeof(uint32_t),
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
        .imageOffset = {(int32_t)g->pick_x, (int32_t)g->pick_y, 0},
        .imageExtent = {1, 1, 1},
    };
    vkCmdCopyImageToBuffer(slot->commands, g->ids.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, g->pick_words.buffer, 1,
                           &pixel);
    transfer_barrier(slot->commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    slot->has_pick = true;
}

void readback_record(gpu *g, frame_slot *slot, uint32_t image_index)
{
    if (g->window && g->wants_capture)
        copy_window(g, slot->commands, g->images[image_index]);
    if (is_pick_inside(g))
        copy_pick(g, slot);
}

void readback_submitted(gpu *g, const frame_slot *slot)
{
    g->frame_has_ids = readback_needs_ids(g);
    g->wants_pick = false;
    if (g->window && g->wants_capture) {
        g->capture_number = slot->number;
        g->capture_extent = g->extent;
        g->capture_format = g->color_format;
        g->has_capture_ids = true;
    }
}

int gpu_capture(gpu *g, bool on)
{
    if (on && g->window && g->swapchain && !g->can_read_swapchain)
        return gpu_fail(g, -ENOTSUP, "pictures of this window cannot be taken on %s", gpu_device_name(g));
    g->wants_capture = on;
    return 0;
}

static int copy_offscreen(gpu *g)
{
    int error = reserve_capture(g);
    if (!error)
        error = once_begin(g);
    if (error)
        return error;
    copy_all(g, g->once, g->offscreen.image, g->frame_has_ids);
    error = once_end(g);
    if (error)
        return error;
    g->capture_number = g->frame_number;
    g->capture_extent = g->extent;
    g->capture_format = g->color_format;
    g->has_capture_ids = g->frame_has_ids;
    return 0;
}

/* The capture buffer holds a finished frame, or there is none. */
static int fetch(gpu *g)
{
    if (g->is_lost)
        return -EIO;
    if (!g->window && g->frame_number && g->capture_number != g->frame_number)
        return copy_offscreen(g);
    if (!g->capture_number)
        return gpu_fail(g, -ENODATA, "no frame has been drawn that could be read: call gpu_capture, then gpu_draw");
    return frame_wait(g, g->frame_number); /* later frames may be writing to the buffer too */
}

int gpu_read_pixels(gpu *g, uint8_t *rgba, size_t bytes)
{
    int error = fetch(g);
    if (error)
        return error;
    if (bytes != color_bytes(g->capture_extent))
        return gpu_fail(g, -EINVAL, "a picture of %u x %u pixels is not %zu bytes", g->capture_extent.width,
                        g->capture_extent.height, bytes);
    const uint8_t *from = g->capture.mapped;
    if (g->capture_format == VK_FORMAT_R8G8B8A8_UNORM) {
        memcpy(rgba, from, bytes);
        return 0;
    }
    for (size_t i = 0; i < bytes; i += 4) { /* BGRA */
        rgba[i] = from[i + 2];
        rgba[i + 1] = from[i + 1];
        rgba[i + 2] = from[i];
        rgba[i + 3] = from[i + 3];
    }
    return 0;
}

uint32_t gpu_read_id(gpu *g, uint32_t x_px, uint32_t y_px)
{
    if (fetch(g) || !g->has_capture_ids || x_px >= g->capture_extent.width || y_px >= g->capture_extent.height)
        return 0;
    const uint32_t *ids = (const uint32_t *)((const char *)g->capture.mapped + color_bytes(g->capture_extent));
    return ids[(size_t)y_px * g->capture_extent.width + x_px];
}

uint32_t gpu_pick(gpu *g, uint32_t x_px, uint32_t y_px)
{
    if (g->is_lost || !g->device)
        return 0;
    collect_picks(g);
    g->wants_pick = true;
    g->pick_x = x_px;
    g->pick_y = y_px;
    /* An answer from before a pause in asking says nothing about now. */
    bool is_recent = g->picked_number && g->frame_number - g->picked_number <= FRAME_SLOTS;
    return is_recent && is_pick_inside(g) ? g->picked : 0;
}
