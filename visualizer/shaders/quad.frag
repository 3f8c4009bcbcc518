#version 450
#extension GL_GOOGLE_include_directive : require
/* shaders/quad.frag - a pixel of a panel or of a glyph. */
#include "layout.glsl"

layout(set = 0, binding = BINDING_ATLAS) uniform sampler2D atlas;
layout(location = 0) flat in uvec2 in_flat;
layout(location = 1) in vec2 in_uv;
layout(location = 0) out vec4 out_color;

const uint IS_GLYPH = 1u;          /* GPU_QUAD_GLYPH */
const float EDGE = 128.0 / 255.0;  /* the byte that means 'on the outline' */

void main()
{
    vec4 color = unpackUnorm4x8(in_flat.x);
    /* No mip levels, so the level can be named, which makes the read legal inside the branch. */
    float inside = 1.0;
    if ((in_flat.y & IS_GLYPH) != 0u)
        inside = textureLod(atlas, in_uv, 0.0).r;
    /* How much the distance changes over a pixel gives a ramp one pixel wide whatever the text's size. It is known from the texels
     * that a pixel takes: between pixels on both sides of a thin stroke the distance itself would not change at all. */
    vec2 texels = vec2(abs(dFdx(in_uv.x)), abs(dFdy(in_uv.y))) * vec2(textureSize(atlas, 0));
    float per_px = min(texels.x, texels.y) * (float(GLYPH_STEP) / 255.0);
    color.a *= clamp((inside - EDGE) / max(per_px, 1e-4) + 0.5, 0.0, 1.0);
    out_color = color;
}
