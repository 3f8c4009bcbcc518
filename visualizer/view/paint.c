#include "view/paint.h"

#include "view/label.h"

#include <math.h>
#include <string.h>

#define GROUND 0xff1c1510u

float paint_text(const paint *p, float x, float y, const char *s, float size, uint32_t color)
{
    return font_draw(p->f, p->out, x, y, 0, s, strlen(s), size * p->scale, color);
}

float paint_width(const paint *p, const char *s, float size) { return font_measure(p->f, s, strlen(s), size * p->scale); }

void paint_right(const paint *p, float x, float y, const char *s, float size, uint32_t color)
{
    paint_text(p, x - paint_width(p, s, size), y, s, size, color);
}

static float measure(const void *context, const char *text, size_t byte_count)
{
    const struct { font *f; float size_px; } *m = context;
    return font_measure(m->f, text, byte_count, m->size_px);
}

float paint_name(const paint *p, float x, float y, const char *name, size_t name_bytes, float width, float size, uint32_t color)
{
    const struct { font *f; float size_px; } m = {p->f, size * p->scale};
    char text[LABEL_BYTES_MAX];
    size_t bytes = label_fit(name, name_bytes, width, measure, &m, text);
    return font_draw(p->f, p->out, x, y, 0, text, bytes, m.size_px, color);
}

float paint_path(const paint *p, float x, float y, const char *path, float width, float size, uint32_t color)
{
    const char *rest = path;
    char text[LABEL_BYTES_MAX];
    size_t bytes = strlen(path);
    while (font_measure(p->f, rest, bytes, size * p->scale) > width && bytes > 4) {
        const char *slash = memchr(rest + 1, '/', bytes - 1);
        size_t step = slash ? (size_t)(slash - rest) : 1;
        while (step < bytes && label_is_within(rest[step]))
            step++;
        rest += step;
        bytes -= step;
    }
    if (rest == path)
        return paint_text(p, x, y, path, size, color);
    if (bytes > sizeof text - sizeof LABEL_ELLIPSIS)
        bytes = sizeof text - sizeof LABEL_ELLIPSIS;
    memcpy(text, LABEL_ELLIPSIS, sizeof LABEL_ELLIPSIS - 1);
    memcpy(text + sizeof LABEL_ELLIPSIS - 1, rest, bytes);
    return font_draw(p->f, p->out, x, y, 0, text, bytes + sizeof LABEL_ELLIPSIS - 1, size * p->scale, color);
}

void paint_rect(const paint *p, float x, float y, float width, float height, uint32_t color)
{
    quad_list_rect(p->out, x, y, width, height, color);
}

void paint_panel(const paint *p, float x, float y, float width, float height, uint32_t edge)
{
    quad_list_rect(p->out, x, y, width, height, GROUND);
    quad_list_rect(p->out, x, y, width, 2 * p->scale, edge);
}

void paint_frame(const paint *p, float x, float y, float width, float height, uint32_t color)
{
    float line = fmaxf(1, 1.5f * p->scale);
    quad_list_rect(p->out, x, y, width, line, color);
    quad_list_rect(p->out, x, y + height - line, width, line, color);
    quad_list_rect(p->out, x, y, line, height, color);
    quad_list_rect(p->out, x + width - line, y, line, height, color);
}

bool paint_is_free(const paint_taken *t, paint_rect4 r)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const paint_rect4 *other = &t->rects[i];
        if (r.x0 < other->x1 && other->x0 < r.x1 && r.y0 < other->y1 && other->y0 < r.y1)
            return false;
    }
    return true;
}

void paint_take(paint_taken *t, paint_rect4 r)
{
    if (t->count < PAINT_TAKEN)
        t->rects[t->count++] = r;
}

bool paint_claim(paint_taken *t, paint_rect4 r)
{
    if (t->count == PAINT_TAKEN || !paint_is_free(t, r))
        return false;
    paint_take(t, r);
    return true;
}
