#include "view/font.h"

#include "base/mem.h"

#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* stb_truetype is used in this file alone; its functions are static so that no other program part can clash with them. */
#define STBTT_STATIC
#define STB_TRUETYPE_IMPLEMENTATION
static void *scratch_take(size_t bytes, void *user);
static void scratch_give(void *p, void *user);
#define STBTT_malloc(size, user) scratch_take((size), (user))
#define STBTT_free(p, user) scratch_give((p), (user))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_truetype.h>
#pragma GCC diagnostic pop

enum {
    BAKE_PX = 26,     /* em height in the atlas: near the usual sizes on screen, as a distance is not averaged when shrunk */
    BAKE_MARGIN = 5,  /* px around a glyph in which the distance falls to 0 */
    FACE_MAX = 6,     /* fonts tried for a character before it is shown as missing */
    GLYPH_POINTS_MAX = 1500, /* of an outline; more is no letter */
    GLYPH_SLOTS = 4096, /* hash table; twice what fits the atlas */
};
#define FONT_FILE_BYTES_MAX (64L << 20)
#define SCRATCH_BYTES ((size_t)256 << 10) /* some ten times what a glyph of GLYPH_POINTS_MAX needs */

/* stb_truetype does not check all of its allocations, so it gets them from here: a block of our own, used anew for each
 * glyph, which outlines of sane size cannot exhaust. */
typedef struct scratch {
    unsigned char *bytes; /* owned */
    size_t used;
} scratch;

static void *scratch_take(size_t bytes, void *user)
{
    scratch *s = user;
    size_t rounded = (bytes + 15) & ~(size_t)15;
    if (rounded < bytes || rounded > SCRATCH_BYTES - s->used)
        return NULL;
    s->used += rounded;
    return s->bytes + s->used - rounded;
}

static void scratch_give(void *p, void *user)
{
    (void)p;
    (void)user; /* all at once, before the next glyph */
}

typedef struct glyph {
    uint32_t codepoint; /* 0: free slot */
    float advance;      /* all in ems */
    float low[2], high[2]; /* quad relative to the pen, y down; equal: nothing to draw */
    float uv_low[2], uv_high[2];
} glyph;

typedef struct face {
    unsigned char *file; /* owned */
    stbtt_fontinfo info;
    float scale; /* font units to bake px */
} face;

struct font {
    scratch scratch;
    uint8_t *atlas; /* owned */
    glyph *glyphs;  /* owned; GLYPH_SLOTS, open addressing */
    FcFontSet *candidates; /* owned; fonts in fontconfig's order of preference */
    int next_candidate;
    face faces[FACE_MAX];
    uint32_t face_count, glyph_count;
    uint32_t shelf_x, shelf_y, shelf_height; /* where the next glyph goes */
    bool has_changed;
    float cap_height; /* ems */
    char problem[160];
};

void quad_list_free(quad_list *list)
{
    vec_free(list);
}

void quad_list_add(quad_list *list, gpu_quad quad)
{
    gpu_quad *item = vec_push(list);
    if (item)
        *item = quad;
}

void quad_list_rect(quad_list *list, float x_px, float y_px, float width_px, float height_px, uint32_t color)
{
    quad_list_add(list, (gpu_quad){.low_px = {x_px, y_px}, .high_px = {x_px + width_px, y_px + height_px}, .color = color});
}

static unsigned char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    unsigned char *bytes = NULL;
    long size;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && size <= FONT_FILE_BYTES_MAX && fseek(file, 0, SEEK_SET) == 0) {
        bytes = mem_alloc((size_t)size, 1);
        if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
            mem_free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

/* The next font that fontconfig offers and stb_truetype can read. */
static bool open_next_face(font *f)
{
    while (f->candidates && f->next_candidate < f->candidates->nfont && f->face_count < FACE_MAX) {
        FcPattern *pattern = f->candidates->fonts[f->next_candidate++];
        FcChar8 *path;
        int index = 0;
        if (FcPatternGetString(pattern, FC_FILE, 0, &path) != FcResultMatch)
            continue;
        FcPatternGetInteger(pattern, FC_INDEX, 0, &index);
        face *new_face = &f->faces[f->face_count];
        new_face->file = read_file((const char *)path);
        if (!new_face->file)
            continue;
        int offset = stbtt_GetFontOffsetForIndex(new_face->file, index & 0xffff);
        if (offset >= 0 && stbtt_InitFont(&new_face->info, new_face->file, offset)) {
            new_face->info.userdata = &f->scratch;
            new_face->scale = stbtt_ScaleForMappingEmToPixels(&new_face->info, BAKE_PX);
            f->face_count++;
            return true;
        }
        mem_free(new_face->file);
        new_face->file = NULL;
    }
    return false;
}

/* Fonts in order: DejaVu Sans, which most machines have, then whatever sans-serif the user prefers, then the rest. */
static void find_fonts(font *f)
{
    FcConfig *config = FcInitLoadConfigAndFonts();
    if (!config)
        return;
    FcPattern *pattern = FcPatternCreate();
    if (pattern) {
        FcPatternAddString(pattern, FC_FAMILY, (const FcChar8 *)"DejaVu Sans");
        FcPatternAddString(pattern, FC_FAMILY, (const FcChar8 *)"sans-serif");
        FcPatternAddBool(pattern, FC_SCALABLE, FcTrue);
        FcConfigSubstitute(config, pattern, FcMatchPattern);
        FcDefaultSubstitute(pattern);
        FcResult result;
        FcFontSet *sorted = FcFontSort(config, pattern, FcTrue, NULL, &result);
        f->candidates = FcFontSetCreate();
        for (int i = 0; sorted && f->candidates && i < sorted->nfont; i++) {
            FcPattern *full = FcFontRenderPrepare(config, pattern, sorted->fonts[i]);
            if (full)
                FcFontSetAdd(f->candidates, full);
        }
        if (sorted)
            FcFontSetDestroy(sorted);
        FcPatternDestroy(pattern);
    }
    FcConfigDestroy(config);
}

static glyph *slot_of(font *f, uint32_t codepoint)
{
    uint32_t slot = codepoint * 2654435769u >> 20; /* 12 bits */
    while (f->glyphs[slot].codepoint != 0 && f->glyphs[slot].codepoint != codepoint)
        slot = (slot + 1) % GLYPH_SLOTS;
    return &f->glyphs[slot];
}
_Static_assert(GLYPH_SLOTS == 1 << 12, "slot_of's shift");

/* Room for width × height px in the atlas; false: it is full. */
static bool take_room(font *f, uint32_t width, uint32_t height, uint32_t *x, uint32_t *y)
{
    if (f->shelf_x + width + 1 > FONT_ATLAS_SIDE) {
        f->shelf_x = 1;
        f->shelf_y += f->shelf_height + 1;
        f->shelf_height = 0;
    }
    if (width + 2 > FONT_ATLAS_SIDE || f->shelf_y + height + 1 > FONT_ATLAS_SIDE)
        return false;
    *x = f->shelf_x;
    *y = f->shelf_y;
    f->shelf_x += width + 1;
    if (height > f->shelf_height)
        f->shelf_height = height;
    return true;
}

static void bake(font *f, glyph *g, const face *from, int index)
{
    int advance, bearing;
    stbtt_GetGlyphHMetrics(&from->info, index, &advance, &bearing);
    g->advance = (float)advance * from->scale / BAKE_PX;
    int width = 0, height = 0, left = 0, top = 0;
    stbtt_vertex *outline;
    f->scratch.used = 0;
    int points = stbtt_GetGlyphShape(&from->info, index, &outline);
    f->scratch.used = 0;
    if (points <= 0 || points > GLYPH_POINTS_MAX)
        return; /* a space, or nothing to be drawn in an em of BAKE_PX */
    unsigned char *pixels = stbtt_GetGlyphSDF(&from->info, from->scale, index, BAKE_MARGIN, 128, (float)GPU_GLYPH_STEP, &width,
                                              &height, &left, &top);
    uint32_t x, y;
    if (!pixels)
        return;
    if (take_room(f, (uint32_t)width, (uint32_t)height, &x, &y)) {
        for (int row = 0; row < height; row++)
            memcpy(f->atlas + (y + (uint32_t)row) * FONT_ATLAS_SIDE + x, pixels + row * width, (size_t)width);
        g->low[0] = (float)left / BAKE_PX;
        g->low[1] = (float)top / BAKE_PX;
        g->high[0] = (float)(left + width) / BAKE_PX;
        g->high[1] = (float)(top + height) / BAKE_PX;
        const float side = (float)FONT_ATLAS_SIDE;
        g->uv_low[0] = (float)x / side;
        g->uv_low[1] = (float)y / side;
        g->uv_high[0] = (float)(x + (uint32_t)width) / side;
        g->uv_high[1] = (float)(y + (uint32_t)height) / side;
        f->has_changed = true;
    }
}

static const glyph *glyph_of(font *f, uint32_t codepoint)
{
    glyph *g = slot_of(f, codepoint);
    if (g->codepoint == codepoint)
        return g;
    if (f->glyph_count >= GLYPH_SLOTS - 64) /* never full: slot_of needs a free slot to stop at */
        return slot_of(f, '?');
    f->glyph_count++;
    g->codepoint = codepoint;
    for (uint32_t i = 0; i < f->face_count || open_next_face(f); i++) {
        int index = stbtt_FindGlyphIndex(&f->faces[i].info, (int)codepoint);
        if (index != 0) {
            bake(f, g, &f->faces[i], index);
            return g;
        }
    }
    bake(f, g, &f->faces[0], 0); /* the first font's own sign for "missing" */
    return g;
}

/* The next character of text[*at, byte_count); bytes that are no UTF-8 and controls come out as U+FFFD, one by one. */
static uint32_t next_codepoint(const char *text, size_t byte_count, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text + *at;
    size_t left = byte_count - *at, length = s[0] < 0x80 ? 1 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC0 ? 2 : 0;
    (*at)++;
    if (length == 1)
        return s[0] >= 0x20 && s[0] != 0x7F ? s[0] : 0xFFFD;
    if (length == 0 || length > left)
        return 0xFFFD;
    uint32_t codepoint = s[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0u) != 0x80u)
            return 0xFFFD;
        codepoint = codepoint << 6 | (s[i] & 0x3Fu);
    }
    *at += length - 1;
    return codepoint > 0 && codepoint <= 0x10FFFF ? codepoint : 0xFFFD;
}

int font_new(font **out)
{
    font *f = *out = mem_zalloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->shelf_x = f->shelf_y = 1;
    f->has_changed = true;
    f->scratch.bytes = mem_aligned(16, SCRATCH_BYTES);
    f->atlas = mem_zalloc(FONT_ATLAS_SIDE, FONT_ATLAS_SIDE);
    f->glyphs = mem_zalloc(GLYPH_SLOTS, sizeof *f->glyphs);
    if (!f->scratch.bytes || !f->atlas || !f->glyphs) {
        font_delete(f);
        *out = NULL;
        return -ENOMEM;
    }
    find_fonts(f);
    if (!open_next_face(f)) {
        snprintf(f->problem, sizeof f->problem,
                 "no font found: the picture has no text (install one, for example fonts-dejavu-core)");
        return 0;
    }
    for (uint32_t c = ' '; c < 0x7F; c++)
        glyph_of(f, c);
    int x0, y0, x1, y1;
    stbtt_GetCodepointBox(&f->faces[0].info, 'H', &x0, &y0, &x1, &y1);
    f->cap_height = (float)y1 * f->faces[0].scale / BAKE_PX;
    return 0;
}

void font_delete(font *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->face_count; i++)
        mem_free(f->faces[i].file);
    if (f->candidates)
        FcFontSetDestroy(f->candidates);
    mem_free(f->glyphs);
    mem_free(f->atlas);
    mem_free(f->scratch.bytes);
    mem_free(f);
}

const char *font_problem(const font *f) { return f->problem[0] ? f->problem : NULL; }

float font_measure(font *f, const char *text, size_t byte_count, float size_px)
{
    float width = 0;
    if (f->face_count == 0)
        return 0;
    for (size_t at = 0; at < byte_count;)
        width += glyph_of(f, next_codepoint(text, byte_count, &at))->advance;
    return width * size_px;
}

float font_draw(font *f, quad_list *out, float x_px, float y_px, float slope, const char *text, size_t byte_count,
                float size_px, uint32_t color)
{
    float x = x_px;
    if (f->face_count == 0)
        return x;
    if (slope == 0)
        y_px = roundf(y_px); /* straight lines of text sit on whole pixels */
    for (size_t at = 0; at < byte_count;) {
        const glyph *g = glyph_of(f, next_codepoint(text, byte_count, &at));
        float y = y_px + (x - x_px + 0.5f * g->advance * size_px) * slope;
        if (g->high[0] > g->low[0])
            quad_list_add(out, (gpu_quad){.low_px = {x + g->low[0] * size_px, y + g->low[1] * size_px},
                                          .high_px = {x + g->high[0] * size_px, y + g->high[1] * size_px},
                                          .uv_low = {g->uv_low[0], g->uv_low[1]},
                                          .uv_high = {g->uv_high[0], g->uv_high[1]},
                                          .color = color,
                                          .flags = GPU_QUAD_GLYPH});
        x += g->advance * size_px;
    }
    return x;
}

float font_cap_height(const font *f, float size_px) { return f->cap_height * size_px; }

bool font_atlas(font *f, const uint8_t **pixels, uint32_t *width, uint32_t *height)
{
    *pixels = f->atlas;
    *width = *height = FONT_ATLAS_SIDE;
    bool has_changed = f->has_changed;
    f->has_changed = false;
    return has_changed;
}
