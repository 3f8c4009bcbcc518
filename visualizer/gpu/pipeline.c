#include "gpu/gpu_internal.h"

#include "shaders/layout.glsl"

#include "box.frag.spv.h"
#include "box.vert.spv.h"
#include "box_id.frag.spv.h"
#include "box_id.vert.spv.h"
#include "quad.frag.spv.h"
#include "quad.vert.spv.h"

#include <stddef.h>

/* 128 bytes is what every Vulkan device has for push constants. */
_Static_assert(GLYPH_STEP == GPU_GLYPH_STEP, "shaders read the atlas as it is made");
_Static_assert(sizeof(struct box_constants) == 128, "fits every device");
_Static_assert(offsetof(struct box_constants, background) == 76, "as GLSL lays it out");
_Static_assert(offsetof(struct box_constants, eye_low) == 80, "as GLSL lays it out");
_Static_assert(offsetof(struct box_constants, fog_plane) == 96, "as GLSL lays it out");

/* Frames in flight share depth, ids and the off-screen image, so a pass waits for the one before it to be done with them;
 * and what follows the pass (a copy for a picture or a pick) waits for the pass. */
static const VkSubpassDependency dependencies[] = {
    {
        .srcSubpass = VK_SUBPASS_EXTERNAL,
        .dstSubpass = 0,
        .srcStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT |
                        VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT |
                        VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT,
        .srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT,
        .dstAccessMask = VK_ACCESS_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT |
                         VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT,
    },
    {
        .srcSubpass = 0,
        .dstSubpass = VK_SUBPASS_EXTERNAL,
        .srcStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_TRANSFER_BIT,
        .srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT,
    },
};

static int make_pass(gpu *g, pass_kind kind)
{
    const VkAttachmentDescription attachments[] = {
        {
            .format = g->color_format,
            .samples = VK_SAMPLE_COUNT_1_BIT,
            .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
            .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
            .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
            .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
            .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
            .finalLayout = g->window ? VK_IMAGE_LAYOUT_PRESENT_SRC_KHR : VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
        },
        {
            .format = DEPTH_FORMAT,
            .samples = VK_SAMPLE_COUNT_1_BIT,
            .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
            .storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
            .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
            .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
            .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
            .finalLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
        },
        {
            .format = ID_FORMAT,
            .samples = VK_SAMPLE_COUNT_1_BIT,
            .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
            .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
            .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
            .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
            .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
            .finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
        },
    };
    const VkAttachmentReference colors[] = {{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL},
                                            {2, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL}};
    const VkAttachmentReference depth = {1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
    const VkSubpassDescription subpass = {
        .pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS,
        .colorAttachmentCount = kind == PASS_IDS ? 2 : 1,
        .pColorAttachments = colors,
        .pDepthStencilAttachment = &depth,
    };
    VkRenderPassCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO,
        .attachmentCount = kind == PASS_IDS ? 3 : 2,
        .pAttachments = attachments,
        .subpassCount = 1,
        .pSubpasses = &subpass,
        .dependencyCount = 2,
        .pDependencies = dependencies,
    };
    return gpu_check(g, vkCreateRenderPass(g->device, &info, NULL, &g->passes[kind]), "making a render pass");
}

int pipeline_make_layout(gpu *g)
{
    const VkDescriptorSetLayoutBinding bindings[] = {
        {BINDING_BOXES, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_VERTEX_BIT, NULL},
        {BINDING_QUADS, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_VERTEX_BIT, NULL},
        {BINDING_ATLAS, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, VK_SHADER_STAGE_FRAGMENT_BIT, NULL},
    };
    VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 3,
        .pBindings = bindings,
    };
    int error = gpu_check(g, vkCreateDescriptorSetLayout(g->device, &set, NULL, &g->set_layout), "making a set layout");
    if (error)
        return error;
    const VkPushConstantRange range = {VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0,
                                       sizeof(struct box_constants)};
    VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &g->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    return gpu_check(g, vkCreatePipelineLayout(g->device, &info, NULL, &g->layout), "making a pipeline layout");
}

typedef struct code {
    const uint32_t *words;
    size_t bytes;
} code;
#define CODE(array) ((code){array, sizeof array})

/* What differs between the pipelines. */
typedef struct recipe {
    code vertex, fragment;
    VkPrimitiveTopology topology;
    pass_kind kind;
    bool blends, tests_depth, writes_depth, writes_ids;
} recipe;

static int make_module(gpu *g, code source, VkShaderModule *out)
{
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = source.bytes,
        .pCode = source.words,
    };
    return gpu_check(g, vkCreateShaderModule(g->device, &info, NULL, out), "loading a shader");
}

static int make_from_modules(gpu *g, const recipe *r, VkShaderModule vertex, VkShaderModule fragment, VkPipeline *out)
{
    const VkPipelineShaderStageCreateInfo stages[] = {
        {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
         .stage = VK_SHADER_STAGE_VERTEX_BIT,
         .module = vertex,
         .pName = "main"},
        {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
         .stage = VK_SHADER_STAGE_FRAGMENT_BIT,
         .module = fragment,
         .pName = "main"},
    };
    const VkPipelineVertexInputStateCreateInfo input = {.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    const VkPipelineInputAssemblyStateCreateInfo assembly = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = r->topology};
    const VkPipelineViewportStateCreateInfo viewport = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .scissorCount = 1};
    const VkPipelineRasterizationStateCreateInfo raster = {.sType =
                                                               VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
                                                           .polygonMode = VK_POLYGON_MODE_FILL,
                                                           .cullMode = VK_CULL_MODE_NONE,
                                                           .lineWidth = 1.0f};
    const VkPipelineMultisampleStateCreateInfo samples = {.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
                                                          .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
    const VkPipelineDepthStencilStateCreateInfo depth = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
        .depthTestEnable = r->tests_depth,
        .depthWriteEnable = r->writes_depth,
        .depthCompareOp = VK_COMPARE_OP_GREATER, /* reversed: 1 is near, where floats would else be too coarse far away */
    };
    const VkPipelineColorBlendAttachmentState blends[] = {
        {.blendEnable = r->blends,
         .srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA,
         .dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
         .srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE,
         .dstAlphaBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
         .colorWriteMask = 0xf},
        {.colorWriteMask = r->writes_ids ? VK_COLOR_COMPONENT_R_BIT : 0u},
    };
    const VkPipelineColorBlendStateCreateInfo blend = {.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
                                                       .attachmentCount = r->kind == PASS_IDS ? 2 : 1,
                                                       .pAttachments = blends};
    const VkDynamicState states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
    const VkPipelineDynamicStateCreateInfo dynamic = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO, .dynamicStateCount = 2, .pDynamicStates = states};
    const VkGraphicsPipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
        .stageCount = 2,
        .pStages = stages,
        .pVertexInputState = &input,
        .pInputAssemblyState = &assembly,
        .pViewportState = &viewport,
        .pRasterizationState = &raster,
        .pMultisampleState = &samples,
        .pDepthStencilState = &depth,
        .pColorBlendState = &blend,
        .pDynamicState = &dynamic,
        .layout = g->layout,
        .renderPass = g->passes[r->kind],
    };
    return gpu_check(g, vkCreateGraphicsPipelines(g->device, VK_NULL_HANDLE, 1, &info, NULL, out), "making a pipeline");
}

static int make_pipeline(gpu *g, const recipe *r, VkPipeline *out)
{
    VkShaderModule vertex = VK_NULL_HANDLE, fragment = VK_NULL_HANDLE;
    int error = make_module(g, r->vertex, &vertex);
    if (!error)
        error = make_module(g, r->fragment, &fragment);
    if (!error)
        error = make_from_modules(g, r, vertex, fragment, out);
    vkDestroyShaderModule(g->device, vertex, NULL);
    vkDestroyShaderModule(g->device, fragment, NULL);
    return error;
}

static int make_pipelines(gpu *g, pass_kind kind)
{
    bool ids = kind == PASS_IDS;
    const recipe box = {
        .vertex = ids ? CODE(box_id_vert_spv) : CODE(box_vert_spv),
        .fragment = ids ? CODE(box_id_frag_spv) : CODE(box_frag_spv),
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST,
        .kind = kind,
        .tests_depth = true,
        .writes_depth = true,
        .writes_ids = ids,
    };
    recipe glass = box;
    glass.vertex = CODE(box_vert_spv);
    glass.fragment = CODE(box_frag_spv);
    glass.blends = true;
    glass.writes_depth = glass.writes_ids = false;
    recipe quad = glass;
    quad.vertex = CODE(quad_vert_spv);
    quad.fragment = CODE(quad_frag_spv);
    quad.tests_depth = false;

    int error = make_pipeline(g, &box, &g->box_pipelines[kind]);
    if (!error)
        error = make_pipeline(g, &glass, &g->glass_pipelines[kind]);
    return error ? error : make_pipeline(g, &quad, &g->quad_pipelines[kind]);
}

static void free_pipeline(gpu *g, VkPipeline *pipeline)
{
    if (*pipeline)
        vkDestroyPipeline(g->device, *pipeline, NULL);
    *pipeline = VK_NULL_HANDLE;
}

static void free_passes(gpu *g)
{
    for (int kind = 0; kind < PASS_COUNT; kind++) {
        free_pipeline(g, &g->box_pipelines[kind]);
        free_pipeline(g, &g->glass_pipelines[kind]);
        free_pipeline(g, &g->quad_pipelines[kind]);
        if (g->passes[kind])
            vkDestroyRenderPass(g->device, g->passes[kind], NULL);
        g->passes[kind] = VK_NULL_HANDLE;
    }
    g->passes_format = VK_FORMAT_UNDEFINED;
}

int pipeline_make(gpu *g)
{
    if (g->passes_format == g->color_format)
        return 0;
    free_passes(g);
    int error = 0;
    for (pass_kind kind = 0; kind < PASS_COUNT && !error; kind++) {
        error = make_pass(g, kind);
        if (!error)
            error = make_pipelines(g, kind);
    }
    g->passes_format = error ? VK_FORMAT_UNDEFINED : g->color_format;
    return error;
}

void pipeline_free(gpu *g)
{
    if (!g->device)
        return;
    free_passes(g);
    if (g->layout)
        vkDestroyPipelineLayout(g->device, g->layout, NULL);
    if (g->set_layout)
        vkDestroyDescriptorSetLayout(g->device, g->set_layout, NULL);
}
