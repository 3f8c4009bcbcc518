#include "view/inspect_draw.h"

#include "base/length.h"
#include "view/label.h"
#include "view/palette.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PANEL_PX 340.0f
#define ROW_PX 21.0f
#define PAD_PX 12.0f
#define EDGE_PX 14.0f
#define FIND_TOP_PX 46.0f
#define BOTTOM_PX 40.0f    /* the line at the bottom */
#define LINE_HEIGHT_PX 30.0f
#define LINE_BOTTOM_PX 94.0f /* over the time axis of a chart, and what is said of lanes below */
#define NAME_ROWS 0.85f    /* rows that a thread's name takes above its calls */
#define HEADING_ROWS 1.3f
#define ROW_GROUND 0x30ffffffu

typedef struct column { /* panels below one another at the right */
    inspect *i;
    const scene_input *in;
    const paint *p;
    float x, y, width, bottom;
} column;

static void add_place(inspect *i, float x, float y, float width, float height, inspect_action action, focus_method m, const calls_call *call)
{
    if (i->place_count == INSPECT_PLACES)
        return;
    inspect_place *place = &i->places[i->place_count++];
    *place = (inspect_place){.x0 = x, .y0 = y, .x1 = x + width, .y1 = y + height, .action = action, .method = m};
    if (call)
        place->call = *call;
}

/* A row that can be clicked: its ground, when the pointer or Tab is there. y: its top. */
static void row_ground(const column *c, float y, inspect_action action, focus_method m, const calls_call *call)
{
    inspect *i = c->i;
    const paint *p = c->p;
    float height = ROW_PX * p->scale;
    bool is_pointed = i->is_inside && i->x_px >= c->x && i->x_px < c->x + c->width && i->y_px >= y && i->y_px < y + height;
    add_place(i, c->x, y, c->width, height, action, m, call);
    if (is_pointed)
        paint_rect(p, c->x, y, c->width, height, ROW_GROUND);
    if (i->tabbed == i->place_count)
        paint_frame(p, c->x + 2 * p->scale, y, c->width - 4 * p->scale, height, PALETTE_ACCENT);
}

static float baseline(const column *c, float y) { return y + 0.7f * ROW_PX * c->p->scale; }
static float left(const column *c) { return c->x + PAD_PX * c->p->scale; }
static float right(const column *c) { return c->x + c->width - PAD_PX * c->p->scale; }

static void heading(column *c, const char *name, const char *aside)
{
    c->y += 6 * c->p->scale;
    paint_text(c->p, left(c), baseline(c, c->y), name, PAINT_SMALL, PALETTE_ACCENT);
    if (aside)
        paint_right(c->p, right(c), baseline(c, c->y), aside, PAINT_SMALL, PALETTE_TEXT_DIM);
    c->y += ROW_PX * c->p->scale;
}

/* before: dim, in at most the first half of the row; NULL: nothing. */
static void name_row(column *c, focus_method m, const char *before, const char *figure, inspect_action action, const calls_call *call)
{
    float figure_px = paint_width(c->p, figure, PAINT_SMALL), begin = left(c);
    row_ground(c, c->y, action, m, call);
    if (before)
        begin = paint_path(c->p, begin, baseline(c, c->y), before, 0.42f * (right(c) - begin), PAINT_SMALL, PALETTE_TEXT_DIM) + 8 * c->p->scale;
    if (m.process == CATALOG_NONE) {
        paint_text(c->p, left(c), baseline(c, c->y), "(nobody: the lowest of its stack)", PAINT_SMALL, PALETTE_TEXT_DIM);
    } else {
        const catalog_method *method = catalog_method_of(c->in->model->catalog, m.process, m.number);
        float side = 9 * c->p->scale, x = begin + side + 6 * c->p->scale;
        paint_rect(c->p, begin, baseline(c, c->y) - side, side, side, palette_method(method->hash, method->kind, 0));
        paint_name(c->p, x, baseline(c, c->y), method->name, method->name_bytes, right(c) - x - figure_px - 10 * c->p->scale, PAINT_SMALL,
                   PALETTE_TEXT);
    }
    paint_right(c->p, right(c), baseline(c, c->y), figure, PAINT_SMALL, PALETTE_TEXT_DIM);
    c->y += ROW_PX * c->p->scale;
}

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void dim_row(column *c, const char *line)
{
    paint_text(c->p, left(c), baseline(c, c->y), line, PAINT_SMALL, PALETTE_TEXT_DIM);
    c->y += ROW_PX * c->p->scale;
}

static bool has_room(const column *c, float rows) { return c->y + rows * ROW_PX * c->p->scale < c->bottom; }

/* ---- the selected method -------------------------------------------------------------------------------------- */

static void figure_row(column *c, const char *name_a, const char *a, const char *name_b, const char *b)
{
    float middle = c->x + 0.5f * c->width;
    paint_text(c->p, left(c), baseline(c, c->y), name_a, PAINT_SMALL, PALETTE_TEXT_DIM);
    paint_right(c->p, middle - 10 * c->p->scale, baseline(c, c->y), a, PAINT_SMALL, PALETTE_TEXT);
    paint_text(c->p, middle + 6 * c->p->scale, baseline(c, c->y), name_b, PAINT_SMALL, PALETTE_TEXT_DIM);
    paint_right(c->p, right(c), baseline(c, c->y), b, PAINT_SMALL, PALETTE_TEXT);
    c->y += ROW_PX * c->p->scale;
}

/* A recording's figures are of all of it, or of what has been read so far. */
static void draw_extent(column *c)
{
    char line[64] = "of the whole recording";
    if (c->in->model->read_share < 1)
        snprintf(line, sizeof line, "of the %.0f %% that are read so far", floor(c->in->model->read_share * 100));
    paint_text(c->p, left(c), baseline(c, c->y), line, PAINT_SMALL, c->in->model->read_share < 1 ? PALETTE_ACCENT : PALETTE_TEXT_DIM);
    c->y += ROW_PX * c->p->scale;
}

/* "1.20 k"; "≥ 1.20 k" where there may be more; "?" where none is known. */
static void sight_count(const details *d, char *out, size_t bytes)
{
    char count[16];
    label_count((double)d->sight.calls, count);
    if (!d->sight.is_exact && d->sight.calls == 0)
        snprintf(out, bytes, "?");
    else
        snprintf(out, bytes, "%s%s", d->sight.is_exact ? "" : "\xE2\x89\xA5 ", count);
}

static void draw_figures(column *c)
{
    const details *d = &c->i->details;
    char a[24], b[24], rate[32], self[32];
    if (!c->in->model->figures) {
        sight_count(d, a, sizeof a);
        length_show((double)d->sight.ns, b);
        figure_row(c, "calls in sight", a, "their time", b);
        return;
    }
    /* What is open counts as far as it has come. */
    uint64_t calls = d->all.calls + d->open.begun, sum_ns = d->all.sum_ns + d->open.ns;
    uint64_t longest_ns = d->all.longest_ns > d->open.longest_ns ? d->all.longest_ns : d->open.longest_ns;
    label_count((double)calls, a);
    label_count(d->calls_per_s, b);
    snprintf(rate, sizeof rate, "%s/s", b);
    if (c->in->model->is_file)
        draw_extent(c);
    figure_row(c, "calls", a, c->in->model->is_file ? "on average" : "at present", rate);
    length_show((double)sum_ns, a); /* each call of a recursion counts: no report's total */
    length_show((double)(d->all.self_ns + d->open.self_ns), b);
    snprintf(self, sizeof self, "%s%s", d->open.is_self_known ? "" : "\xE2\x89\xA5 ", b);
    figure_row(c, "sum of calls", a, "self", self);
    length_show(calls ? (double)sum_ns / (double)calls : 0, a);
    length_show((double)longest_ns, b);
    figure_row(c, "mean", a, "longest", b);
    sight_count(d, a, sizeof a);
    label_count((double)d->open.calls, b);
    figure_row(c, "in sight", a, "open now", b);
}

static void draw_arcs(column *c, const char *name, const char *aside, const details_arc *arcs, uint32_t count)
{
    char calls[16], time[24], figure[48];
    heading(c, name, aside);
    for (uint32_t n = 0; n < count && has_room(c, 1); n++) {
        label_count((double)arcs[n].calls, calls);
        length_show((double)arcs[n].total_ns, time);
        snprintf(figure, sizeof figure, "%s\xC3\x97  %s", calls, time);
        name_row(c, arcs[n].method, NULL, figure, arcs[n].method.process == CATALOG_NONE ? INSPECT_BLOCK : INSPECT_SELECT, NULL);
    }
}

static void draw_details(column *c)
{
    const details *d = &c->i->details;
    const paint *p = c->p;
    const catalog_method *m = catalog_method_of(c->in->model->catalog, d->method.process, d->method.number);
    char place[4096], aside[64];
    uint32_t arcs_max = c->i->has_hot ? 3 : 6, callers = min_u32(d->caller_count, arcs_max), callees = min_u32(d->callee_count, arcs_max);
    float rows = 4 + (c->in->model->figures ? 4.0f + (c->in->model->is_file ? 1.0f : 0.0f) : 1.0f) + (float)callers + (float)callees + 1.2f;
    float height = fminf(rows * ROW_PX * p->scale + 34 * p->scale, c->bottom - c->y), top = c->y;
    float outer = c->bottom;
    c->bottom = top + height;
    paint_panel(p, c->x, c->y, c->width, height, PALETTE_ACCENT);
    add_place(c->i, c->x, c->y, c->width, height, INSPECT_BLOCK, FOCUS_NOTHING, NULL);
    c->y += 8 * p->scale;
    paint_name(p, left(c), baseline(c, c->y), m->name, m->name_bytes, c->width - 2 * PAD_PX * p->scale, PAINT_TEXT, PALETTE_TEXT);
    c->y += ROW_PX * p->scale;
    details_place(m, place, sizeof place);
    if (m->path_bytes)
        row_ground(c, c->y, INSPECT_SOURCE, d->method, NULL);
    paint_path(p, left(c), baseline(c, c->y), place[0] ? place : "no source known", c->width - 2 * PAD_PX * p->scale, PAINT_SMALL, PALETTE_TEXT_DIM);
    c->y += ROW_PX * p->scale + 4 * p->scale;
    draw_figures(c);
    details_basis_of_callers(d, aside, sizeof aside);
    draw_arcs(c, "called by", aside, d->callers, callers);
    details_basis_of_callees(d, aside, sizeof aside);
    draw_arcs(c, "calls", aside, d->callees, callees);
    paint_text(p, left(c), c->bottom - 8 * p->scale, m->path_bytes ? "Enter source   C copy   . , next   F frame   Esc" : "C copy   . , next call   F frame   Esc",
               11, PALETTE_TEXT_DIM);
    c->bottom = outer;
    c->y = top + height + 8 * p->scale;
}

/* ---- the selected span ---------------------------------------------------------------------------------------- */

/* Of all spans of that name. */
typedef struct name_sum {
    uint64_t count, open_count, sum_ns, longest_ns;
} name_sum;

static name_sum sum_of(const scene_input *in, const focus_span *selected)
{
    name_sum sum = {0};
    size_t count = 0;
    const notes_span *spans = in->model->notes ? notes_spans(in->model->notes, &count) : NULL;
    for (size_t k = 0; k < count; k++) {
        if (spans[k].process != selected->process || spans[k].string != selected->string || spans[k].begin_ns > in->model->now_ns)
            continue;
        uint64_t end_ns = spans[k].end_ns < in->model->now_ns ? spans[k].end_ns : in->model->now_ns, length_ns = end_ns - spans[k].begin_ns;
        sum.count++;
        sum.open_count += spans[k].end_ns > in->model->now_ns;
        sum.sum_ns += length_ns;
        sum.longest_ns = length_ns > sum.longest_ns ? length_ns : sum.longest_ns;
    }
    return sum;
}

static void draw_span(column *c)
{
    const focus_span *span = &c->i->focus.span;
    const catalog *names = c->in->model->catalog;
    const paint *p = c->p;
    const char *name = catalog_string_of(names, span->process, span->string);
    name_sum sum = sum_of(c->in, span);
    char a[LENGTH_BYTES], b[LENGTH_BYTES], thread[96] = "";
    float height = fminf(7 * ROW_PX * p->scale + 46 * p->scale, c->bottom - c->y), bottom = c->y + height;
    paint_panel(p, c->x, c->y, c->width, height, PALETTE_SPAN);
    add_place(c->i, c->x, c->y, c->width, height, INSPECT_BLOCK, FOCUS_NOTHING, NULL);
    c->y += 8 * p->scale;
    paint_name(p, left(c), baseline(c, c->y), name, strlen(name), c->width - 2 * PAD_PX * p->scale, PAINT_TEXT, PALETTE_TEXT);
    c->y += ROW_PX * p->scale;
    if (span->thread < catalog_thread_count(names))
        catalog_thread_title(names, span->thread, thread);
    paint_text(p, left(c), baseline(c, c->y), "a span of the program's own", PAINT_SMALL, PALETTE_TEXT_DIM);
    paint_right(p, right(c), baseline(c, c->y), thread, PAINT_SMALL, PALETTE_TEXT_DIM);
    c->y += ROW_PX * p->scale + 4 * p->scale;
    length_show((double)(span->end_ns - span->begin_ns), a);
    length_show(span->begin_ns > c->in->begin_ns ? (double)(span->begin_ns - c->in->begin_ns) : 0, b);
    figure_row(c, "this one", a, "at", b);
    heading(c, "all of that name", NULL);
    label_count((double)sum.count, a);
    label_count((double)sum.open_count, b);
    figure_row(c, "spans", a, "open now", b);
    length_show((double)sum.sum_ns, a);
    length_show(sum.count ? (double)sum.sum_ns / (double)sum.count : 0, b);
    figure_row(c, "total", a, "mean", b);
    length_show((double)sum.longest_ns, a);
    figure_row(c, "longest", a, "", "");
    paint_text(p, left(c), bottom - 8 * p->scale, "C copy   . , next   F frame   Esc", 11, PALETTE_TEXT_DIM);
    c->y = bottom + 8 * p->scale;
}

/* ---- what is slow now ----------------------------------------------------------------------------------------- */

/* "main", or with its pid where there are several processes. */
static void thread_name(const column *c, uint32_t thread, char *out, size_t bytes)
{
    char name[96];
    const catalog *names = c->in->model->catalog;
    catalog_thread_title(names, thread, name);
    if (c->in->layout->groups.count > 1)
        snprintf(out, bytes, "%s  \xC2\xB7  pid %u", name, catalog_process_at(names, catalog_thread_at(names, thread)->process)->pid);
    else
        snprintf(out, bytes, "%s", name);
}

/* Where the calls of the thread end whose first one is begin. */
static uint32_t thread_end(const hot *h, uint32_t begin)
{
    uint32_t end = begin + 1;
    while (end < h->open_count && !h->open[end].is_first)
        end++;
    return end;
}

/* What the calls of all threads take, each thread with most calls at most, under its name; one call stands beside it. */
static float open_rows(const hot *h, uint32_t most)
{
    float rows = 0;
    for (uint32_t n = 0, end; n < h->open_count; n = end) {
        end = thread_end(h, n);
        rows += most > 1 ? NAME_ROWS + (float)min_u32(end - n, most) : 1;
    }
    return rows;
}

/* As many calls a thread as there is room for. */
static uint32_t open_a_thread(const hot *h, float rows)
{
    uint32_t most = HOT_OPEN_A_THREAD;
    while (most > 1 && open_rows(h, most) > rows)
        most--;
    return most;
}

static uint64_t open_at(const column *c) { return c->i->hot.is_open_now ? c->in->model->now_ns : c->i->hot.open_at_ns; }

static void open_heading(column *c, uint32_t most)
{
    char at[LENGTH_BYTES], line[96];
    const char *what = most > 1 ? "the longest calls of each thread" : "the innermost call of each thread";
    uint64_t at_ns = open_at(c);
    length_show(at_ns > c->in->begin_ns ? (double)(at_ns - c->in->begin_ns) : 0, at);
    if (c->i->hot.is_open_now)
        snprintf(line, sizeof line, "open now: %s", what);
    else
        snprintf(line, sizeof line, "open at %s, the picture's end", at);
    heading(c, line, NULL);
}

static void open_row(column *c, const hot_call *o, const char *thread)
{
    char figure[LENGTH_BYTES];
    uint64_t at_ns = open_at(c);
    calls_call call = {.begin_ns = o->begin_ns, .end_ns = o->end_ns, .track = o->track, .depth = o->depth, .method = o->method.number,
                       .thread = o->thread, .process = o->method.process, .is_open = o->end_ns >= c->in->model->now_ns};
    length_show(at_ns > o->begin_ns ? (double)(at_ns - o->begin_ns) : 0, figure);
    name_row(c, o->method, thread, figure, INSPECT_SHOW, &call);
}

static void draw_open(column *c)
{
    const hot *h = &c->i->hot;
    char name[128];
    uint32_t most = open_a_thread(h, (c->bottom - c->y) / (ROW_PX * c->p->scale) - HEADING_ROWS), shown = 0;
    open_heading(c, most);
    if (h->open_count == 0)
        dim_row(c, "no call is open");
    for (uint32_t n = 0, end; n < h->open_count; n = end, shown++) {
        end = thread_end(h, n);
        if (shown + 1 < h->open_thread_count && !has_room(c, 1 + (most > 1 ? NAME_ROWS + (float)min_u32(end - n, most) : 1)))
            break;
        thread_name(c, h->open[n].thread, name, sizeof name);
        if (most > 1) {
            paint_path(c->p, left(c), baseline(c, c->y), name, c->width - 2 * PAD_PX * c->p->scale, PAINT_SMALL, PALETTE_TEXT_DIM);
            c->y += NAME_ROWS * ROW_PX * c->p->scale;
        }
        for (uint32_t k = n; k < end; k++) /* the longest, and what it is in */
            if (k - n + 1 < most || k + 1 == end)
                open_row(c, &h->open[k], most > 1 ? NULL : name);
    }
    if (shown < h->open_thread_count) {
        snprintf(name, sizeof name, "\xE2\x80\xA6 and %u more %s", h->open_thread_count - shown, h->open_thread_count - shown == 1 ? "thread" : "threads");
        dim_row(c, name);
    }
}

/* Does another of them read the same? */
static bool is_ambiguous(const column *c, uint32_t n)
{
    const hot *h = &c->i->hot;
    const catalog *names = c->in->model->catalog;
    const catalog_method *m = catalog_method_of(names, h->methods[n].method.process, h->methods[n].method.number);
    for (uint32_t k = 0; k < h->method_count; k++) {
        const catalog_method *other = catalog_method_of(names, h->methods[k].method.process, h->methods[k].method.number);
        if (h->methods[k].method.process != h->methods[n].method.process && other->name_bytes == m->name_bytes && memcmp(other->name, m->name, m->name_bytes) == 0)
            return true;
    }
    return false;
}

static void draw_hot_methods(column *c)
{
    const hot *h = &c->i->hot;
    char aside[48], figure[64], self[24], sight[24];
    const char *near = h->is_exact ? "" : "\xE2\x89\x88 ";
    length_show((double)h->sight_ns, sight);
    snprintf(aside, sizeof aside, "self time in %s", sight);
    heading(c, "hottest in sight", h->is_filled ? aside : "counting \xE2\x80\xA6");
    for (uint32_t n = 0; n < h->method_count && has_room(c, 1.3f); n++) {
        length_show((double)h->methods[n].self_ns, self);
        if (is_ambiguous(c, n))
            snprintf(figure, sizeof figure, "pid %u   %s%s", catalog_process_at(c->in->model->catalog, h->methods[n].method.process)->pid, near, self);
        else
            snprintf(figure, sizeof figure, "%s%s", near, self);
        float share = (float)((double)h->methods[n].self_ns / (double)h->methods[0].self_ns);
        paint_rect(c->p, c->x, c->y + 2 * c->p->scale, c->width * share, (ROW_PX - 4) * c->p->scale, 0x18ffffffu);
        name_row(c, h->methods[n].method, NULL, figure, INSPECT_SELECT, NULL);
    }
}

static void draw_hot(column *c)
{
    const paint *p = c->p;
    const hot *h = &c->i->hot;
    float row_px = ROW_PX * p->scale, free_rows = (c->bottom - c->y) / row_px, methods = (float)h->method_count + 3;
    /* Half of the room is the open calls', or what the hottest methods leave. */
    float room = fmaxf(0.5f * free_rows, free_rows - methods) - HEADING_ROWS;
    float all = h->open_count ? open_rows(h, open_a_thread(h, room)) : 1, open = HEADING_ROWS + fminf(all + 0.1f, room);
    float rows = fminf(open + methods, free_rows);
    if (free_rows < 6)
        return;
    paint_panel(p, c->x, c->y, c->width, rows * row_px + 10 * p->scale, PALETTE_GC);
    add_place(c->i, c->x, c->y, c->width, rows * row_px + 10 * p->scale, INSPECT_BLOCK, FOCUS_NOTHING, NULL);
    float bottom = c->y + rows * row_px;
    column part = *c;
    part.bottom = c->y + open * row_px;
    draw_open(&part);
    c->y = part.y;
    c->bottom = bottom + 8 * p->scale;
    draw_hot_methods(c);
}

/* ---- the tip --------------------------------------------------------------------------------------------------- */

static uint32_t tip_edge(const inspect *i, const scene_input *in)
{
    const view_box_ref *r = &i->tip.ref;
    switch (r->kind) {
    case VIEW_BOX_GVL: return palette_gvl((sim_gvl)r->value);
    case VIEW_BOX_GC: return PALETTE_GC;
    case VIEW_BOX_SPAN: return PALETTE_SPAN;
    case VIEW_BOX_MARK: return r->process == CATALOG_NONE ? PALETTE_ACCENT : PALETTE_SPAN;
    default: break;
    }
    const catalog_method *m = catalog_method_of(in->model->catalog, r->process, r->value);
    return palette_method(m->hash, m->kind, 0);
}

static void draw_tip(const inspect *i, const scene_input *in, const paint *p)
{
    char lines[DETAILS_LINES][160];
    size_t count = details_lines(&i->tip, in, lines);
    float width = 0, row = 18 * p->scale, pad = 9 * p->scale;
    for (size_t n = 0; n < count; n++)
        width = fmaxf(width, paint_width(p, lines[n], n == 0 ? PAINT_TEXT : PAINT_SMALL));
    width = fminf(width, 560 * p->scale) + 2 * pad;
    float height = row * (float)count + 1.4f * pad, x = i->x_px + 16 * p->scale, y = i->y_px + 18 * p->scale;
    if (x + width > p->width_px - 4)
        x = fmaxf(i->x_px - width - 10 * p->scale, 4);
    if (y + height > p->height_px - 4)
        y = fmaxf(i->y_px - height - 10 * p->scale, 4);
    paint_panel(p, x, y, width, height, tip_edge(i, in));
    for (size_t n = 0; n < count; n++) {
        float at = y + pad + row * ((float)n + 0.62f);
        if (n == 0)
            paint_name(p, x + pad, at, lines[n], strlen(lines[n]), width - 2 * pad, PAINT_TEXT, PALETTE_TEXT);
        else
            paint_path(p, x + pad, at, lines[n], width - 2 * pad, PAINT_SMALL, n == 1 && count > 3 ? PALETTE_TEXT_DIM : PALETTE_TEXT);
    }
}

/* ---- the search ------------------------------------------------------------------------------------------------ */

/* Below the lines in the corner. */
static float find_top(const inspect *i) { return fmaxf(FIND_TOP_PX * i->scale, i->top_px + 8 * i->scale); }

static void draw_find(inspect *i, const paint *p)
{
    const find *f = &i->find;
    const char *help = "name  /regex/  thread:NAME  process:PID  dur>1ms   Enter next (Shift: back)   Tab keeps it   Esc clears";
    char counts[96];
    float width = fminf(640 * p->scale, p->width_px - 2 * EDGE_PX * p->scale), x = 0.5f * (p->width_px - width), y = find_top(i);
    float height = inspect_find_px(i) - y, at = y + 23 * p->scale, text_x = x + 32 * p->scale;
    paint_panel(p, x, y, width, height, f->error[0] ? PALETTE_GC : PALETTE_ACCENT);
    add_place(i, x, y, width, height, INSPECT_BLOCK, FOCUS_NOTHING, NULL);
    paint_text(p, x + 14 * p->scale, at, "/", 15, PALETTE_ACCENT);
    inspect_found(i, counts, sizeof counts);
    const char *aside = f->error[0] ? f->error : f->is_active ? counts : "";
    float aside_px = paint_width(p, aside, PAINT_SMALL), room = width - 60 * p->scale - aside_px;
    const char *shown = f->text;
    size_t before = f->cursor;
    while (font_measure(p->f, shown, before, 15 * p->scale) > room && before > 0)
        shown++, before--;
    while (before > 0 && label_is_within(*shown))
        shown++, before--;
    size_t bytes = strlen(shown);
    while (bytes > before && font_measure(p->f, shown, bytes, 15 * p->scale) > room)
        bytes--;
    font_draw(p->f, p->out, text_x, at, 0, shown, bytes, 15 * p->scale, PALETTE_TEXT);
    if (f->is_open)
        paint_rect(p, text_x + font_measure(p->f, shown, before, 15 * p->scale), at - 13 * p->scale, fmaxf(1, 1.5f * p->scale), 17 * p->scale, PALETTE_ACCENT);
    paint_right(p, x + width - 14 * p->scale, at, aside, PAINT_SMALL, f->error[0] ? PALETTE_GC : i->found.calls ? PALETTE_TEXT : PALETTE_ACCENT);
    if (f->is_open)
        paint_text(p, text_x, at + 21 * p->scale, help, 11, PALETTE_TEXT_DIM);
}

/* From where to where a line at a world x, before the last lane, goes on the screen: px[0] its x. False: out of sight. */
static bool line_at(const scene_input *in, const paint *p, uint64_t at_ns, float px[2], float *top, float *bottom)
{
    float world[3] = {scene_x(in, at_ns), 0, in->layout->z_end};
    if (!camera_project(in->camera, world, px) || px[0] < 0 || px[0] > p->width_px)
        return false;
    bool is_chart = fmaxf(in->layout->flame, in->layout->threads_share) > 0.5f;
    *bottom = is_chart ? p->height_px - 64 * p->scale : fminf(px[1] + 6 * p->scale, p->height_px - 64 * p->scale);
    *top = is_chart ? 42 * p->scale : fmaxf(px[1] - 120 * p->scale, 42 * p->scale);
    return true;
}

/* Where a name goes on a line from top to bottom: at its upper end, or lower where it may; right of it, but for the picture's edge.
 * False: something else is there. */
static bool claim_name(const paint *p, paint_taken *taken, float x_px, float top, float bottom, float width, float height, bool may_be_lower,
                       paint_rect4 *out)
{
    float x = x_px + width > p->width_px ? x_px - width : x_px;
    for (float y = top; y + height <= bottom; y += height) {
        *out = (paint_rect4){x, y, x + width, y + height};
        if (paint_claim(taken, *out))
            return true;
        if (!may_be_lower)
            break;
    }
    return false;
}

/* Its name only where nothing else is; the user's own marks look for a place. */
static void draw_flag(inspect *i, const scene_input *in, const paint *p, const view_box_ref *mark, const char *name, uint32_t color, paint_taken *taken)
{
    float px[2], top, bottom;
    if (!line_at(in, p, mark->begin_ns, px, &top, &bottom))
        return;
    float width = paint_width(p, name, 11) + 8 * p->scale, height = 16 * p->scale;
    paint_rect4 at;
    bool is_named = claim_name(p, taken, px[0], top, bottom, width, height, mark->process == CATALOG_NONE, &at);
    if (!is_named)
        at = (paint_rect4){px[0], top, px[0] + 5 * p->scale, top + height};
    paint_rect(p, px[0], top, fmaxf(1, p->scale), bottom - top, palette_alpha(color, 0.8f));
    paint_rect(p, at.x0, at.y0, at.x1 - at.x0, height, color);
    if (i->flag_count < INSPECT_FLAGS)
        i->flags[i->flag_count++] = (inspect_flag){.x0 = at.x0, .y0 = at.y0, .x1 = at.x1, .y1 = at.y1, .bottom = bottom, .ref = *mark};
    if (is_named)
        paint_text(p, at.x0 + 4 * p->scale, at.y0 + 12 * p->scale, name, 11, palette_text_on(color));
}

/* A slanted line of text takes a row of small rectangles. False: not all of them are free. */
static bool claim_slanted(paint_taken *taken, float x, float y, float width, float half_height, float slope)
{
    enum { PIECES = 8 };
    paint_rect4 pieces[PIECES];
    for (int n = 0; n < PIECES; n++) {
        float from = width * (float)n / PIECES, to = width * (float)(n + 1) / PIECES, a = y + slope * from, b = y + slope * to;
        pieces[n] = (paint_rect4){x + from, fminf(a, b) - half_height, x + to, fmaxf(a, b) + half_height};
        if (!paint_is_free(taken, pieces[n]))
            return false;
    }
    for (int n = 0; n < PIECES; n++)
        paint_take(taken, pieces[n]);
    return true;
}

static void draw_span_name(const scene_input *in, const paint *p, const scene_span *span, paint_taken *taken)
{
    float y = 0.5f * (span->y[0] + span->y[1]), from[3] = {span->x[0], y, span->z}, to[3] = {span->x[1], y, span->z}, a[2], b[2];
    float top[3] = {span->x[0], span->y[1], span->z}, corner[2];
    char text[160], length[24];
    if (!camera_project(in->camera, from, a) || !camera_project(in->camera, to, b) || !camera_project(in->camera, top, corner))
        return;
    float size = fminf(2 * fabsf(a[1] - corner[1]) * 0.8f / p->scale, PAINT_SMALL);
    const char *name = catalog_string_of(in->model->catalog, span->ref.process, span->ref.value);
    if (span->ref.span_count > 1) {
        label_count((double)span->ref.span_count, length);
        snprintf(text, sizeof text, "%.100s \xC3\x97 %s", name, length);
    } else {
        length_show((double)(span->ref.end_ns - span->ref.begin_ns), length);
        snprintf(text, sizeof text, "%.100s  %s", name, length);
    }
    if (size < 8 || paint_width(p, text, size) > b[0] - a[0] - 8 * p->scale)
        snprintf(text, sizeof text, "%.100s", name);
    if (size < 8 || paint_width(p, text, size) > b[0] - a[0] - 8 * p->scale)
        return;
    float slope = b[0] > a[0] ? (b[1] - a[1]) / (b[0] - a[0]) : 0, pad = 5 * p->scale;
    if (!claim_slanted(taken, a[0] + pad, a[1] + slope * pad, paint_width(p, text, size), 0.5f * size * p->scale, slope))
        return;
    font_draw(p->f, p->out, a[0] + 5 * p->scale, a[1] + slope * 5 * p->scale + 0.5f * font_cap_height(p->f, size * p->scale), slope, text, strlen(text),
              size * p->scale, palette_text_on(PALETTE_SPAN));
}

static view_box_ref mark_ref(uint64_t at_ns, uint32_t process, uint32_t thread, uint32_t value)
{
    return (view_box_ref){.begin_ns = at_ns, .end_ns = at_ns, .process = process, .thread = thread, .value = value, .span_count = 1, .kind = VIEW_BOX_MARK};
}

/* The two ends of the stretch that is measured; its length comes on top of the panels. */
static void draw_measure_lines(const scene_input *in, const paint *p)
{
    float px[2], top, bottom;
    for (int end = 0; end < 2 && in->measure_ns[0] < in->measure_ns[1]; end++)
        if (line_at(in, p, in->measure_ns[end], px, &top, &bottom))
            paint_rect(p, px[0] - 0.75f * p->scale, top, fmaxf(1, 1.5f * p->scale), bottom - top, PALETTE_ACCENT);
}

/* Nearest first, and of one lane the newest: what comes later has a name only where there is room for it. */
static void draw_span_names(const scene *s, const scene_input *in, const paint *p, paint_taken *taken)
{
    float nearest = -INFINITY;
    for (size_t n = 0; n < s->spans.count; n++)
        nearest = fmaxf(nearest, s->spans.items[n].z);
    while (nearest > -INFINITY) { /* lane by lane */
        float next = -INFINITY;
        for (size_t n = s->spans.count; n-- > 0;) {
            const scene_span *span = &s->spans.items[n];
            if (span->z == nearest)
                draw_span_name(in, p, span, taken);
            else if (span->z < nearest)
                next = fmaxf(next, span->z);
        }
        nearest = next;
    }
}

void inspect_draw_notes(inspect *i, const scene *s, const scene_input *in, const paint *p, paint_taken *taken)
{
    size_t count = 0;
    const notes_mark *own = in->model->notes ? notes_marks(in->model->notes, &count) : NULL;
    char name[64];
    for (uint32_t n = 0; n < i->place_count; n++) /* panels, where the last frame had them: they are drawn later, over all this */
        if (i->places[n].action == INSPECT_BLOCK)
            paint_take(taken, (paint_rect4){i->places[n].x0, i->places[n].y0, i->places[n].x1, i->places[n].y1});
    i->flag_count = 0;
    for (uint32_t n = i->mark_count; n-- > 0;) { /* the user's first */
        view_box_ref mark = mark_ref(i->marks[n], CATALOG_NONE, SIM_TRACK_NONE, n + 1);
        snprintf(name, sizeof name, "mark %u", n + 1);
        draw_flag(i, in, p, &mark, name, PALETTE_ACCENT, taken);
    }
    for (size_t n = count; n-- > 0;) {
        if (own[n].at_ns < s->begin_ns || own[n].at_ns > s->end_ns)
            continue;
        view_box_ref mark = mark_ref(own[n].at_ns, own[n].process, own[n].thread, own[n].string);
        snprintf(name, sizeof name, "%.60s", catalog_string_of(in->model->catalog, own[n].process, own[n].string));
        draw_flag(i, in, p, &mark, name, PALETTE_SPAN, taken);
    }
    draw_span_names(s, in, p, taken);
    draw_measure_lines(in, p);
}

/* How long it is, in the middle of what is seen of it. */
static void draw_measure(const scene_input *in, const paint *p)
{
    char length[LENGTH_BYTES], line[64];
    float middle[2], px[2], top, bottom;
    const uint64_t *ns = in->measure_ns;
    uint64_t middle_ns = ns[0] + (ns[1] - ns[0]) / 2;
    if (ns[0] >= ns[1])
        return;
    if (!line_at(in, p, middle_ns, middle, &top, &bottom)) {
        middle[0] = 0.5f * p->width_px;
        top = 42 * p->scale;
    }
    for (int end = 0; end < 2; end++) { /* an end that is out of sight is at the picture's edge */
        float unused[2];
        if (line_at(in, p, ns[end], px, &unused[0], &unused[1]))
            middle[0] = end == 0 ? fmaxf(middle[0], px[0]) : fminf(middle[0], px[0]);
    }
    length_show((double)(ns[1] - ns[0]), length);
    snprintf(line, sizeof line, "F frames it   Esc");
    float width = fmaxf(paint_width(p, length, 16), paint_width(p, line, 11)) + 20 * p->scale, height = 44 * p->scale;
    float x = fminf(fmaxf(middle[0] - 0.5f * width, 4), p->width_px - width - 4), y = top + 20 * p->scale;
    paint_panel(p, x, y, width, height, PALETTE_ACCENT);
    paint_text(p, x + 0.5f * (width - paint_width(p, length, 16)), y + 21 * p->scale, length, 16, PALETTE_TEXT);
    paint_text(p, x + 0.5f * (width - paint_width(p, line, 11)), y + 37 * p->scale, line, 11, PALETTE_TEXT_DIM);
}

paint_rect4 inspect_line_place(const inspect *i, const paint *p)
{
    if (i->line_age_s >= INSPECT_LINE_S)
        return (paint_rect4){0};
    float width = paint_width(p, i->line, PAINT_TEXT) + 24 * p->scale, free_px = p->width_px - inspect_panel_px(i, p->width_px);
    float x = fmaxf(0.5f * (free_px - width), 4);
    float bottom = p->height_px - i->bottom_px - LINE_BOTTOM_PX * p->scale;
    return (paint_rect4){x, bottom - LINE_HEIGHT_PX * p->scale, x + width, bottom};
}

void inspect_draw_line(const inspect *i, const paint *p)
{
    paint_rect4 place = inspect_line_place(i, p);
    if (place.x1 <= place.x0)
        return;
    paint_panel(p, place.x0, place.y0, place.x1 - place.x0, place.y1 - place.y0, PALETTE_ACCENT);
    paint_text(p, place.x0 + 12 * p->scale, place.y0 + 20 * p->scale, i->line, PAINT_TEXT, PALETTE_TEXT);
}

static float panel_width(float width_px, float scale) { return fminf(PANEL_PX * scale, 0.5f * width_px); }

float inspect_panel_px(const inspect *i, float width_px)
{
    bool is_open = i->focus.selected.process != CATALOG_NONE || i->focus.span.is_set || i->has_hot;
    return is_open ? panel_width(width_px, i->scale) + EDGE_PX * i->scale : 0;
}

float inspect_find_px(const inspect *i)
{
    return find_is_shown(&i->find) ? find_top(i) + (i->find.is_open ? 56 : 34) * i->scale : 0;
}

void inspect_draw(inspect *i, const scene_input *in, const paint *p)
{
    column c = {.i = i, .in = in, .p = p, .width = panel_width(p->width_px, p->scale), .bottom = p->height_px - i->bottom_px - BOTTOM_PX * p->scale};
    c.x = p->width_px - c.width - EDGE_PX * p->scale;
    c.y = fmaxf(fmaxf(i->top_px, 40 * p->scale), inspect_find_px(i)) + 8 * p->scale;
    i->place_count = 0;
    if (i->focus.selected.process != CATALOG_NONE)
        draw_details(&c);
    else if (i->focus.span.is_set)
        draw_span(&c);
    if (i->has_hot)
        draw_hot(&c);
    if (find_is_shown(&i->find))
        draw_find(i, p);
    draw_measure(in, p);
    inspect_draw_line(i, p);
    if (i->has_tip)
        draw_tip(i, in, p);
    if (i->tabbed > i->place_count)
        i->tabbed = 0;
}
