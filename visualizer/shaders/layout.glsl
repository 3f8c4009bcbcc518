/* shaders/layout.glsl - what C and GLSL both read: push constants and bindings, typed once.
 * For:     gpu/ (includes it as a header) and every shader here.
 * Idea:    the same lines compile as both; below, C gets array types of the names that GLSL has built in. Offsets agree
 *          because every vec3 is followed by one scalar; gpu/pipeline.c asserts them.
 */
#ifdef VULKAN /* glslang defines it */
#define u32 uint
#else
#include <stdint.h>
typedef float mat4[16], vec4[4], vec3[3], vec2[2];
typedef uint32_t u32;
#endif

#define BINDING_BOXES 0
#define BINDING_QUADS 1
#define BINDING_ATLAS 2

#define BOX_VERTICES 8 /* a box's stride in vertex numbers: one a corner; corner 0, the far one, is never seen */
#define QUAD_VERTICES 4
#define GLYPH_STEP 25 /* GPU_GLYPH_STEP */

struct box_constants {
    mat4 view_projection;
    vec3 eye_high;  /* a box's high face on an axis is seen when this is more than its high */
    u32 background; /* 0xAABBGGRR */
    vec3 eye_low;   /* … and its low face when this is less than its low */
    float unused;
    vec4 fog_plane; /* dot with (position, 1): 0 where fog begins, 1 where only background is left */
    vec4 light;     /* x faces, low y face, high y face, z faces: below 1 darkens, above 1 mixes in white */
};

struct quad_constants {
    vec2 clip_per_px; /* 2 / target size */
};
