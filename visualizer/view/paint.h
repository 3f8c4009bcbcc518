/* view/paint.h - text and rectangles for what lies over the picture: tips, panels, lists.
 * For:     panels.c, inspect_draw.c.
 * Use:     a paint for each frame; sizes are given as on a common screen and multiplied by its scale, places are pixels.
 * Memory:  quads go to the caller's list.
 * Threads: one.
 */
#ifndef RRTRACE_VIEW_PAINT_H
#define RRTRACE_VIEW_PAINT_H

#include "view/font.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAINT_TEXT 14.0f
#define PAINT_SMALL 12.0f

typedef struct paint {
    font *f;        /* borrowed */
    quad_list *out; /* borrowed */
    float scale, width_px, height_px;
} paint;

/* What lies over the picture already: labels keep clear of it and of each other. */
#define PAINT_TAKEN 512u
typedef struct paint_rect4 { float x0, y0, x1, y1; } paint_rect4;
typedef struct paint_taken {
    paint_rect4 rects[PAINT_TAKEN];
    uint32_t count;
} paint_taken;
bool paint_is_free(const paint_taken *t, paint_rect4 r);
/* False: something is there already, or there is no room to remember it. */
bool paint_claim(paint_taken *t, paint_rect4 r);
/* It is there, whatever else is. */
void paint_take(paint_taken *t, paint_rect4 r);

/* y_px: the baseline. Returns where the text ends. */
float paint_text(const paint *p, float x_px, float y_px, const char *s, float size, uint32_t color);
void paint_right(const paint *p, float x_px, float y_px, const char *s, float size, uint32_t color); /* ends at x_px */
float paint_width(const paint *p, const char *s, float size);
/* A method's name, shortened until it fits. */
float paint_name(const paint *p, float x_px, float y_px, const char *name, size_t name_bytes, float width_px, float size, uint32_t color);
/* A path, its beginning left out until it fits. */
float paint_path(const paint *p, float x_px, float y_px, const char *path, float width_px, float size, uint32_t color);
void paint_rect(const paint *p, float x_px, float y_px, float width_px, float height_px, uint32_t color);
/* A dark ground with one coloured edge on top. */
void paint_panel(const paint *p, float x_px, float y_px, float width_px, float height_px, uint32_t edge);
/* Only the outline. */
void paint_frame(const paint *p, float x_px, float y_px, float width_px, float height_px, uint32_t color);

#endif
