#version 450
#extension GL_GOOGLE_include_directive : require
/* shaders/quad.vert - one corner of a flat rectangle, given in pixels. */
#include "layout.glsl"

const int WORDS = 10; /* gpu_quad: low_px 2, high_px 2, uv_low 2, uv_high 2, colour, flags */
layout(std430, set = 0, binding = BINDING_QUADS) readonly buffer quad_list { uint words[]; };
layout(push_constant) uniform quad_push { quad_constants push; };

layout(location = 0) flat out uvec2 out_flat; /* colour, flags */
layout(location = 1) out vec2 out_uv;

vec2 pair(int at) { return uintBitsToFloat(uvec2(words[at], words[at + 1])); }

void main()
{
    int at = gl_VertexIndex / QUAD_VERTICES * WORDS;
    vec2 corner = vec2(gl_VertexIndex & 1, (gl_VertexIndex >> 1) & 1);
    gl_Position = vec4(mix(pair(at), pair(at + 2), corner) * push.clip_per_px - 1.0, 0.0, 1.0);
    out_uv = mix(pair(at + 4), pair(at + 6), corner);
    out_flat = uvec2(words[at + 8], words[at + 9]);
}
