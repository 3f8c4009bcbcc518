#version 450
#extension GL_GOOGLE_include_directive : require
#include "layout.glsl"
#define FLAT_TYPE uvec3
#define FLAT_VALUE(color, face, id) uvec3(color, face, id)
#include "box_vert.glsl"
