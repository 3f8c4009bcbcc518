/* Names on boxes. A name is drawn where its box is seen, not where a nearer lane hides it: a coarse grid of cells, filled
 * with the boxes' faces from the nearest to the farthest, says which box is seen where (text has no depth of its own). */
#include "base/mem.h"
#include "view/label.h"
#include "view/palette.h"
#include "view/scene.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CELL_PX 6.0f
#define TEXT_MIN_PX 8.5f   /* smaller text says nothing */
#define TEXT_MAX_PX 15.0f
#define WIDTH_MIN_PX 20.0f
#define SLOPE_MAX 0.6f     /* steeper lines of text are no lines any more */

typedef struct cells {
    uint32_t *items; /* 1 + the box seen, 0: none */
    int width, height;
    float cell_px;
} cells;

typedef float point[2];

/* The x range of a convex quad at height y; false: it does not reach there. */
static bool span_at(point corners[4], float y, float *x_begin, float *x_end)
{
    *x_begin = INFINITY;
    *x_end = -INFINITY;
    for (int i = 0; i < 4; i++) {
        const float *a = corners[i], *b = corners[(i + 1) % 4];
        if ((a[1] <= y) == (b[1] <= y))
            continue;
        float x = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
        *x_begin = fminf(*x_begin, x);
        *x_end = fmaxf(*x_end, x);
    }
    return *x_begin < *x_end;
}

static void fill(cells *c, point corners[4], uint32_t mark)
{
    float top = INFINITY, bottom = -INFINITY;
    for (int i = 0; i < 4; i++) {
        top = fminf(top, corners[i][1]);
        bottom = fmaxf(bottom, corners[i][1]);
    }
    int first = (int)fmaxf(ceilf(top / c->cell_px - 0.5f), 0), last = (int)fminf(bottom / c->cell_px - 0.5f, (float)c->height - 1);
    for (int row = first; row <= last; row++) {
        float x_begin, x_end;
        if (!span_at(corners, ((float)row + 0.5f) * c->cell_px, &x_begin, &x_end))
            continue;
        int from = (int)fmaxf(ceilf(x_begin / c->cell_px - 0.5f), 0);
        int to = (int)fminf(x_end / c->cell_px - 0.5f, (float)c->width - 1);
        for (int column = from; column <= to; column++) {
            uint32_t *cell = &c->items[row * c->width + column];
            if (*cell == 0)
                *cell = mark;
        }
    }
}

enum { FACE_FRONT, FACE_TOP, FACE_SIDE, FACE_COUNT };

/* The corners of a face in pixels, in order around it. False: a corner lies behind the eye. */
static bool face_corners(const camera *c, const gpu_box *box, int face, point out[4])
{
    /* Per corner, which side (0 low, 1 high) of x, y and z. The front is the high z side, as no camera sees the back. */
    static const unsigned char sides[FACE_COUNT][4][3] = {
        {{0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
        {{0, 1, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 0}},
        {{1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
    };
    bool is_from_right = c->forward[0] < 0;
    for (int i = 0; i < 4; i++) {
        float world[3];
        for (int axis = 0; axis < 3; axis++) {
            bool is_high = sides[face][i][axis];
            if (face == FACE_SIDE && axis == 0)
                is_high = is_from_right;
            world[axis] = is_high ? box->high[axis] : box->low[axis];
        }
        if (!camera_project(c, world, out[i]))
            return false;
    }
    return true;
}

static bool fill_cells(scene *s, const camera *c, cells *grid)
{
    size_t begin = 0, wanted = (size_t)grid->width * (size_t)grid->height;
    if (!vec_reserve(&s->grid_cells, wanted))
        return false;
    grid->items = s->grid_cells.items;
    memset(grid->items, 0, wanted * sizeof *grid->items);
    for (size_t lane = 0; lane < s->lane_ends.count; lane++) {
        /* In a lane, fronts lie in one plane and hide everything else of it. */
        for (int face = 0; face < FACE_COUNT; face++) {
            for (size_t i = begin; i < s->lane_ends.items[lane]; i++) {
                point corners[4];
                if (face_corners(c, &s->boxes.items[i], face, corners))
                    fill(grid, corners, (uint32_t)i + 1);
            }
        }
        begin = s->lane_ends.items[lane];
    }
    return true;
}

static bool is_seen(const cells *grid, uint32_t box, uint32_t box_count, float x0, float y0, float x1, float y1)
{
    enum { SAMPLES = 7, ENOUGH = 6 };
    int seen = 0;
    for (int i = 0; i < SAMPLES; i++) {
        float t = ((float)i + 0.5f) / SAMPLES;
        int column = (int)((x0 + (x1 - x0) * t) / grid->cell_px), row = (int)((y0 + (y1 - y0) * t) / grid->cell_px);
        if (column >= 0 && row >= 0 && column < grid->width && row < grid->height &&
            grid->items[row * grid->width + column] - 1 - box < box_count)
            seen++;
    }
    return seen >= ENOUGH;
}

static float measure(const void *context, const char *text, size_t byte_count)
{
    const struct { font *f; float size_px; } *m = context;
    return font_measure(m->f, text, byte_count, m->size_px);
}

/* The middle line of a face on the screen and how high the face is along it. */
typedef struct face_line {
    float left[2], right[2];
    float left_height, right_height;
} face_line;

static bool line_of(const camera *c, const gpu_box *box, face_line *out)
{
    point corners[4];
    bool is_on_top = c->forward[1] < -0.8f; /* from above the front cannot be read */
    if (!face_corners(c, box, is_on_top ? FACE_TOP : FACE_FRONT, corners))
        return false;
    for (int axis = 0; axis < 2; axis++) {
        out->left[axis] = 0.5f * (corners[0][axis] + corners[3][axis]);
        out->right[axis] = 0.5f * (corners[1][axis] + corners[2][axis]);
    }
    out->left_height = fabsf(corners[0][1] - corners[3][1]);
    out->right_height = fabsf(corners[1][1] - corners[2][1]);
    return true;
}

/* With its middle at a share of the way along the line. False: too small there, or hidden. */
static bool draw_at(const gpu_box *box, const scene_label *label, const catalog_method *method, const face_line *line, float share, float scale,
                    const cells *grid, font *f, quad_list *out)
{
    float full_width = line->right[0] - line->left[0], slope = (line->right[1] - line->left[1]) / full_width;
    float height = line->left_height + share * (line->right_height - line->left_height);
    float width = full_width * 2 * fminf(share, 1 - share);
    const struct { font *f; float size_px; } m = {f, fminf(height * 0.82f, TEXT_MAX_PX * scale)};
    char text[LABEL_BYTES_MAX];
    if (m.size_px < TEXT_MIN_PX * scale)
        return false;
    char count[16], suffix[24] = "";
    label_count((double)label->span_count, count);
    if (label->span_count > 1)
        snprintf(suffix, sizeof suffix, " \xC3\x97 %s", count);
    size_t suffix_bytes = strlen(suffix);
    float suffix_px = font_measure(f, suffix, suffix_bytes, m.size_px);
    size_t bytes = label_fit(method->name, method->name_bytes, width - 0.7f * m.size_px - suffix_px, measure, &m, text);
    if (bytes == 0 || bytes + suffix_bytes >= sizeof text)
        return false;
    memcpy(text + bytes, suffix, suffix_bytes + 1);
    bytes += suffix_bytes;
    float text_px = font_measure(f, text, bytes, m.size_px);
    float x = line->left[0] + share * full_width - 0.5f * text_px, y = line->left[1] + slope * (x - line->left[0]);
    if (grid && !is_seen(grid, label->box, label->box_count, x, y, x + text_px, y + slope * text_px))
        return false;
    font_draw(f, out, x, y + 0.5f * font_cap_height(f, m.size_px), slope, text, bytes, m.size_px, palette_text_on(box->color));
    return true;
}

static void draw_label(const scene *s, const scene_input *in, const scene_label *label, const cells *grid, font *f, quad_list *out)
{
    gpu_box box = s->boxes.items[label->box];
    face_line line;
    box.low[0] = label->x_begin;
    box.high[0] = label->x_end;
    if (!line_of(in->camera, &box, &line))
        return;
    float width = line.right[0] - line.left[0];
    if (width < WIDTH_MIN_PX * in->scale || fabsf(line.right[1] - line.left[1]) > SLOPE_MAX * width)
        return;
    const catalog_method *method = catalog_method_of(in->model->catalog, label->process, label->method);
    static const float shares[] = {0.5f, 0.75f, 0.25f, 0.88f, 0.12f}; /* where the middle is hidden, aside */
    for (size_t i = 0; i < (grid ? sizeof shares / sizeof shares[0] : 1); i++)
        if (draw_at(&box, label, method, &line, shares[i], in->scale, grid, f, out))
            return;
}

void scene_draw_labels(scene *s, const scene_input *in, font *f, quad_list *out)
{
    cells grid = {.cell_px = CELL_PX * in->scale};
    grid.width = (int)(in->camera->width_px / grid.cell_px) + 1;
    grid.height = (int)(in->camera->height_px / grid.cell_px) + 1;
    bool is_flat_front = in->camera->is_parallel && in->camera->forward[2] < -0.999f; /* nothing hides anything */
    if (s->labels.count == 0 || (!is_flat_front && !fill_cells(s, in->camera, &grid)))
        return;
    for (size_t i = 0; i < s->labels.count; i++)
        draw_label(s, in, &s->labels.items[i], is_flat_front ? NULL : &grid, f, out);
}
