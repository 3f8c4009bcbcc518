/* shaders/box_vert.glsl - one corner of a box, for box.vert and box_id.vert.
 * Idea:    at most three faces of a box face the eye, and they share seven corners. A corner is three bits, an axis each:
 *          set means the side nearer the eye, so 7 is the near corner and 1, 2, 4 each belong to one face only. That corner
 *          is its face's provoking vertex and so carries what is constant over the face. 7 vertices and 18 indices do what
 *          18 (or 36) vertices would, and no instancing: software drivers set up every instance anew.
 *          A face turned away collapses: its own corner moves to the near one, which leaves no area.
 * Source:  bench/boxes.c on llvmpipe, 1280 x 720, CPU ms a frame for 10,000 and 100,000 boxes at an angle: as here 36 and
 *          247; seven corners an instance 40 and 275; 18 corners not shared 54 and 300; all six faces 71 and 494; with a
 *          depth pass first 67 and 519; as here but farthest box first 50 and 366.
 */
struct box {
    uvec4 a; /* low.xyz, high.x */
    uvec4 b; /* high.yz, colour, id */
};
layout(std430, set = 0, binding = BINDING_BOXES) readonly buffer box_list { box boxes[]; };
layout(push_constant) uniform box_push { box_constants push; };

layout(location = 0) flat out FLAT_TYPE out_flat; /* lit colour, face bit, id if wanted */
layout(location = 1) out vec4 out_local;          /* 0 … 1 over the box on each axis; fog */

vec3 lit(vec3 color, float light) { return light <= 1.0 ? color * light : mix(color, vec3(1.0), light - 1.0); }

void main()
{
    box b = boxes[gl_VertexIndex / BOX_VERTICES];
    vec3 low = uintBitsToFloat(b.a.xyz);
    vec3 high = uintBitsToFloat(uvec3(b.a.w, b.b.xy));

    bvec3 is_high_seen = greaterThan(push.eye_high, high);
    bvec3 is_low_seen = lessThan(push.eye_low, low);

    uint face = uint(gl_VertexIndex) % BOX_VERTICES;
    bvec3 is_own = equal(uvec3(face), uvec3(1u, 2u, 4u));
    bool is_hidden = (is_own.x && !(is_high_seen.x || is_low_seen.x)) || (is_own.y && !(is_high_seen.y || is_low_seen.y)) ||
                     (is_own.z && !(is_high_seen.z || is_low_seen.z));
    uint corner = is_hidden ? 7u : face;
    bvec3 is_near = notEqual(uvec3(corner) & uvec3(1u, 2u, 4u), uvec3(0u));
    vec3 local = vec3(equal(is_near, is_high_seen));

    vec3 position = mix(low, high, local);
    gl_Position = push.view_projection * vec4(position, 1.0);

    float light = is_own.x ? push.light.x : is_own.y ? (is_high_seen.y ? push.light.z : push.light.y) : push.light.w;
    vec4 color = unpackUnorm4x8(b.b.z);
    out_flat = FLAT_VALUE(packUnorm4x8(vec4(lit(color.rgb, light), color.a)), face, b.b.w);
    out_local = vec4(local, dot(push.fog_plane, vec4(position, 1.0)));
}
