/* gpu/frame.c - one frame: wait for its slot, copy the instances in, record, submit, present. */
#include "gpu/gpu_internal.h"

#include "shaders/layout.glsl"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A pattern of 16-bit indices covers this many instances; larger lists are drawn in runs, each with its vertex offset. So
 * the pattern never grows, and the draws of 100,000 boxes are 13. */
#define BOX_RUN (65536 / BOX_VERTICES)
#define QUAD_RUN (65536 / QUAD_VERTICES)
#define BOX_INDICES 18
#define QUAD_INDICES 6

/* How long a window may keep us from the next image (it may be covered, or its compositor busy) before we skip the frame.
 */
#define ACQUIRE_LIMIT_NS UINT64_C(500000000)

/* Three faces of two triangles. Each triangle begins with its face's own corner: see shaders/box_vert.glsl. */
static const uint16_t box_pattern[BOX_INDICES] = {1, 3, 7, 1, 7, 5, 2, 3, 7, 2, 7, 6, 4, 5, 7, 4, 7, 6};
static const uint16_t quad_pattern[QUAD_INDICES] = {0, 1, 2, 2, 1, 3};

static int make_indices(gpu *g, gpu_buffer *out, const uint16_t *pattern, size_t count, uint32_t stride, size_t run)
{
    int error = memory_buffer(g, out, run * count * sizeof *pattern, VK_BUFFER_USAGE_INDEX_BUFFER_BIT, MEMORY_UPLOAD);
    if (error)
        return error;
    uint16_t *index = out->mapped;
    for (size_t i = 0; i < run; i++)
        for (size_t k = 0; k < count; k++)
            *index++ = (uint16_t)(i * stride + pattern[k]);
    return 0;
}

static int make_sets(gpu *g)
{
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * FRAME_SLOTS},
                                          {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, FRAME_SLOTS}};
    VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = FRAME_SLOTS,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    int error = gpu_check(g, vkCreateDescriptorPool(g->device, &info, NULL, &g->set_pool), "making a descriptor pool");
    for (uint32_t i = 0; i < FRAME_SLOTS && !error; i++) {
        VkDescriptorSetAllocateInfo set = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = g->set_pool,
            .descriptorSetCount = 1,
            .pSetLayouts = &g->set_layout,
        };
        error = gpu_check(g, vkAllocateDescriptorSets(g->device, &set, &g->slots[i].set), "making a descriptor set");
    }
    return error;
}

static int make_slot(gpu *g, frame_slot *slot)
{
    VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = g->queue_family,
    };
    int error = gpu_check(g, vkCreateCommandPool(g->device, &pool, NULL, &slot->pool), "making a command pool");
    if (error)
        return error;
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = slot->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, .flags = VK_FENCE_CREATE_SIGNALED_BIT};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    error = gpu_check(g, vkAllocateCommandBuffers(g->device, &commands, &slot->commands), "making a command buffer");
    if (!error)
        error = gpu_check(g, vkCreateFence(g->device, &fence, NULL, &slot->done), "making a fence");
    if (!error)
        error = gpu_check(g, vkCreateSemaphore(g->device, &semaphore, NULL, &slot->acquired), "making a semaphore");
    return error;
}

int frame_make(gpu *g)
{
    int error = make_indices(g, &g->box_indices, box_pattern, BOX_INDICES, BOX_VERTICES, BOX_RUN);
    if (!error)
        error = make_indices(g, &g->quad_indices, quad_pattern, QUAD_INDICES, QUAD_VERTICES, QUAD_RUN);
    if (!error)
        error = make_sets(g);
    for (uint32_t i = 0; i < FRAME_SLOTS && !error; i++) {
        g->slots[i].pick_index = i;
        error = make_slot(g, &g->slots[i]);
    }
    return error;
}

void frame_free(gpu *g)
{
    if (!g->device)
        return;
    for (uint32_t i = 0; i < FRAME_SLOTS; i++) {
        frame_slot *slot = &g->slots[i];
        memory_buffer_free(g, &slot->boxes);
        memory_buffer_free(g, &slot->quads);
        if (slot->acquired)
            vkDestroySemaphore(g->device, slot->acquired, NULL);
        if (slot->done)
            vkDestroyFence(g->device, slot->done, NULL);
        if (slot->pool)
            vkDestroyCommandPool(g->device, slot->pool, NULL);
    }
    memory_buffer_free(g, &g->box_indices);
    memory_buffer_free(g, &g->quad_indices);
    if (g->set_pool)
        vkDestroyDescriptorPool(g->device, g->set_pool, NULL);
}

int frame_wait(gpu *g, uint64_t number)
{
    for (uint32_t i = 0; i < FRAME_SLOTS; i++) {
        frame_slot *slot = &g->slots[i];
        if (slot->number == 0 || slot->number > number)
            continue;
        int error = gpu_check(g, vkWaitForFences(g->device, 1, &slot->done, VK_TRUE, WAIT_LIMIT_NS), "waiting for a frame");
        if (error)
            return error;
    }
    return 0;
}

static void write_set(gpu *g, frame_slot *slot)
{
    const VkDescriptorBufferInfo boxes = {slot->boxes.buffer, 0, VK_WHOLE_SIZE};
    const VkDescriptorBufferInfo quads = {slot->quads.buffer, 0, VK_WHOLE_SIZE};
    const VkDescriptorImageInfo atlas = {g->sampler, g->atlas.view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet writes[] = {
        {.dstBinding = BINDING_BOXES, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &boxes},
        {.dstBinding = BINDING_QUADS, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &quads},
        {.dstBinding = BINDING_ATLAS, .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, .pImageInfo = &atlas},
    };
    for (int i = 0; i < 3; i++) {
        writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        writes[i].dstSet = slot->set;
        writes[i].descriptorCount = 1;
    }
    vkUpdateDescriptorSets(g->device, 3, writes, 0, NULL);
    slot->set_version = g->set_version;
}

/* The device must be done with the slot: its buffers may be made anew here. */
static int upload(gpu *g, frame_slot *slot, const gpu_frame *frame)
{
    /* Vertex offsets are int32: 2^28 boxes. Far less fits a storage buffer on most devices. */
    size_t limit = g->properties.limits.maxStorageBufferRange;
    size_t box_limit = limit / sizeof(gpu_box), quad_limit = limit / sizeof(gpu_quad);
    if (box_limit > (size_t)INT32_MAX / BOX_VERTICES)
        box_limit = (size_t)INT32_MAX / BOX_VERTICES;
    if (frame->box_count > box_limit || frame->glass_count > box_limit - frame->box_count || frame->quad_count > quad_limit)
        return gpu_fail(g, -E2BIG, "a frame of %zu boxes and %zu quads is more than %s can take (%zu and %zu)",
                        frame->box_count + frame->glass_count, frame->quad_count, gpu_device_name(g), box_limit,
                        quad_limit);

    size_t box_bytes = frame->box_count * sizeof(gpu_box), glass_bytes = frame->glass_count * sizeof(gpu_box);
    size_t quad_bytes = frame->quad_count * sizeof(gpu_quad);
    bool is_new_box, is_new_quad = false;
    int error = memory_reserve(g, &slot->boxes, box_bytes + glass_bytes, limit, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                               MEMORY_UPLOAD, &is_new_box);
    if (is_new_box)
        slot->set_version = 0;
    if (!error)
        error = memory_reserve(g, &slot->quads, quad_bytes, limit, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, MEMORY_UPLOAD,
                               &is_new_quad);
    if (is_new_quad)
        slot->set_version = 0;
    if (error)
        return error;
    if (box_bytes)
        memcpy(slot->boxes.mapped, frame->boxes, box_bytes);
    if (glass_bytes)
        memcpy((char *)slot->boxes.mapped + box_bytes, frame->glass, glass_bytes);
    if (quad_bytes)
        memcpy(slot->quads.mapped, frame->quads, quad_bytes);
    if (slot->set_version != g->set_version)
        write_set(g, slot);
    return 0;
}

/* Which faces are seen is asked by comparing the eye with a box's low and high. An orthographic eye is infinitely far along
 * each axis it looks along, and on an axis that it looks across it sees neither face. */
static void set_eye(struct box_constants *c, const gpu_frame *frame)
{
    const float far = 3e38f; /* not INFINITY: shaders need not know it */
    for (int axis = 0; axis < 3; axis++) {
        float toward = frame->eye_direction[axis];
        bool is_across = fabsf(toward) < 1e-6f; /* what is left of a zero after a rotation */
        c->eye_high[axis] = !frame->is_orthographic ? frame->eye[axis] : !is_across && toward < 0 ? far : -far;
        c->eye_low[axis] = !frame->is_orthographic ? frame->eye[axis] : !is_across && toward > 0 ? -far : far;
    }
}

static void set_fog(struct box_constants *c, const gpu_frame *frame)
{
    float range = frame->fog_end - frame->fog_begin;
    if (!(range > 0))
        return;
    const float *m = frame->view_projection, *d = frame->eye_direction, *eye = frame->eye;
    /* The distance ahead is clip w, linear in the position; without perspective it is measured along the direction. */
    for (int axis = 0; axis < 3; axis++)
        c->fog_plane[axis] = (frame->is_orthographic ? d[axis] : m[axis * 4 + 3]) / range;
    float at_origin = frame->is_orthographic ? -(d[0] * eye[0] + d[1] * eye[1] + d[2] * eye[2]) : m[15];
    c->fog_plane[3] = (at_origin - frame->fog_begin) / range;
}

static struct box_constants box_constants_of(const gpu_frame *frame)
{
    const float side = 0.72f, top = 1.18f, bottom = 0.5f, front = 1.0f;
    struct box_constants c = {.background = frame->background};
    memcpy(c.view_projection, frame->view_projection, sizeof c.view_projection);
    c.light[0] = side;
    c.light[1] = frame->y_is_down ? top : bottom;
    c.light[2] = frame->y_is_down ? bottom : top;
    c.light[3] = front;
    set_eye(&c, frame);
    set_fog(&c, frame);
    return c;
}

static void draw_runs(VkCommandBuffer commands, size_t first, size_t count, size_t run, uint32_t indices, uint32_t vertices)
{
    for (size_t done = 0; done < count; done += run) {
        size_t now = count - done < run ? count - done : run;
        vkCmdDrawIndexed(commands, (uint32_t)now * indices, 1, 0, (int32_t)((first + done) * vertices), 0);
    }
}

static void draw_lists(gpu *g, const frame_slot *slot, const gpu_frame *frame, pass_kind kind)
{
    VkCommandBuffer commands = slot->commands;
    const VkShaderStageFlags stages = VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, g->layout, 0, 1, &slot->set, 0, NULL);
    if (frame->box_count + frame->glass_count) {
        struct box_constants constants = box_constants_of(frame);
        vkCmdPushConstants(commands, g->layout, stages, 0, sizeof constants, &constants);
        vkCmdBindIndexBuffer(commands, g->box_indices.buffer, 0, VK_INDEX_TYPE_UINT16);
    }
    if (frame->box_count) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, g->box_pipelines[kind]);
        draw_runs(commands, 0, frame->box_count, BOX_RUN, BOX_INDICES, BOX_VERTICES);
    }
    if (frame->glass_count) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, g->glass_pipelines[kind]);
        draw_runs(commands, frame->box_count, frame->glass_count, BOX_RUN, BOX_INDICES, BOX_VERTICES);
    }
    if (frame->quad_count) {
        struct quad_constants constants = {{2.0f / (float)g->extent.width, 2.0f / (float)g->extent.height}};
        vkCmdPushConstants(commands, g->layout, stages, 0, sizeof constants, &constants);
        vkCmdBindIndexBuffer(commands, g->quad_indices.buffer, 0, VK_INDEX_TYPE_UINT16);
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, g->quad_pipelines[kind]);
        draw_runs(commands, 0, frame->quad_count, QUAD_RUN, QUAD_INDICES, QUAD_VERTICES);
    }
}

static VkClearValue clear_color(uint32_t color)
{
    VkClearValue value = {.color.float32 = {(float)(color & 0xff) / 255.0f, (float)(color >> 8 & 0xff) / 255.0f,
                                            (float)(color >> 16 & 0xff) / 255.0f, 1.0f}};
    return value;
}

static int record(gpu *g, frame_slot *slot, const gpu_frame *frame, uint32_t image_index)
{
    pass_kind kind = readback_needs_ids(g) ? PASS_IDS : PASS_PLAIN;
    VkCommandBuffer commands = slot->commands;
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    int error = gpu_check(g, vkResetCommandPool(g->device, slot->pool, 0), "resetting commands");
    if (!error)
        error = gpu_check(g, vkBeginCommandBuffer(commands, &begin), "beginning commands");
    if (error)
        return error;
    const VkClearValue clears[] = {clear_color(frame->background), {.depthStencil = {0.0f, 0}}, {.color.uint32 = {0}}};
    VkRenderPassBeginInfo pass = {
        .sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO,
        .renderPass = g->passes[kind],
        .framebuffer = g->framebuffers[kind][image_index],
        .renderArea = {{0, 0}, g->extent},
        .clearValueCount = kind == PASS_IDS ? 3 : 2,
        .pClearValues = clears,
    };
    const VkViewport viewport = {0, 0, (float)g->extent.width, (float)g->extent.height, 0.0f, 1.0f};
    times_begin(g, slot);
    vkCmdBeginRenderPass(commands, &pass, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdSetViewport(commands, 0, 1, &viewport);
    vkCmdSetScissor(commands, 0, 1, &pass.renderArea);
    draw_lists(g, slot, frame, kind);
    vkCmdEndRenderPass(commands);
    times_end(g, slot);
    readback_record(g, slot, image_index);
    return gpu_check(g, vkEndCommandBuffer(commands), "ending commands");
}

static int submit(gpu *g, frame_slot *slot, uint32_t image_index)
{
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .waitSemaphoreCount = g->window ? 1 : 0,
        .pWaitSemaphores = &slot->acquired,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &slot->commands,
        .signalSemaphoreCount = g->window ? 1 : 0,
        .pSignalSemaphores = &g->drawn[image_index],
    };
    int error = gpu_check(g, vkResetFences(g->device, 1, &slot->done), "resetting a fence");
    return error ? error : gpu_check(g, vkQueueSubmit(g->queue, 1, &info, slot->done), "submitting a frame");
}

/* gpu_status or -errno. A swapchain that no longer fits is made anew once; if the next does not fit either, the window is
 * changing faster than we draw: the coming frame will do. */
static int acquire(gpu *g, frame_slot *slot, uint32_t *image_index)
{
    *image_index = 0;
    for (int tries = 0; g->window && tries < 2; tries++) {
        VkResult result =
            vkAcquireNextImageKHR(g->device, g->swapchain, ACQUIRE_LIMIT_NS, slot->acquired, VK_NULL_HANDLE, image_index);
        if (result == VK_SUCCESS)
            return GPU_DRAWN;
        if (result == VK_SUBOPTIMAL_KHR) { /* it can be drawn on and shown all the same */
            g->is_stale = true;
            return GPU_DRAWN;
        }
        if (result == VK_TIMEOUT || result == VK_NOT_READY)
            return GPU_SKIPPED;
        if (result != VK_ERROR_OUT_OF_DATE_KHR && result != VK_ERROR_SURFACE_LOST_KHR)
            return gpu_check(g, result, "asking the window for an image");
        g->is_stale = true;
        int status = target_refresh(g);
        if (status != GPU_DRAWN)
            return status;
    }
    return g->window ? GPU_SKIPPED : GPU_DRAWN;
}

static int present(gpu *g, uint32_t image_index)
{
    VkPresentInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &g->drawn[image_index],
        .swapchainCount = 1,
        .pSwapchains = &g->swapchain,
        .pImageIndices = &image_index,
    };
    VkResult result = vkQueuePresentKHR(g->queue, &info);
    if (result == VK_SUBOPTIMAL_KHR || result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_ERROR_SURFACE_LOST_KHR) {
        g->is_stale = true;
        return 0;
    }
    return gpu_check(g, result, "showing a frame");
}

int gpu_draw(gpu *g, const gpu_frame *frame)
{
    if (g->is_lost || !g->device)
        return -EIO;
    frame_slot *slot = &g->slots[g->frame_number % FRAME_SLOTS];
    uint32_t image_index;
    int status = target_refresh(g);
    if (status != GPU_DRAWN)
        return status;
    status = frame_wait(g, slot->number);
    if (!status) {
        times_collect(g, slot);
        status = readback_prepare(g, slot);
    }
    if (!status)
        status = upload(g, slot, frame);
    if (!status)
        status = acquire(g, slot, &image_index);
    if (status != GPU_DRAWN)
        return status;

    /* From here on a failure leaves semaphores that nobody will wait for: the device is of no more use. */
    status = record(g, slot, frame, image_index);
    if (!status)
        status = submit(g, slot, image_index);
    if (!status) {
        slot->number = ++g->frame_number;
        readback_submitted(g, slot);
        if (g->window)
            status = present(g, image_index);
    }
    if (status < 0)
        g->is_lost = true;
    return status;
}
