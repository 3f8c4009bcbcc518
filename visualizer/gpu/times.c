/* gpu/times.c - how long the device works on a frame.
 * Idea:    two timestamps around the frame's commands, read when the slot's fence has been waited for anyway: what the window
 *          system or the other frame in flight keep us waiting is not in it, unlike in the time that gpu_draw takes.
 */
#include "gpu/gpu_internal.h"

int times_make(gpu *g)
{
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = FAMILIES_MAX;
    vkGetPhysicalDeviceQueueFamilyProperties(g->physical, &count, families);
    uint32_t bits = g->queue_family < count ? families[g->queue_family].timestampValidBits : 0;
    if (bits == 0 || !(g->properties.limits.timestampPeriod > 0))
        return 0; /* a device without a clock: gpu_times.device_ms stays 0 */
    g->time_mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 2 * FRAME_SLOTS,
    };
    return gpu_check(g, vkCreateQueryPool(g->device, &info, NULL, &g->time_pool), "making timestamps");
}

void times_free(gpu *g)
{
    if (g->device && g->time_pool)
        vkDestroyQueryPool(g->device, g->time_pool, NULL);
}

static uint32_t first_of(const gpu *g, const frame_slot *slot) { return 2 * (uint32_t)(slot - g->slots); }

void times_begin(gpu *g, frame_slot *slot)
{
    slot->has_times = g->time_pool != VK_NULL_HANDLE;
    if (!slot->has_times)
        return;
    vkCmdResetQueryPool(slot->commands, g->time_pool, first_of(g, slot), 2);
    vkCmdWriteTimestamp(slot->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, g->time_pool, first_of(g, slot));
}

void times_end(gpu *g, const frame_slot *slot)
{
    if (slot->has_times)
        vkCmdWriteTimestamp(slot->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, g->time_pool, first_of(g, slot) + 1);
}

void times_collect(gpu *g, const frame_slot *slot)
{
    uint64_t ticks[2];
    if (!slot->has_times || slot->number == 0 ||
        vkGetQueryPoolResults(g->device, g->time_pool, first_of(g, slot), 2, sizeof ticks, ticks, sizeof *ticks,
                              VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return;
    uint64_t spent = (ticks[1] - ticks[0]) & g->time_mask;
    g->times.device_ms = (double)spent * (double)g->properties.limits.timestampPeriod * 1e-6;
}
