/* gpu/atlas.c - the glyph atlas, and commands that run once, outside frames. */
#include "gpu/gpu_internal.h"

#include <errno.h>
#include <string.h>

#define ATLAS_FORMAT VK_FORMAT_R8_UNORM

int once_begin(gpu *g)
{
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    int error = gpu_check(g, vkResetCommandPool(g->device, g->once_pool, 0), "resetting commands");
    return error ? error : gpu_check(g, vkBeginCommandBuffer(g->once, &info), "beginning commands");
}

int once_end(gpu *g)
{
    int error = gpu_check(g, vkEndCommandBuffer(g->once), "ending commands");
    if (error)
        return error;
    VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &g->once,
    };
    error = gpu_check(g, vkResetFences(g->device, 1, &g->once_done), "resetting a fence");
    if (!error)
        error = gpu_check(g, vkQueueSubmit(g->queue, 1, &submit, g->once_done), "submitting commands");
    if (!error)
        error = gpu_check(g, vkWaitForFences(g->device, 1, &g->once_done, VK_TRUE, WAIT_LIMIT_NS), "waiting for commands");
    return error;
}

static int make_once(gpu *g)
{
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = g->queue_family,
    };
    int error = gpu_check(g, vkCreateCommandPool(g->device, &pool, NULL, &g->once_pool), "making a command pool");
    if (error)
        return error;
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = g->once_pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    error = gpu_check(g, vkAllocateCommandBuffers(g->device, &commands, &g->once), "making a command buffer");
    return error ? error : gpu_check(g, vkCreateFence(g->device, &fence, NULL, &g->once_done), "making a fence");
}

int atlas_make(gpu *g)
{
    int error = make_once(g);
    if (error)
        return error;
    VkSamplerCreateInfo sampler = {
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
        .magFilter = VK_FILTER_LINEAR,
        .minFilter = VK_FILTER_LINEAR,
        .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
        .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
        .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
    };
    error = gpu_check(g, vkCreateSampler(g->device, &sampler, NULL, &g->sampler), "making a sampler");
    return error ? error : gpu_set_atlas(g, &(uint8_t){0}, 1, 1); /* until the caller has one: quads may be drawn before */
}

static void record_upload(gpu *g, VkBuffer staging)
{
    const image_step fresh = {VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 0, VK_IMAGE_LAYOUT_UNDEFINED};
    const image_step written = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                                VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL};
    const image_step sampled = {VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT,
                                VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkBufferImageCopy region = {
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
        .imageExtent = {g->atlas_width, g->atlas_height, 1},
    };
    image_barrier(g->once, g->atlas.image, fresh, written);
    vkCmdCopyBufferToImage(g->once, staging, g->atlas.image, written.layout, 1, &region);
    image_barrier(g->once, g->atlas.image, written, sampled);
}

/* Waits for the frames that read the old one: an atlas changes when new letters turn up, not every frame. */
int gpu_set_atlas(gpu *g, const uint8_t *pixels, uint32_t width, uint32_t height)
{
    if (g->is_lost || !g->sampler)
        return -EIO;
    if (width == 0 || height == 0)
        return gpu_fail(g, -EINVAL, "glyph atlas: %u x %u pixels is no size", width, height);
    size_t bytes = (size_t)width * height;
    gpu_buffer staging;
    int error = memory_buffer(g, &staging, bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, MEMORY_UPLOAD);
    if (error)
        return error;
    memcpy(staging.mapped, pixels, bytes);

    error = frame_wait(g, g->frame_number);
    if (!error && (width != g->atlas_width || height != g->atlas_height)) {
        gpu_image fresh;
        error = memory_image(g, &fresh, (VkExtent2D){width, height}, ATLAS_FORMAT,
                             VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);
        if (!error) {
            memory_image_free(g, &g->atlas);
            g->atlas = fresh;
            g->atlas_width = width;
            g->atlas_height = height;
            g->set_version++;
        }
    }
    if (!error)
        error = once_begin(g);
    if (!error) {
        record_upload(g, staging.buffer);
        error = once_end(g);
    }
    memory_buffer_free(g, &staging);
    return error;
}

void atlas_free(gpu *g)
{
    if (!g->device)
        return;
    memory_image_free(g, &g->atlas);
    if (g->sampler)
        vkDestroySampler(g->device, g->sampler, NULL);
    if (g->once_done)
        vkDestroyFence(g->device, g->once_done, NULL);
    if (g->once_pool)
        vkDestroyCommandPool(g->device, g->once_pool, NULL);
}
