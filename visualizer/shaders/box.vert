#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#define FLAT_TYPE uvec2
#define FLAT_VALUE(color, face, id) uvec2(color, face)
#include "box_vert.glsl"
