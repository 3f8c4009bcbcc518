/* view/font.h - glyphs as signed distances in one atlas, and text as quads.
 * For:     labels.c, paint.c, strip.c, view.c.
 * Idea:    a glyph is put into the atlas the first time that it is shown, so any script that a font of this machine has works
 *          and start-up makes letters only. What one font lacks is looked for in the next one that fontconfig names.
 * Use:     font_new; font_measure, font_draw; font_atlas → gpu_set_atlas when it says that it has changed; font_delete.
 * Memory:  the atlas (FONT_ATLAS_SIDE² bytes) and the font files in use. A full atlas shows new glyphs as boxes.
 * Threads: one.
 * Units:   sizes in px of the target: the em square's height; y down.
 * Source:  Green, "Improved Alpha-Tested Magnification for Vector Textures and Special Effects" (2007); stb_truetype.
 */
#ifndef RRTRACE_VIEW_FONT_H
#define RRTRACE_VIEW_FONT_H

#include "base/vec.h"
#include "gpu/gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FONT_ATLAS_SIDE 1024u

typedef struct font font;

/* Quads, grown as needed. */
typedef VEC(gpu_quad) quad_list;
void quad_list_free(quad_list *list);
void quad_list_add(quad_list *list, gpu_quad quad); /* left out when memory is out */
void quad_list_rect(quad_list *list, float x_px, float y_px, float width_px, float height_px, uint32_t color);

int font_new(font **out); /* 0 or -ENOMEM; without any font it draws nothing and font_problem says so */
void font_delete(font *f);
const char *font_problem(const font *f); /* NULL: all is well */

float font_measure(font *f, const char *text, size_t byte_count, float size_px);
/* x_px: where the text begins; y_px: its baseline. slope: how far the baseline moves down per px to the right; the letters
 * stay upright. Returns the x where the text ends. */
float font_draw(font *f, quad_list *out, float x_px, float y_px, float slope, const char *text, size_t byte_count,
                float size_px, uint32_t color);
float font_cap_height(const font *f, float size_px); /* of capital letters, for centring */

bool font_atlas(font *f, const uint8_t **pixels, uint32_t *width, uint32_t *height); /* true: changed since the last call */

#endif
