/* test/c/view_text.h - what a frame says: text is found again by its glyphs.
 * Use:     text_find(&frame, "12 more", &place). ASCII only, without blanks at the ends: other glyphs lie in the atlas where they come.
 */
#ifndef RRTRACE_TEST_VIEW_TEXT_H
#define RRTRACE_TEST_VIEW_TEXT_H

#include "test.h"

#include "view/font.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_place {
    float x0, y0, x1, y1;
    size_t first; /* quad */
} text_place;

static font *text_font_made;
static void text_font_free(void) { font_delete(text_font_made); }

/* Made once, as that takes longer than all the rest. */
static font *text_font(void)
{
    if (!text_font_made) {
        CHECK_EQ(font_new(&text_font_made), 0);
        atexit(text_font_free);
    }
    return text_font_made;
}

static bool text_is_at(const gpu_frame *frame, size_t first, const quad_list *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const gpu_quad *a = &frame->quads[first + i], *b = &wanted->items[i];
        if (a->flags != b->flags || memcmp(a->uv_low, b->uv_low, sizeof a->uv_low) != 0)
            return false;
    }
    return true;
}

/* From quad from on. False: the frame does not say it. out: may be NULL. */
static bool text_find_from(const gpu_frame *frame, size_t from, const char *text, text_place *out)
{
    quad_list wanted = {0};
    bool is_found = false;
    font *f = text_font();
    if (font_problem(f))
        TEST_SKIP(font_problem(f));
    font_draw(f, &wanted, 0, 0, 0, text, strlen(text), 12, 0);
    for (size_t i = from; i + wanted.count <= frame->quad_count && !is_found; i++) {
        is_found = text_is_at(frame, i, &wanted);
        if (is_found && out) {
            const gpu_quad *last = &frame->quads[i + wanted.count - 1];
            *out = (text_place){.x0 = frame->quads[i].low_px[0], .x1 = last->high_px[0], .y0 = INFINITY, .y1 = -INFINITY, .first = i};
            for (size_t k = i; k < i + wanted.count; k++) {
                out->y0 = fminf(out->y0, frame->quads[k].low_px[1]);
                out->y1 = fmaxf(out->y1, frame->quads[k].high_px[1]);
            }
        }
    }
    quad_list_free(&wanted);
    return is_found;
}

__attribute__((unused)) static bool text_find(const gpu_frame *frame, const char *text, text_place *out)
{
    return text_find_from(frame, 0, text, out);
}

__attribute__((unused)) static bool text_is_said(const gpu_frame *frame, const char *text) { return text_find_from(frame, 0, text, NULL); }

__attribute__((unused)) static size_t text_count(const gpu_frame *frame, const char *text)
{
    size_t count = 0;
    text_place at;
    for (size_t from = 0; text_find_from(frame, from, text, &at); from = at.first + 1)
        count++;
    return count;
}

#endif
