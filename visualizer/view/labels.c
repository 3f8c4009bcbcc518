/* Names on boxes. A name is drawn where its box is seen, not where a nearer lane hides it: a coarse grid of cells, filled
 * with the boxes' faces from the nearest to the farthest, says which box is seen where (text has no depth of its own). */
#include "base/mem.h"
#include "view/label.h"
#include "view/palette.h"
#include "view/scene.h"

#include <math.h>
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

/* The cells whose middles lie in a convex quad and show nothing yet. The hottest loop of a frame with names in it: plain
 * comparisons, as fminf is a call, and an inner loop that compilers can do several cells at a time. */
static void fill(cells *c, point corners[4], uint32_t mark)
{
    float top = corners[0][1], bottom = corners[0][1], slopes[4], per_px = 1 / c->cell_px;
    for (int i = 0; i < 4; i++) {
        const float *a = corners[i], *b = corners[(i + 1) % 4];
        top = a[1] < top ? a[1] : top;
        bottom = a[1] > bottom ? a[1] : bottom;
        slopes[i] = (b[0] - a[0]) / (b[1] - a[1]); /* not used where they are on a level */
    }
    top = top * per_px + 0.5f;
    bottom = bottom * per_px - 0.5f;
    int first = top > 0 ? (int)top : 0, last = bottom < (float)c->height - 1 ? (int)floorf(bottom) : c->height - 1;
    for (int row = first; row <= last; row++) {
        float y = ((float)row + 0.5f) * c->cell_px, x_begin = INFINITY, x_end = -INFINITY;
        for (int i = 0; i < 4; i++) {
            const float *a = corners[i], *b = corners[(i + 1) % 4];
            if ((a[1] <= y) == (b[1] <= y))
                continue;
            float x = a[0] + (y - a[1]) * slopes[i];
            x_begin = x < x_begin ? x : x_begin;
            x_end = x > x_end ? x : x_end;
        }
        x_begin = x_begin * per_px + 0.5f;
        x_end = x_end * per_px - 0.5f;
        if (!(x_begin < (float)c->width) || !(x_end >= 0))
            continue;
        int from = x_begin > 0 ? (int)x_begin : 0, to = x_end < (float)c->width - 1 ? (int)x_end : c->width - 1;
        uint32_t *cell = &c->items[row * c->width];
        for (int column = from; column <= to; column++)
            cell[column] = cell[column] ? cell[column] : mark;
    }
}

enum { FACE_FRONT, FACE_TOP, FACE_SIDE, FACE_COUNT };

/* The corners of the front or the top in pixels, in order around it. False: a corner lies behind the eye. */
static bool face_corners(const camera *c, const gpu_box *box, int face, point out[4])
{
    /* Per corner, which side (0 low, 1 high) of x, y and z. The front is the high z side, as no camera sees the back. */
    static const unsigned char sides[2][4][3] = {
        {{0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
        {{0, 1, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 0}},
    };
    for (int i = 0; i < 4; i++) {
        float world[3];
        for (int axis = 0; axis < 3; axis++)
            world[axis] = sides[face][i][axis] ? box->high[axis] : box->low[axis];
        if (!camera_project(c, world, out[i]))
            return false;
    }
    return true;
}

/* Boxes of one row lie on four lines along x; what a point of a line is in clip space changes evenly along it. */
enum { LINE_FRONT_LOW, LINE_FRONT_HIGH, LINE_BACK_HIGH, LINE_BACK_LOW, LINE_COUNT };

typedef struct row_lines {
    float at_zero[LINE_COUNT][3], per_x[3]; /* clip x, y, w */
    float gap_max;                          /* world units that are nothing in cells */
} row_lines;

static void set_lines(row_lines *r, const camera *c, const gpu_box *box, float cell_px)
{
    static const int components[3] = {0, 1, 3};
    const float edges[LINE_COUNT][2] = {{box->low[1], box->high[2]}, {box->high[1], box->high[2]},
                                        {box->high[1], box->low[2]}, {box->low[1], box->low[2]}};
    for (int k = 0; k < 3; k++) {
        int row = components[k];
        r->per_x[k] = c->view_projection[0][row];
        for (int line = 0; line < LINE_COUNT; line++)
            r->at_zero[line][k] = c->view_projection[1][row] * edges[line][0] + c->view_projection[2][row] * edges[line][1] +
                                  c->view_projection[3][row];
    }
    float middle[3] = {0.5f * (box->low[0] + box->high[0]), box->high[1], box->high[2]};
    r->gap_max = 0.3f * cell_px / fmaxf(camera_px_per_x(c, middle), 1e-3f);
}

static bool project_line(const row_lines *r, const camera *c, int line, float x, point px)
{
    const float *at = r->at_zero[line];
    float w = at[2] + x * r->per_x[2];
    if (w <= 1e-6f)
        return false;
    px[0] = ((at[0] + x * r->per_x[0]) / w * 0.5f + 0.5f) * c->width_px;
    px[1] = ((at[1] + x * r->per_x[1]) / w * 0.5f + 0.5f) * c->height_px;
    return true;
}

/* One face of what lies in [x_low, x_high) of a row. */
static void fill_face(cells *grid, const camera *c, const row_lines *r, int face, float x_low, float x_high, uint32_t mark)
{
    static const int lines[FACE_COUNT][4] = {{LINE_FRONT_LOW, LINE_FRONT_LOW, LINE_FRONT_HIGH, LINE_FRONT_HIGH},
                                             {LINE_FRONT_HIGH, LINE_FRONT_HIGH, LINE_BACK_HIGH, LINE_BACK_HIGH},
                                             {LINE_FRONT_LOW, LINE_BACK_LOW, LINE_BACK_HIGH, LINE_FRONT_HIGH}};
    float side = c->forward[0] < 0 ? x_high : x_low;
    const float xs[4] = {face == FACE_SIDE ? side : x_low, face == FACE_SIDE ? side : x_high, face == FACE_SIDE ? side : x_high,
                         face == FACE_SIDE ? side : x_low};
    point corners[4];
    for (int i = 0; i < 4; i++)
        if (!project_line(r, c, lines[face][i], xs[i], corners[i]))
            return;
    fill(grid, corners, mark);
}

/* Boxes of one row differ in height. */
static bool is_same_row(const scene *s, size_t a, size_t b)
{
    const view_box_ref *left = &s->refs.items[a], *right = &s->refs.items[b];
    return left->track == right->track && left->depth == right->depth && s->boxes.items[a].low[1] == s->boxes.items[b].low[1];
}

static bool has_label(const scene *s, size_t box) { return s->labelled.items[box / 32] >> (box % 32) & 1; }

/* A face of all boxes of a lane, which lie row by row. Neighbours without a name count as one: nobody asks which is which. */
static void fill_lane(const scene *s, const scene_input *in, cells *grid, size_t begin, size_t end, int face)
{
    const camera *c = in->camera;
    row_lines lines;
    for (size_t i = begin; i < end;) {
        const gpu_box *box = &s->boxes.items[i];
        if (s->refs.items[i].kind == VIEW_BOX_GVL) { /* a strip lies flat at the foot of its own lane's boxes: it hides none */
            i++;
            continue;
        }
        if (i == begin || !is_same_row(s, i, i - 1)) {
            gpu_box whole = scene_whole_box(s, in, i);
            set_lines(&lines, c, &whole, grid->cell_px);
        }
        float x_low = box->low[0], x_high = box->high[0];
        size_t first = i++;
        for (; !has_label(s, first) && i < end && !has_label(s, i); i++) {
            const gpu_box *next = &s->boxes.items[i];
            if (!is_same_row(s, i, first) || next->low[0] > x_high + lines.gap_max || next->high[0] < x_low - lines.gap_max)
                break;
            x_low = fminf(x_low, next->low[0]);
            x_high = fmaxf(x_high, next->high[0]);
        }
        fill_face(grid, c, &lines, face, x_low, x_high, (uint32_t)first + 1);
    }
}

static bool note_labelled(scene *s)
{
    size_t words = s->boxes.count / 32 + 1;
    if (!vec_reserve(&s->labelled, words))
        return false;
    memset(s->labelled.items, 0, words * sizeof *s->labelled.items);
    for (size_t i = 0; i < s->labels.count; i++)
        s->labelled.items[s->labels.items[i].box / 32] |= 1u << s->labels.items[i].box % 32;
    return true;
}

static bool fill_cells(scene *s, const scene_input *in, cells *grid)
{
    size_t begin = 0, wanted = (size_t)grid->width * (size_t)grid->height;
    if (!vec_reserve(&s->grid_cells, wanted) || !note_labelled(s))
        return false;
    grid->items = s->grid_cells.items;
    memset(grid->items, 0, wanted * sizeof *grid->items);
    uint32_t farthest = 0; /* box with a name: what lies behind it hides none */
    for (size_t i = 0; i < s->labels.count; i++)
        farthest = s->labels.items[i].box > farthest ? s->labels.items[i].box : farthest;
    for (size_t lane = 0; lane < s->lane_ends.count && begin <= farthest; lane++) {
        /* In a lane, fronts lie in one plane and hide everything else of it. */
        for (int face = 0; face < FACE_COUNT; face++)
            fill_lane(s, in, grid, begin, s->lane_ends.items[lane], face);
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

/* The name and suffix in a colour, with their middle at a share of the way along the line. False: too small there, or hidden. */
static bool draw_at(uint32_t color, const scene_label *label, const catalog_method *method, const char *suffix, const face_line *line, float share,
                    float scale, const cells *grid, font *f, quad_list *out)
{
    float full_width = line->right[0] - line->left[0], slope = (line->right[1] - line->left[1]) / full_width;
    float height = line->left_height + share * (line->right_height - line->left_height);
    float width = full_width * 2 * fminf(share, 1 - share);
    const struct { font *f; float size_px; } m = {f, fminf(height * 0.82f, TEXT_MAX_PX * scale)};
    char text[LABEL_BYTES_MAX];
    if (m.size_px < TEXT_MIN_PX * scale)
        return false;
    size_t suffix_bytes = strlen(suffix);
    float suffix_px = suffix_bytes ? font_measure(f, suffix, suffix_bytes, m.size_px) : 0;
    size_t bytes = label_fit(method->name, method->name_bytes, width - 0.7f * m.size_px - suffix_px, measure, &m, text);
    if (bytes == 0 || bytes + suffix_bytes >= sizeof text)
        return false;
    memcpy(text + bytes, suffix, suffix_bytes + 1);
    bytes += suffix_bytes;
    float text_px = font_measure(f, text, bytes, m.size_px);
    float x = line->left[0] + share * full_width - 0.5f * text_px, y = line->left[1] + slope * (x - line->left[0]);
    if (grid && !is_seen(grid, label->box, label->box_count, x, y, x + text_px, y + slope * text_px))
        return false;
    font_draw(f, out, x, y + 0.5f * font_cap_height(f, m.size_px), slope, text, bytes, m.size_px, color);
    return true;
}

static void draw_label(const scene *s, const scene_input *in, const scene_label *label, const cells *grid, font *f, quad_list *out)
{
    gpu_box box = scene_whole_box(s, in, label->box);
    face_line line;
    box.low[0] = label->x_begin;
    box.high[0] = label->x_end;
    if (!line_of(in->camera, &box, &line))
        return;
    float width = line.right[0] - line.left[0];
    if (width < WIDTH_MIN_PX * in->scale || fabsf(line.right[1] - line.left[1]) > SLOPE_MAX * width)
        return;
    const catalog_method *method = catalog_method_of(in->model->catalog, label->process, label->method);
    char suffix[24];
    label_others(label->span_count, suffix);
    bool is_on_box = s->refs.items[label->box].share > 0.6f; /* else for the most part above it */
    uint32_t color = is_on_box ? palette_text_on(box.color) : PALETTE_TEXT;
    static const float shares[] = {0.5f, 0.75f, 0.25f, 0.88f, 0.12f}; /* where the middle is hidden, aside */
    for (size_t i = 0; i < (grid ? sizeof shares / sizeof shares[0] : 1); i++)
        if (draw_at(color, label, method, suffix, &line, shares[i], in->scale, grid, f, out))
            return;
}

void scene_draw_labels(scene *s, const scene_input *in, font *f, quad_list *out)
{
    cells grid = {.cell_px = CELL_PX * in->scale};
    grid.width = (int)(in->camera->width_px / grid.cell_px) + 1;
    grid.height = (int)(in->camera->height_px / grid.cell_px) + 1;
    bool is_flat_front = in->camera->is_parallel && in->camera->forward[2] < -0.999f; /* nothing hides anything */
    if (s->labels.count == 0 || (!is_flat_front && !fill_cells(s, in, &grid)))
        return;
    for (size_t i = 0; i < s->labels.count; i++)
        draw_label(s, in, &s->labels.items[i], is_flat_front ? NULL : &grid, f, out);
}
