/* view/palette.h - which colour a thing has.
 * For:     all that draws.
 * Idea:    a method's colour comes from the hash of its name with digits left out (the catalog's), so it is the same in every
 *          process and every session. Hues differ, perceived lightness hardly does: no method shouts. The reds and oranges
 *          are left to GC, so that a pause is never mistaken for a method, and one green to running threads.
 * Threads: any; values only.
 * Units:   colours are 0xAABBGGRR, sRGB; OKLCH lightness 0 … 1, chroma 0 … about 0.3, hue in degrees.
 * Source:  Ottosson, "A perceptual color space for image processing" (OKLab, 2020); contrast after WCAG 2.1, 1.4.3.
 */
#ifndef RRTRACE_VIEW_PALETTE_H
#define RRTRACE_VIEW_PALETTE_H

#include "sim/span.h"

#include <stdbool.h>
#include <stdint.h>

#define PALETTE_BACKGROUND 0xff18120eu  /* near black, a little blue */
#define PALETTE_PANEL 0xd8241b15u
#define PALETTE_TEXT 0xffece6e1u
#define PALETTE_TEXT_DIM 0xffb3a79du
#define PALETTE_ACCENT 0xff4fc3ffu      /* warm yellow: PAUSED, notes */
#define PALETTE_GRID 0xff352a22u
#define PALETTE_LANE 0xff2b221cu        /* a lane's floor where nothing is known of its thread */
#define PALETTE_SPAN 0xffd8e4ecu        /* the program's own spans: nearly white, as no method is */
#define PALETTE_GC 0xff3c5cffu          /* red-orange; translucent in the scene */

/* Hues in [PALETTE_GC_HUE_BEGIN, PALETTE_GC_HUE_END) belong to GC alone. */
#define PALETTE_GC_HUE_BEGIN 12.0f
#define PALETTE_GC_HUE_END 72.0f
/* … and these to threads that run. */
#define PALETTE_RUNNING_HUE_BEGIN 138.0f
#define PALETTE_RUNNING_HUE_END 160.0f

uint32_t palette_oklch(float lightness, float chroma, float hue_deg); /* opaque; chroma is lowered until sRGB has it */
void palette_to_oklch(uint32_t color, float *lightness, float *chroma, float *hue_deg);

/* hash: catalog_method.hash; kind: EV_METHOD_…; depth: deeper is a little darker. */
uint32_t palette_method(uint32_t hash, uint32_t kind, uint32_t depth);
/* Folded spans: the less of the time they are busy, the darker. busy: 0 … 1. */
uint32_t palette_folded(uint32_t color, float busy);
uint32_t palette_unwound(uint32_t color);  /* a span that an exception or throw ended */
uint32_t palette_open_end(uint32_t color); /* the end of a call that still runs */
uint32_t palette_idle(uint32_t color);     /* an open frame of a fiber that is not running */
uint32_t palette_gvl(sim_gvl state);

/* … and which parts of a strip's width [0, 1) it takes, so that states are told apart without any colour:
 *   running  ████████   waiting  ‾‾‾‾‾‾‾‾   blocked
 *            ████████            ________            ────────  */
typedef struct palette_bands {
    uint32_t count;
    float at[2][2]; /* from, to; by band */
} palette_bands;
palette_bands palette_gvl_bands(sim_gvl state);

/* The colour to give a box whose top should show this one: gpu/ lights tops up. share 0: for its front. */
uint32_t palette_under_light(uint32_t color, float share);

uint32_t palette_mix(uint32_t a, uint32_t b, float t); /* t 0: a, 1: b; alpha too */
uint32_t palette_alpha(uint32_t color, float alpha);   /* the colour with its alpha multiplied */
uint32_t palette_text_on(uint32_t color);              /* near black or near white, whichever reads better */
float palette_contrast(uint32_t a, uint32_t b);        /* WCAG contrast ratio, 1 … 21 */

#endif
