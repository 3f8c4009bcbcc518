#include "view/palette.h"

#include "wire/event.h"

#include <math.h>

static float to_linear(float s) { return s <= 0.04045f ? s / 12.92f : powf((s + 0.055f) / 1.055f, 2.4f); }
static float to_srgb(float l) { return l <= 0.0031308f ? 12.92f * l : 1.055f * powf(l, 1.0f / 2.4f) - 0.055f; }

static float channel(uint32_t color, int shift) { return (float)(color >> shift & 0xffu) / 255.0f; }

static uint32_t pack(const float rgb[3], float alpha)
{
    uint32_t out = (uint32_t)(fminf(fmaxf(alpha, 0), 1) * 255.0f + 0.5f) << 24;
    for (int i = 0; i < 3; i++)
        out |= (uint32_t)(fminf(fmaxf(rgb[i], 0), 1) * 255.0f + 0.5f) << (8 * i);
    return out;
}

static void oklab_to_linear(float lightness, float a, float b, float rgb[3])
{
    float l = lightness + 0.3963377774f * a + 0.2158037573f * b;
    float m = lightness - 0.1055613458f * a - 0.0638541728f * b;
    float s = lightness - 0.0894841775f * a - 1.2914855480f * b;
    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    rgb[0] = 4.0767416621f * l - 3.3077115913f * m + 0.2309699292f * s;
    rgb[1] = -1.2684380046f * l + 2.6097574011f * m - 0.3413193965f * s;
    rgb[2] = -0.0041960863f * l - 0.7034186147f * m + 1.7076147010f * s;
}

uint32_t palette_oklch(float lightness, float chroma, float hue_deg)
{
    float hue_rad = hue_deg * 3.14159265f / 180.0f, rgb[3];
    /* Lightness and hue matter more than chroma: give up chroma until the colour exists. */
    for (int step = 0; step < 32; step++, chroma *= 0.93f) {
        oklab_to_linear(lightness, chroma * cosf(hue_rad), chroma * sinf(hue_rad), rgb);
        bool exists = true;
        for (int i = 0; i < 3; i++)
            exists = exists && rgb[i] >= -0.0005f && rgb[i] <= 1.0005f;
        if (exists)
            break;
    }
    for (int i = 0; i < 3; i++)
        rgb[i] = to_srgb(fminf(fmaxf(rgb[i], 0), 1));
    return pack(rgb, 1);
}

void palette_to_oklch(uint32_t color, float *lightness, float *chroma, float *hue_deg)
{
    float r = to_linear(channel(color, 0)), g = to_linear(channel(color, 8)), b = to_linear(channel(color, 16));
    float l = cbrtf(0.4122214708f * r + 0.5363325363f * g + 0.0514459929f * b);
    float m = cbrtf(0.2119034982f * r + 0.6806995451f * g + 0.1073969566f * b);
    float s = cbrtf(0.0883024619f * r + 0.2817188376f * g + 0.6299787005f * b);
    float a_axis = 1.9779984951f * l - 2.4285922050f * m + 0.4505937099f * s;
    float b_axis = 0.0259040371f * l + 0.7827717662f * m - 0.8086757660f * s;
    *lightness = 0.2104542553f * l + 0.7936177850f * m - 0.0040720468f * s;
    *chroma = hypotf(a_axis, b_axis);
    float hue = atan2f(b_axis, a_axis) * 180.0f / 3.14159265f;
    *hue_deg = hue < 0 ? hue + 360.0f : hue;
}

uint32_t palette_method(uint32_t hash, uint32_t kind, uint32_t depth)
{
    /* Names that differ in one letter have hashes that may differ in low bits alone: spread them (Knuth's constant). */
    uint32_t spread = hash * 2654435769u;
    const float first = PALETTE_RUNNING_HUE_BEGIN - PALETTE_GC_HUE_END, second = 360 + PALETTE_GC_HUE_BEGIN - PALETTE_RUNNING_HUE_END;
    float along = (float)(spread >> 22) / 1024.0f * (first + second);
    float hue = along < first ? PALETTE_GC_HUE_END + along : PALETTE_RUNNING_HUE_END + along - first;
    /* A little lightness from other bits: for those who see few hues, neighbours still differ. */
    float lightness = 0.71f + (float)(spread >> 18 & 15u) / 15.0f * 0.07f;
    float deeper = (float)(depth < 24 ? depth : 24) / 24.0f;
    float chroma = kind == EV_METHOD_C ? 0.032f : kind == EV_METHOD_BLOCK ? 0.065f : 0.098f;
    return palette_oklch(lightness - 0.10f * deeper, chroma, fmodf(hue, 360.0f));
}

uint32_t palette_folded(uint32_t color, float busy)
{
    return palette_mix(PALETTE_BACKGROUND, color, 0.50f + 0.38f * fminf(fmaxf(busy, 0), 1));
}

uint32_t palette_unwound(uint32_t color) { return palette_mix(color, 0xff5060d0u, 0.35f); }
uint32_t palette_open_end(uint32_t color) { return palette_mix(color, 0xffffffffu, 0.55f); }
uint32_t palette_idle(uint32_t color) { return palette_mix(PALETTE_BACKGROUND, color, 0.35f); }

uint32_t palette_gvl(sim_gvl state)
{
    /* In order of lightness too: running 0.72, waiting 0.86, blocked 0.42. */
    switch (state) {
    case SIM_GVL_RUNNING: return palette_oklch(0.72f, 0.15f, 148);
    case SIM_GVL_WAITING: return palette_oklch(0.86f, 0.16f, 88);
    case SIM_GVL_BLOCKED: return palette_oklch(0.42f, 0.035f, 250);
    }
    return PALETTE_LANE;
}

palette_bands palette_gvl_bands(sim_gvl state)
{
    switch (state) {
    case SIM_GVL_RUNNING: break;
    case SIM_GVL_WAITING: return (palette_bands){2, {{0, 0.34f}, {0.66f, 1}}};
    case SIM_GVL_BLOCKED: return (palette_bands){1, {{0.33f, 0.67f}}};
    }
    return (palette_bands){1, {{0, 1}}};
}

uint32_t palette_mix(uint32_t a, uint32_t b, float t)
{
    uint32_t out = 0;
    for (int shift = 0; shift < 32; shift += 8) {
        float mixed = (float)(a >> shift & 0xffu) * (1 - t) + (float)(b >> shift & 0xffu) * t;
        out |= (uint32_t)(mixed + 0.5f) << shift;
    }
    return out;
}

uint32_t palette_under_light(uint32_t color, float share)
{
    const float white = 0.18f * share; /* what gpu/ mixes into a top */
    float rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (channel(color, 8 * i) - white) / (1 - white);
    return pack(rgb, channel(color, 24));
}

uint32_t palette_alpha(uint32_t color, float alpha)
{
    float out = channel(color, 24) * fminf(fmaxf(alpha, 0), 1);
    return (color & 0x00ffffffu) | (uint32_t)(out * 255.0f + 0.5f) << 24;
}

static float luminance(uint32_t color)
{
    return 0.2126f * to_linear(channel(color, 0)) + 0.7152f * to_linear(channel(color, 8)) +
           0.0722f * to_linear(channel(color, 16));
}

float palette_contrast(uint32_t a, uint32_t b)
{
    float la = luminance(a), lb = luminance(b);
    return (fmaxf(la, lb) + 0.05f) / (fminf(la, lb) + 0.05f);
}

uint32_t palette_text_on(uint32_t color)
{
    const uint32_t black = 0xff100c0au, white = 0xfffaf7f5u;
    return palette_contrast(color, black) >= palette_contrast(color, white) ? black : white;
}
