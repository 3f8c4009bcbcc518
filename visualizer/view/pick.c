#include "view/pick.h"

#include <math.h>

#define PARALLEL 1e-12f /* less along an axis is none: dividing by it would give no number where the ray lies in a face */

/* Where the ray enters the box, along its direction; false: it misses, or is behind the nearest so far. */
static inline bool enter(const gpu_box *box, const float origin[3], const float inverse[3], float nearest, float *at)
{
    float from = 0, to = nearest;
    for (int i = 0; i < 3; i++) {
        float a = (box->low[i] - origin[i]) * inverse[i], b = (box->high[i] - origin[i]) * inverse[i];
        float low = a < b ? a : b, high = a < b ? b : a;
        from = low > from ? low : from;
        to = high < to ? high : to;
    }
    *at = from;
    return from < to;
}

uint32_t pick_box(const scene *s, const camera *c, float x_px, float y_px, float *x_world)
{
    vec3 origin, direction;
    float inverse[3], nearest = INFINITY;
    uint32_t found = PICK_NONE;
    camera_ray(c, floorf(x_px) + 0.5f, floorf(y_px) + 0.5f, origin, direction);
    for (int i = 0; i < 3; i++)
        inverse[i] = 1 / (fabsf(direction[i]) > PARALLEL ? direction[i] : PARALLEL);
    for (size_t i = 0; i < s->boxes.count; i++) {
        float at;
        if (enter(&s->boxes.items[i], origin, inverse, nearest, &at)) {
            nearest = at;
            found = (uint32_t)i;
        }
    }
    if (found >= s->refs.count)
        return PICK_NONE; /* nothing, or a floor or line in front */
    *x_world = origin[0] + nearest * direction[0];
    return found;
}
