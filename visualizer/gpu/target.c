/* gpu/target.c - what frames are drawn on: a swapchain's images or one off-screen image, with depth, ids and framebuffers.
 * Idea:    the swapchain functions answer in VkResult, where 'surface lost' and 'no area now' (VK_NOT_READY) are news;
 *          target_make is the one place that turns the rest into errors.
 */
#include "gpu/gpu_internal.h"

#include <SDL.h>
#include <SDL_vulkan.h>
#include <errno.h>

#define FORMATS_MAX 256
#define MODES_MAX 16

/* UNORM, so that what the shaders write is what is stored: their colours are sRGB already. */
static VkResult choose_format(const gpu *g, VkSurfaceFormatKHR *out)
{
    static VkSurfaceFormatKHR formats[FORMATS_MAX]; /* one thread, and large for a stack */
    uint32_t count = FORMATS_MAX;
    VkResult result = vkGetPhysicalDeviceSurfaceFormatsKHR(g->physical, g->surface, &count, formats);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return result;
    for (uint32_t i = 0; i < count; i++) {
        *out = formats[i];
        if (out->colorSpace == VK_COLOR_SPACE_SRGB_NONLINEAR_KHR &&
            (out->format == VK_FORMAT_B8G8R8A8_UNORM || out->format == VK_FORMAT_R8G8B8A8_UNORM))
            return VK_SUCCESS;
    }
    return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

/* FIFO is always there. Without vsync: MAILBOX does not tear, IMMEDIATE at least does not wait. */
static VkPresentModeKHR choose_mode(const gpu *g)
{
    VkPresentModeKHR modes[MODES_MAX], best = VK_PRESENT_MODE_FIFO_KHR;
    uint32_t count = MODES_MAX;
    VkResult result = vkGetPhysicalDeviceSurfacePresentModesKHR(g->physical, g->surface, &count, modes);
    if (g->wants_vsync || (result != VK_SUCCESS && result != VK_INCOMPLETE))
        return best;
    for (uint32_t i = 0; i < count; i++)
        if (modes[i] == VK_PRESENT_MODE_MAILBOX_KHR ||
            (modes[i] == VK_PRESENT_MODE_IMMEDIATE_KHR && best != VK_PRESENT_MODE_MAILBOX_KHR))
            best = modes[i];
    return best;
}

/* Some window systems (Wayland) leave the size to us: UINT32_MAX. */
static VkExtent2D choose_extent(const gpu *g, const VkSurfaceCapabilitiesKHR *can)
{
    VkExtent2D extent = can->currentExtent;
    if (extent.width == UINT32_MAX) {
        uint32_t width = (uint32_t)SDL_max(g->drawable_width, 0), height = (uint32_t)SDL_max(g->drawable_height, 0);
        extent.width = SDL_clamp(width, can->minImageExtent.width, can->maxImageExtent.width);
        extent.height = SDL_clamp(height, can->minImageExtent.height, can->maxImageExtent.height);
    }
    return extent;
}

static VkCompositeAlphaFlagBitsKHR choose_alpha(const VkSurfaceCapabilitiesKHR *can)
{
    if (can->supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR)
        return VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
    /* The lowest that is there. Frames end with alpha 1 everywhere, so none shows what lies behind. */
    return (VkCompositeAlphaFlagBitsKHR)(can->supportedCompositeAlpha & (~can->supportedCompositeAlpha + 1));
}

static VkResult make_swapchain(gpu *g)
{
    VkSurfaceCapabilitiesKHR can;
    VkSurfaceFormatKHR format = {0};
    SDL_Vulkan_GetDrawableSize(g->window, &g->drawable_width, &g->drawable_height);
    VkResult result = vkGetPhysicalDeviceSurfaceCapabilitiesKHR(g->physical, g->surface, &can);
    if (result == VK_SUCCESS)
        result = choose_format(g, &format);
    if (result != VK_SUCCESS)
        return result;
    VkExtent2D extent = choose_extent(g, &can);
    if (extent.width == 0 || extent.height == 0)
        return VK_NOT_READY;

    g->can_read_swapchain = can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    uint32_t wanted = SDL_max(can.minImageCount, 3); /* one shown, one waiting, one being drawn */
    VkSwapchainKHR old = g->swapchain;
    VkSwapchainCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
        .surface = g->surface,
        .minImageCount = can.maxImageCount ? SDL_min(wanted, can.maxImageCount) : wanted,
        .imageFormat = format.format,
        .imageColorSpace = format.colorSpace,
        .imageExtent = extent,
        .imageArrayLayers = 1,
        .imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | (g->can_read_swapchain ? VK_IMAGE_USAGE_TRANSFER_SRC_BIT : 0u),
        .imageSharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .preTransform = can.currentTransform,
        .compositeAlpha = choose_alpha(&can),
        .presentMode = choose_mode(g),
        .clipped = VK_TRUE,
        .oldSwapchain = old,
    };
    g->swapchain = VK_NULL_HANDLE;
    result = vkCreateSwapchainKHR(g->device, &info, NULL, &g->swapchain);
    if (old)
        vkDestroySwapchainKHR(g->device, old, NULL);
    if (result != VK_SUCCESS)
        return result;
    g->color_format = format.format;
    g->extent = extent;
    g->image_count = SWAPCHAIN_IMAGES;
    return vkGetSwapchainImagesKHR(g->device, g->swapchain, &g->image_count, g->images);
}

static int make_offscreen(gpu *g)
{
    g->color_format = OFFSCREEN_FORMAT;
    g->image_count = 1;
    int error = memory_image(g, &g->offscreen, g->extent, OFFSCREEN_FORMAT,
                             VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT);
    g->images[0] = g->offscreen.image;
    return error;
}

static int make_framebuffers(gpu *g, uint32_t i)
{
    int error = memory_view(g, g->images[i], g->color_format, &g->views[i]);
    for (int kind = 0; kind < PASS_COUNT && !error; kind++) {
        VkImageView attachments[] = {g->views[i], g->depth.view, g->ids.view};
        VkFramebufferCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO,
            .renderPass = g->passes[kind],
            .attachmentCount = kind == PASS_IDS ? 3 : 2,
            .pAttachments = attachments,
            .width = g->extent.width,
            .height = g->extent.height,
            .layers = 1,
        };
        error =
            gpu_check(g, vkCreateFramebuffer(g->device, &info, NULL, &g->framebuffers[kind][i]), "making a framebuffer");
    }
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    if (!error)
        error = gpu_check(g, vkCreateSemaphore(g->device, &semaphore, NULL, &g->drawn[i]), "making a semaphore");
    return error;
}

/* Everything but the swapchain itself, which the next one may want as its old one. */
static void free_attachments(gpu *g)
{
    for (uint32_t i = 0; i < SWAPCHAIN_IMAGES; i++) {
        for (int kind = 0; kind < PASS_COUNT; kind++) {
            if (g->framebuffers[kind][i])
                vkDestroyFramebuffer(g->device, g->framebuffers[kind][i], NULL);
            g->framebuffers[kind][i] = VK_NULL_HANDLE;
        }
        if (g->drawn[i])
            vkDestroySemaphore(g->device, g->drawn[i], NULL);
        if (g->views[i])
            vkDestroyImageView(g->device, g->views[i], NULL);
        g->drawn[i] = VK_NULL_HANDLE;
        g->views[i] = VK_NULL_HANDLE;
        g->images[i] = VK_NULL_HANDLE;
    }
    g->image_count = 0;
    memory_image_free(g, &g->offscreen);
    memory_image_free(g, &g->depth);
    memory_image_free(g, &g->ids);
}

void target_free(gpu *g)
{
    if (!g->device)
        return;
    free_attachments(g);
    if (g->swapchain)
        vkDestroySwapchainKHR(g->device, g->swapchain, NULL);
    g->swapchain = VK_NULL_HANDLE;
}

/* A surface goes away with its screen or compositor; one new one is tried, since SDL may have a window again. */
static VkResult make_window_target(gpu *g, int *error)
{
    VkResult result = make_swapchain(g);
    if (result != VK_ERROR_SURFACE_LOST_KHR)
        return result;
    target_free(g);
    *error = device_make_surface(g);
    if (*error)
        return result;
    VkBool32 can_present = VK_FALSE; /* asking is also what the specification wants before a swapchain is made */
    result = vkGetPhysicalDeviceSurfaceSupportKHR(g->physical, g->queue_family, g->surface, &can_present);
    return result == VK_SUCCESS && can_present ? make_swapchain(g) : VK_ERROR_SURFACE_LOST_KHR;
}

int target_make(gpu *g)
{
    int error = 0;
    free_attachments(g);
    g->is_stale = true; /* until all of it stands */
    if (g->window) {
        VkResult result = make_window_target(g, &error);
        if (error)
            return error;
        if (result == VK_NOT_READY)
            return GPU_SKIPPED;
        if (result == VK_ERROR_SURFACE_LOST_KHR || result == VK_ERROR_NATIVE_WINDOW_IN_USE_KHR)
            return gpu_fail(g, -EIO, "the window can no longer be drawn to; restart to draw again");
        if (result == VK_ERROR_FORMAT_NOT_SUPPORTED)
            return gpu_fail(g, -ENOTSUP, "this window has no 8-bit RGBA format on %s", gpu_device_name(g));
        error = gpu_check(g, result, "making the window's images");
    } else {
        error = make_offscreen(g);
    }
    if (!error)
        error = pipeline_make(g);
    if (!error)
        error = memory_image(g, &g->depth, g->extent, DEPTH_FORMAT, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT);
    if (!error)
        error = memory_image(g, &g->ids, g->extent, ID_FORMAT,
                             VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT);
    for (uint32_t i = 0; i < g->image_count && !error; i++)
        error = make_framebuffers(g, i);
    g->is_stale = error != 0;
    return error;
}

int target_refresh(gpu *g)
{
    if (g->window) {
        int width, height;
        if (SDL_GetWindowFlags(g->window) & (SDL_WINDOW_MINIMIZED | SDL_WINDOW_HIDDEN))
            return GPU_SKIPPED;
        /* Where the surface has no size of its own, only SDL knows that the window's changed. */
        SDL_Vulkan_GetDrawableSize(g->window, &width, &height);
        if (width != g->drawable_width || height != g->drawable_height)
            g->is_stale = true;
    }
    if (!g->is_stale)
        return 0;
    int error = gpu_check(g, vkDeviceWaitIdle(g->device), "waiting before a new size");
    return error ? error : target_make(g);
}
