#include "view/pick.h"

#include <math.h>

/* Where the ray enters the box, along its direction; false: it misses. */
static bool enter(const gpu_box *box, const float origin[3], const float inverse[3], float *at)
{
    float near_t = -INFINITY, far_t = INFINITY;
    for (int i = 0; i < 3; i++) {
        float a = (box->low[i] - origin[i]) * inverse[i], b = (box->high[i] - origin[i]) * inverse[i];
        /* Parallel to the faces and between them gives 0 * infinity: no bound. */
        if (a == a)
            near_t = fmaxf(near_t, fminf(a, b == b ? b : a));
        if (b == b)
            far_t = fminf(far_t, fmaxf(a == a ? a : b, b));
    }
    *at = near_t;
    return near_t <= far_t && far_t >= 0;
}

uint32_t pick_box(const scene *s, const camera *c, float x_px, float y_px, float *x_world)
{
    vec3 origin, direction;
    float inverse[3], nearest = INFINITY;
    uint32_t found = PICK_NONE;
    camera_ray(c, floorf(x_px) + 0.5f, floorf(y_px) + 0.5f, origin, direction);
    for (int i = 0; i < 3; i++)
        inverse[i] = 1 / direction[i];
    for (size_t i = 0; i < s->boxes.count; i++) {
        float at;
        if (enter(&s->boxes.items[i], origin, inverse, &at) && at < nearest) {
            nearest = at;
            found = (uint32_t)i;
        }
    }
    if (found >= s->refs.count)
        return PICK_NONE; /* nothing, or a floor or line in front */
    *x_world = origin[0] + nearest * direction[0];
    return found;
}
