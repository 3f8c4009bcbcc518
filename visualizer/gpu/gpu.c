#include "gpu/gpu_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int gpu_fail(gpu *g, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(g->error, sizeof g->error, format, arguments);
    va_end(arguments);
    return error;
}

int gpu_check(gpu *g, VkResult result, const char *what)
{
    switch (result) {
    case VK_SUCCESS:
        return 0;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return gpu_fail(g, -ENOMEM, "%s: out of memory", what);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return gpu_fail(g, -ENOMEM, "%s: out of memory on %s; a smaller window needs less", what, gpu_device_name(g));
    case VK_ERROR_DEVICE_LOST:
        g->is_lost = true;
        return gpu_fail(g, -EIO, "%s: %s stopped working (device lost); restart to draw again", what, gpu_device_name(g));
    case VK_TIMEOUT:
        g->is_lost = true;
        return gpu_fail(g, -EIO, "%s: %s has not answered for %d s", what, gpu_device_name(g),
                        (int)(WAIT_LIMIT_NS / 1000000000));
    case VK_ERROR_INCOMPATIBLE_DRIVER:
        return gpu_fail(g, -ENOTSUP, "%s: no Vulkan driver: install one (mesa-vulkan-drivers on Debian and Ubuntu)", what);
    case VK_ERROR_LAYER_NOT_PRESENT:
        return gpu_fail(g, -ENOTSUP, "%s: a Vulkan layer is missing: install vulkan-validationlayers", what);
    case VK_ERROR_EXTENSION_NOT_PRESENT:
        return gpu_fail(g, -ENOTSUP, "%s: the Vulkan driver lacks an extension that is needed", what);
    case VK_ERROR_INITIALIZATION_FAILED:
        return gpu_fail(g, -EIO, "%s: the Vulkan driver could not start", what);
    default:
        return gpu_fail(g, -EIO, "%s: Vulkan answered %d", what, (int)result);
    }
}

static int make_all(gpu *g)
{
    int error = device_make(g);
    if (!error)
        error = atlas_make(g);
    if (!error)
        error = readback_make(g);
    if (!error)
        error = pipeline_make_layout(g);
    if (!error)
        error = frame_make(g);
    if (!error)
        error = times_make(g);
    if (!error)
        error = target_make(g);
    if (error >= 0)
        return 0;      /* a window without area is no failure: its target is made when it has one */
    g->is_lost = true; /* half-made: nothing but gpu_error and gpu_delete */
    return error;
}

int gpu_new(gpu **out, const gpu_desc *desc)
{
    gpu *g = *out = mem_zalloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->window = desc->window;
    g->wants_validation = desc->validation;
    g->wants_vsync = desc->vsync;
    g->extent = (VkExtent2D){desc->width, desc->height};
    if (!g->window && (desc->width == 0 || desc->height == 0))
        return gpu_fail(g, -EINVAL, "off-screen target: %u x %u pixels is no size", desc->width, desc->height);
    return make_all(g);
}

void gpu_delete(gpu *g)
{
    if (!g)
        return;
    if (g->device)
        vkDeviceWaitIdle(g->device);
    target_free(g);
    times_free(g);
    frame_free(g);
    pipeline_free(g);
    readback_free(g);
    atlas_free(g);
    device_free(g);
    mem_free(g);
}

const char *gpu_error(const gpu *g) { return g ? g->error : "out of memory"; }
const char *gpu_device_name(const gpu *g) { return g->physical ? g->properties.deviceName : "no device"; }
bool gpu_is_software(const gpu *g) { return g->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }
gpu_times gpu_times_of(const gpu *g) { return g->times; }
uint32_t gpu_validation_count(const gpu *g) { return g->validation_count; }

void gpu_extent(const gpu *g, uint32_t *width, uint32_t *height)
{
    *width = g->extent.width;
    *height = g->extent.height;
}
