/* shaders/box_frag.glsl - a pixel of a box, for box.frag and box_id.frag.
 * Idea:    no discard, so depth is tested before this runs. Lines come from derivatives: as wide in pixels near and far.
 * Source:  on llvmpipe the lines cost less than runs differ (0 to 10 %), while writing ids costs 10 to 30 % in scenes of
 *          few boxes: hence two shaders.
 */
layout(push_constant) uniform box_push { box_constants push; };
layout(location = 0) flat in FLAT_TYPE in_flat;
layout(location = 1) in vec4 in_local;
layout(location = 0) out vec4 out_color;

const float LINE_DARKNESS = 0.42; /* how much of the colour a full line takes away */
const float LINE_PX = 0.85;

vec4 box_color()
{
    uint face = in_flat.y;
    vec2 uv = face == 1u ? in_local.yz : face == 2u ? in_local.xz : in_local.xy;
    /* Pixels across the face and to its nearest edge, per axis; a face of few pixels has no room for lines. */
    vec2 size_px = 1.0 / max(fwidth(uv), vec2(1e-9));
    vec2 edge_px = min(uv, 1.0 - uv) * size_px;
    vec2 line = clamp(LINE_PX + 0.5 - edge_px, 0.0, 1.0) * clamp(size_px / 6.0 - 0.5, 0.0, 1.0);
    vec4 color = unpackUnorm4x8(in_flat.x);
    color.rgb *= 1.0 - LINE_DARKNESS * max(line.x, line.y);
    color.rgb = mix(color.rgb, unpackUnorm4x8(push.background).rgb, clamp(in_local.w, 0.0, 1.0));
    return color;
}
