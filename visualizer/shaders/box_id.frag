#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#define FLAT_TYPE uvec3
#include "box_frag.glsl"

layout(location = 1) out uint out_id;

void main()
{
    out_color = box_color();
    out_id = in_flat.z;
}
