#include "gpu/gpu_internal.h"

#include <SDL.h>
#include <SDL_vulkan.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXTENSIONS_MAX 16
#define DEVICES_MAX 16
static const char VALIDATION_LAYER[] = "VK_LAYER_KHRONOS_validation";

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *message, void *context)
{
    (void)types;
    gpu *g = context;
    g->validation_count++;
    fprintf(stderr, "rrtrace: Vulkan %s: %s\n",
            severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error" : "warning", message->pMessage);
    return VK_FALSE;
}

/* The layer's own findings only: the loader also reports, as 'general', drivers that do not suit this machine. */
static VkDebugUtilsMessengerCreateInfoEXT messenger_info(gpu *g)
{
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = g,
    };
}

static int make_instance(gpu *g)
{
    const char *extensions[EXTENSIONS_MAX];
    unsigned count = 0;
    if (g->window) {
        count = EXTENSIONS_MAX - 1; /* one is kept for debug_utils */
        if (!SDL_Vulkan_GetInstanceExtensions(g->window, &count, extensions))
            return gpu_fail(g, -ENOTSUP, "this display cannot show Vulkan pictures: %s", SDL_GetError());
    }
    if (g->wants_validation)
        extensions[count++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;

    const char *layers[] = {VALIDATION_LAYER};
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(g);
    const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .pNext = &messenger, /* so that vkCreateInstance and vkDestroyInstance are watched too */
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = enabled,
    };
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "rrtrace",
        .apiVersion = VK_API_VERSION_1_1,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = g->wants_validation ? &features : NULL,
        .pApplicationInfo = &application,
        .enabledLayerCount = g->wants_validation ? 1 : 0,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = count,
        .ppEnabledExtensionNames = extensions,
    };
    return gpu_check(g, vkCreateInstance(&info, NULL, &g->instance), "starting Vulkan");
}

int device_make_surface(gpu *g)
{
    vkDestroySurfaceKHR(g->instance, g->surface, NULL);
    g->surface = VK_NULL_HANDLE;
    if (!SDL_Vulkan_CreateSurface(g->window, g->instance, &g->surface))
        return gpu_fail(g, -ENOTSUP, "this window cannot show Vulkan pictures: %s", SDL_GetError());
    return 0;
}

/* The family that draws and, with a window, presents to it. Families that do only one of the two exist on no desktop
 * driver we know; such a device is passed over. */
static bool find_queue_family(const gpu *g, VkPhysicalDevice physical, uint32_t *family)
{
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = FAMILIES_MAX;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        VkBool32 can_present = VK_TRUE;
        if (!(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT))
            continue;
        if (g->window && vkGetPhysicalDeviceSurfaceSupportKHR(physical, i, g->surface, &can_present) != VK_SUCCESS)
            continue;
        *family = i;
        if (can_present)
            return true;
    }
    return false;
}

static bool has_swapchain_extension(VkPhysicalDevice physical)
{
    static VkExtensionProperties all[512]; /* drivers list 100 to 250; one thread, and too large for a stack */
    uint32_t count = sizeof all / sizeof *all;
    VkResult result = vkEnumerateDeviceExtensionProperties(physical, NULL, &count, all);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(all[i].extensionName, VK_KHR_SWAPCHAIN_EXTENSION_NAME) == 0)
            return true;
    return false;
}

/* 0: unfit; else more is better. */
static int rank_device(const gpu *g, VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceFeatures features;
    VkFormatProperties depth;
    uint32_t family;
    vkGetPhysicalDeviceProperties(physical, &properties);
    vkGetPhysicalDeviceFeatures(physical, &features);
    vkGetPhysicalDeviceFormatProperties(physical, DEPTH_FORMAT, &depth);
    if (properties.apiVersion < VK_API_VERSION_1_1 || !features.independentBlend ||
        !(depth.optimalTilingFeatures & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT) ||
        !find_queue_family(g, physical, &family) || (g->window && !has_swapchain_extension(physical)))
        return 0;
    switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 5;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 4;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 3;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return 2;
    default:
        return 1;
    }
}

static int choose_device(gpu *g)
{
    VkPhysicalDevice devices[DEVICES_MAX];
    uint32_t count = DEVICES_MAX;
    VkResult result = vkEnumeratePhysicalDevices(g->instance, &count, devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return gpu_check(g, result, "looking for Vulkan devices");
    int best = 0;
    for (uint32_t i = 0; i < count; i++) {
        int rank = rank_device(g, devices[i]);
        if (rank > best) {
            best = rank;
            g->physical = devices[i];
        }
    }
    if (count == 0)
        return gpu_fail(
            g, -ENOTSUP,
            "no Vulkan device: install a driver (mesa-vulkan-drivers on Debian and Ubuntu has one for any CPU)");
    if (best == 0)
        return gpu_fail(g, -ENOTSUP, "none of %u Vulkan devices can draw %s: a driver for Vulkan 1.1 or newer is needed",
                        count, g->window ? "to this window" : "off-screen");
    vkGetPhysicalDeviceProperties(g->physical, &g->properties);
    vkGetPhysicalDeviceMemoryProperties(g->physical, &g->memory);
    find_queue_family(g, g->physical, &g->queue_family);
    return 0;
}

static int make_device(gpu *g)
{
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = g->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const char *extensions[] = {VK_KHR_SWAPCHAIN_EXTENSION_NAME};
    VkPhysicalDeviceFeatures features = {.independentBlend = VK_TRUE}; /* blended colours beside ids that are not */
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = g->window ? 1 : 0,
        .ppEnabledExtensionNames = extensions,
        .pEnabledFeatures = &features,
    };
    int error = gpu_check(g, vkCreateDevice(g->physical, &info, NULL, &g->device), "opening the Vulkan device");
    if (error)
        return error;
    vkGetDeviceQueue(g->device, g->queue_family, 0, &g->queue);
    return 0;
}

int device_make(gpu *g)
{
    if (volkInitialize() != VK_SUCCESS)
        return gpu_fail(g, -ENOTSUP,
                        "no Vulkan loader (libvulkan.so.1): install libvulkan1 (Debian, Ubuntu), vulkan-loader (Fedora) or "
                        "vulkan-icd-loader (Arch)");
    if (volkGetInstanceVersion() < VK_API_VERSION_1_1)
        return gpu_fail(g, -ENOTSUP, "the Vulkan loader knows only Vulkan 1.0: install a newer libvulkan.so.1");
    int error = make_instance(g);
    if (error)
        return error;
    /* Device functions too are fetched from the instance: the loader's hop costs nothing at our few calls a frame, and
     * two gpus of one process may then have different devices. */
    volkLoadInstance(g->instance);
    if (g->wants_validation) {
        VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(g);
        error =
            gpu_check(g, vkCreateDebugUtilsMessengerEXT(g->instance, &info, NULL, &g->messenger), "turning on validation");
    }
    if (!error && g->window)
        error = device_make_surface(g);
    if (!error)
        error = choose_device(g);
    return error ? error : make_device(g);
}

void device_free(gpu *g)
{
    if (!g->instance)
        return;
    if (g->device)
        vkDestroyDevice(g->device, NULL);
    if (g->surface)
        vkDestroySurfaceKHR(g->instance, g->surface, NULL);
    if (g->messenger)
        vkDestroyDebugUtilsMessengerEXT(g->instance, g->messenger, NULL);
    vkDestroyInstance(g->instance, NULL);
}
