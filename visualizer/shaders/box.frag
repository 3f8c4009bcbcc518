#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#define FLAT_TYPE uvec2
#include "box_frag.glsl"

void main() { out_color = box_color(); }
