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

/* The index of the nearest of some boxes that the ray meets; box_count: none. */
static size_t nearest_of(const gpu_box *boxes, size_t box_count, const float origin[3], const float inverse[3])
{
    float nearest = INFINITY, at;
    size_t found = box_count;
    for (size_t i = 0; i < box_count; i++) {
        if (enter(&boxes[i], origin, inverse, nearest, &at)) {
            nearest = at;
            found = i;
        }
    }
    return found;
}

/* A box that stands for no call: a span's bar or a pause's mark. */
static bool is_note(const scene *s, size_t box, view_box_ref *out)
{
    for (size_t i = 0; i < s->spans.count; i++)
        if (s->spans.items[i].box == box) {
            *out = s->spans.items[i].ref;
            return true;
        }
    for (size_t i = 0; i < s->pauses.count; i++)
        if (s->pauses.items[i].mark == box) {
            *out = s->pauses.items[i].ref;
            return true;
        }
    return false;
}

bool pick_at(const scene *s, const camera *c, float x_px, float y_px, view_box_ref *out)
{
    vec3 origin, direction;
    float inverse[3];
    camera_ray(c, floorf(x_px) + 0.5f, floorf(y_px) + 0.5f, origin, direction);
    for (int i = 0; i < 3; i++)
        inverse[i] = 1 / (fabsf(direction[i]) > PARALLEL ? direction[i] : PARALLEL);
    size_t box = nearest_of(s->boxes.items, s->boxes.count, origin, inverse);
    if (box < s->refs.count) {
        *out = s->refs.items[box];
        return true;
    }
    if (box < s->boxes.count && is_note(s, box, out))
        return true;
    size_t pane = nearest_of(s->glass.items, s->glass.count, origin, inverse); /* before a floor, a line, or nothing */
    if (pane == s->glass.count || s->glass.items[pane].id == 0)
        return false;
    *out = s->pauses.items[s->glass.items[pane].id - 1].ref;
    return true;
}
