#include "gpu/gpu_internal.h"

#include <errno.h>

#define RESERVE_LEAST 65536 /* so that the first few frames do not grow a buffer each */

static const VkMemoryPropertyFlags HOST = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/* What to try, best first. Upload: where the device can read fast while we can write, if there is such memory (often small,
 * so it may be full). Readback: cached, since the CPU reads uncached memory at a crawl. */
static const VkMemoryPropertyFlags wishes[][2] = {
    [MEMORY_DEVICE] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
    [MEMORY_UPLOAD] = {HOST | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, HOST},
    [MEMORY_READBACK] = {HOST | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, HOST},
};

static VkResult allocate(gpu *g, VkMemoryRequirements need, memory_use use, VkDeviceMemory *out)
{
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (int wish = 0; wish < 2; wish++) {
        for (uint32_t type = 0; type < g->memory.memoryTypeCount; type++) {
            VkMemoryPropertyFlags wanted = wishes[use][wish];
            if (!(need.memoryTypeBits & 1u << type) || (g->memory.memoryTypes[type].propertyFlags & wanted) != wanted)
                continue;
            VkMemoryAllocateInfo info = {
                .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                .allocationSize = need.size,
                .memoryTypeIndex = type,
            };
            result = vkAllocateMemory(g->device, &info, NULL, out);
            if (result == VK_SUCCESS)
                return result;
        }
    }
    return result;
}

int memory_buffer(gpu *g, gpu_buffer *out, VkDeviceSize bytes, VkBufferUsageFlags usage, memory_use use)
{
    *out = (gpu_buffer){.bytes = bytes};
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = usage,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = vkCreateBuffer(g->device, &info, NULL, &out->buffer);
    if (result == VK_SUCCESS) {
        VkMemoryRequirements need;
        vkGetBufferMemoryRequirements(g->device, out->buffer, &need);
        result = allocate(g, need, use, &out->memory);
    }
    if (result == VK_SUCCESS)
        result = vkBindBufferMemory(g->device, out->buffer, out->memory, 0);
    if (result == VK_SUCCESS)
        result = vkMapMemory(g->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped);
    if (result != VK_SUCCESS)
        memory_buffer_free(g, out);
    return gpu_check(g, result, "making a buffer");
}

int memory_reserve(gpu *g, gpu_buffer *buffer, VkDeviceSize bytes, VkDeviceSize limit, VkBufferUsageFlags usage,
                   memory_use use, bool *is_new)
{
    *is_new = false;
    if (buffer->buffer && buffer->bytes >= bytes)
        return 0;
    VkDeviceSize grown = buffer->bytes * 2 > RESERVE_LEAST ? buffer->bytes * 2 : RESERVE_LEAST;
    if (grown > limit)
        grown = limit;
    memory_buffer_free(g, buffer);
    *is_new = true;
    return memory_buffer(g, buffer, bytes > grown ? bytes : grown, usage, use);
}

void memory_buffer_free(gpu *g, gpu_buffer *buffer)
{
    if (buffer->buffer)
        vkDestroyBuffer(g->device, buffer->buffer, NULL);
    if (buffer->memory)
        vkFreeMemory(g->device, buffer->memory, NULL); /* unmaps it */
    *buffer = (gpu_buffer){0};
}

int memory_view(gpu *g, VkImage image, VkFormat format, VkImageView *out)
{
    VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image,
        .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = format,
        .subresourceRange = {format == DEPTH_FORMAT ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    return gpu_check(g, vkCreateImageView(g->device, &info, NULL, out), "making an image view");
}

int memory_image(gpu *g, gpu_image *out, VkExtent2D extent, VkFormat format, VkImageUsageFlags usage)
{
    *out = (gpu_image){0};
    VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = format,
        .extent = {extent.width, extent.height, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = usage,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
    uint32_t limit = g->properties.limits.maxImageDimension2D;
    if (extent.width > limit || extent.height > limit)
        return gpu_fail(g, -EINVAL, "a picture of %u x %u pixels is too large for %s: at most %u a side", extent.width,
                        extent.height, gpu_device_name(g), limit);
    VkResult result = vkCreateImage(g->device, &info, NULL, &out->image);
    if (result == VK_SUCCESS) {
        VkMemoryRequirements need;
        vkGetImageMemoryRequirements(g->device, out->image, &need);
        result = allocate(g, need, MEMORY_DEVICE, &out->memory);
    }
    if (result == VK_SUCCESS)
        result = vkBindImageMemory(g->device, out->image, out->memory, 0);
    int error = gpu_check(g, result, "making an image");
    if (!error)
        error = memory_view(g, out->image, format, &out->view);
    if (error)
        memory_image_free(g, out);
    return error;
}

void memory_image_free(gpu *g, gpu_image *image)
{
    if (image->view)
        vkDestroyImageView(g->device, image->view, NULL);
    if (image->image)
        vkDestroyImage(g->device, image->image, NULL);
    if (image->memory)
        vkFreeMemory(g->device, image->memory, NULL);
    *image = (gpu_image){0};
}

void image_barrier(VkCommandBuffer commands, VkImage image, image_step from, image_step to)
{
    VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = from.access,
        .dstAccessMask = to.access,
        .oldLayout = from.layout,
        .newLayout = to.layout,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    vkCmdPipelineBarrier(commands, from.stage, to.stage, 0, 0, NULL, 0, NULL, 1, &barrier);
}
