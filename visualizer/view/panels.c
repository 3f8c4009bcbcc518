#include "view/panels.h"

#include "view/label.h"
#include "view/paint.h"
#include "view/palette.h"
#include "wire/event.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EDGE_PX 14.0f /* from the window's border */
#define PILL_HEIGHT 1.5f /* of its text's size */
#define NAME_MIN_PX 9.0f /* of a lane's name */
#define HELP_ROW_PX 23.0f
#define HELP_WIDTH_PX 660.0f
#define FULL {1, {{0, 1}}}

typedef struct painter {
    const panels_input *in;
    paint paint;
    float scale, width_px, height_px; /* paint's */
} painter;

/* Text on a dark ground with its middle at y; false: no room. */
static bool pill(painter *p, float x, float y, const char *s, float size, uint32_t color, float alpha)
{
    float width = paint_width(&p->paint, s, size), half = 0.5f * PILL_HEIGHT * size * p->scale, pad = 6 * p->scale;
    paint_rect4 r = {x - pad, y - half, x + width + pad, y + half};
    if (width == 0 || !paint_claim(p->in->taken, r))
        return false;
    paint_rect(&p->paint, r.x0, r.y0, r.x1 - r.x0, r.y1 - r.y0, palette_alpha(PALETTE_PANEL, alpha));
    paint_text(&p->paint, x, y + 0.5f * font_cap_height(p->paint.f, size * p->scale), s, size, palette_alpha(color, alpha));
    return true;
}

/* Cut at a whole character. */
static void copy_cut(char *out, size_t out_bytes, const char *s)
{
    size_t n = strlen(s), room = out_bytes - sizeof LABEL_ELLIPSIS;
    if (n < out_bytes) {
        memcpy(out, s, n + 1);
        return;
    }
    while (room > 0 && label_is_within(s[room]))
        room--;
    memcpy(out, s, room);
    memcpy(out + room, LABEL_ELLIPSIS, sizeof LABEL_ELLIPSIS);
}

void panels_process_title(const catalog *c, uint32_t process_id, char *out)
{
    const catalog_process *process = catalog_process_at(c, process_id);
    const char *command = process->command;
    /* Of the first word only the file name: "/usr/bin/ruby app.rb" is "ruby app.rb". */
    size_t first_word = strcspn(command, " ");
    for (size_t i = first_word; i-- > 0;) {
        if (command[i] == '/') {
            command += i + 1;
            break;
        }
    }
    char cut[80];
    copy_cut(cut, sizeof cut, command[0] ? command : "process");
    snprintf(out, 160, "%s  \xC2\xB7  pid %u", cut, process->pid);
}

/* The left visible end of a lane, in pixels. */
static bool lane_anchor(const painter *p, const layout_lane *lane, float px[2])
{
    const scene_input *in = p->in->scene;
    float z[2], y[2];
    layout_strip(in->layout, lane, z, y);
    uint64_t begin_ns = catalog_thread_at(in->model->catalog, lane->thread)->begin_ns;
    float x[2] = {fmaxf(scene_x(in, begin_ns), -60), fminf(scene_x(in, p->in->built->end_ns), 60)};
    float y_middle = 0.5f * (y[0] + y[1]), z_middle = 0.5f * (z[0] + z[1]);
    if (!camera_clip_bar(in->camera, y_middle, z_middle, 0, 0, &x[0], &x[1]))
        return false;
    float world[3] = {x[0], y_middle, z_middle};
    return camera_project(in->camera, world, px);
}

/* Lanes close to each other have smaller names, so that fewer of them are left out. */
static float lane_name_size(const painter *p, size_t index, const float px[2])
{
    const layout *l = p->in->scene->layout;
    float other[2], pitch_px = INFINITY;
    if ((index + 1 < l->lanes.count && lane_anchor(p, &l->lanes.items[index + 1], other)) || (index > 0 && lane_anchor(p, &l->lanes.items[index - 1], other)))
        pitch_px = fabsf(other[1] - px[1]) / p->scale;
    return fminf(fmaxf(pitch_px / PILL_HEIGHT - 0.1f, NAME_MIN_PX), PAINT_TEXT);
}

/* With a word about rows that stand for several levels of its stack. */
static void lane_title(const catalog *c, uint32_t thread, uint32_t levels, char out[160])
{
    catalog_thread_title(c, thread, out);
    size_t length = strlen(out);
    if (levels > 1)
        snprintf(out + length, 160 - length, "  \xC2\xB7  %u levels a row", levels);
}

static void draw_lane_names(painter *p)
{
    const layout *l = p->in->scene->layout;
    const catalog *c = p->in->scene->model->catalog;
    float least = EDGE_PX * p->scale + 4 * p->scale, bottom = p->height_px - 46 * p->scale, top = 44 * p->scale;
    for (int pass = 0; pass < 2; pass++) { /* processes first: without theirs, threads' names say little */
        for (size_t i = 0; i < l->lanes.count; i++) {
            const layout_lane *lane = &l->lanes.items[i];
            const layout_group *group = &l->groups.items[lane->group];
            bool is_title = pass == 0;
            char name[160];
            float px[2];
            if (is_title && (l->groups.count < 2 || group->lane_begin != i))
                continue;
            if (!lane_anchor(p, lane, px))
                continue;
            if (is_title) {
                panels_process_title(c, group->process, name);
                px[1] -= 1.6f * PAINT_TEXT * p->scale;
            } else {
                lane_title(c, lane->thread, l->threads.items[lane->thread].levels_a_row, name);
            }
            if (px[1] < top || px[1] > bottom)
                continue;
            float size = is_title ? PAINT_SMALL : lane_name_size(p, i, px), x = fmaxf(px[0] - 10 * p->scale - paint_width(&p->paint, name, size), least);
            pill(p, x, px[1], name, size, is_title ? PALETTE_TEXT_DIM : PALETTE_TEXT, lane->weight);
        }
    }
}

static bool axis_point(const painter *p, uint64_t time_ns, float px[2])
{
    const scene_input *in = p->in->scene;
    return scene_axis_point(in->camera, scene_x(in, time_ns), in->layout->z_end, fmaxf(in->layout->flame, in->layout->threads_share), p->height_px,
                            p->scale, px);
}

static void draw_now(painter *p)
{
    const char *name = p->in->status->ended ? "end" : "now";
    float px[2], width = paint_width(&p->paint, name, PAINT_SMALL);
    if (axis_point(p, p->in->scene->model->now_ns, px) && px[0] > 0 && px[0] < p->width_px)
        pill(p, fminf(px[0] - 0.5f * width, p->width_px - width - EDGE_PX), px[1], name, PAINT_SMALL,
             p->in->is_live ? PALETTE_ACCENT : PALETTE_TEXT, 1);
}

typedef struct axis_ticks {
    int64_t first_ns;
    uint64_t step_ns;
    int count;
    int whole; /* which one tells the whole time; -1: all do */
} axis_ticks;

static bool tick_point(const painter *p, const axis_ticks *t, int n, float px[2])
{
    return axis_point(p, p->in->scene->begin_ns + (uint64_t)(t->first_ns + n * (int64_t)t->step_ns), px);
}

/* How round a time is: by how many tens it can be divided. */
static int roundness(int64_t time_ns)
{
    int tens = 0;
    for (; time_ns != 0 && time_ns % 10 == 0; time_ns /= 10)
        tens++;
    return tens;
}

static axis_ticks ticks_of(const painter *p)
{
    const scene_input *in = p->in->scene;
    axis_ticks t = {.whole = -1};
    int best = -1;
    scene_ticks(in, p->in->built->begin_ns, &t.first_ns, &t.step_ns);
    while (t.count < 64 && in->begin_ns + (uint64_t)(t.first_ns + t.count * (int64_t)t.step_ns) <= p->in->built->end_ns)
        t.count++;
    for (int n = 0; n < t.count && label_is_far(t.first_ns, t.step_ns); n++) { /* the roundest that has room */
        float px[2], room = 70 * p->scale;
        int its = roundness(t.first_ns + n * (int64_t)t.step_ns);
        if (its > best && tick_point(p, &t, n, px) && px[0] > room && px[0] < p->width_px - p->in->panel_px - room) {
            best = its;
            t.whole = n;
        }
    }
    return t;
}

static void draw_tick(painter *p, const axis_ticks *t, int n)
{
    float px[2];
    char name[32];
    int64_t at_ns = t->first_ns + n * (int64_t)t->step_ns;
    if (!tick_point(p, t, n, px))
        return;
    if (t->whole < 0)
        label_tick(at_ns, t->step_ns, name);
    else if (t->whole == n)
        label_whole(at_ns, t->step_ns, name);
    else
        label_offset((n - t->whole) * (int64_t)t->step_ns, t->step_ns, name);
    float width = paint_width(&p->paint, name, PAINT_SMALL), x = px[0] - 0.5f * width;
    if (x >= EDGE_PX && x + width <= p->width_px - EDGE_PX)
        pill(p, x, px[1], name, PAINT_SMALL, t->whole == n ? PALETTE_TEXT : PALETTE_TEXT_DIM, 1);
}

static void draw_time_axis(painter *p)
{
    axis_ticks t = ticks_of(p);
    if (t.whole >= 0)
        draw_tick(p, &t, t.whole); /* first, as the others mean nothing without it */
    for (int n = 0; n < t.count; n++)
        if (n != t.whole)
            draw_tick(p, &t, n);
}

/* Charts run under the lines of text at the edges: a ground for them. */
static void draw_bars(painter *p)
{
    float parallel = fmaxf(p->in->scene->layout->flame, p->in->scene->layout->threads_share);
    uint32_t ground = palette_alpha(PALETTE_BACKGROUND, 0.55f + 0.45f * parallel); /* in a chart nothing shines through */
    float bottom = (34 + 30 * parallel) * p->scale;
    paint_rect(&p->paint, 0, 0, p->width_px, 40 * p->scale, ground);
    paint_rect(&p->paint, 0, p->height_px - bottom, p->width_px, bottom, ground);
}

/* The longest of some texts that is narrow enough; NULL: none is. */
static const char *fitting(const painter *p, const char *const *texts, size_t count, float width_px, float size)
{
    for (size_t i = 0; i < count; i++)
        if (paint_width(&p->paint, texts[i], size) <= width_px)
            return texts[i];
    return NULL;
}

/* Cut at its end until it fits. */
static void cut_to(const painter *p, char *text, float width_px, float size)
{
    size_t bytes = strlen(text);
    while (bytes > 4 && paint_width(&p->paint, text, size) > width_px) {
        do
            bytes--;
        while (bytes > 0 && label_is_within(text[bytes]));
        snprintf(text + bytes, sizeof LABEL_ELLIPSIS, "%s", LABEL_ELLIPSIS);
    }
}

/* Returns where it ends. */
static float draw_title(painter *p)
{
    const layout *l = p->in->scene->layout;
    const catalog *c = p->in->scene->model->catalog;
    float y = 27 * p->scale, x = EDGE_PX * p->scale;
    char title[200];
    if (catalog_process_count(c) == 0)
        return x;
    if (l->groups.count > 1)
        snprintf(title, sizeof title, "%zu processes", l->groups.count);
    else
        panels_process_title(c, l->groups.count ? l->groups.items[0].process : 0, title);
    cut_to(p, title, 0.55f * p->width_px - x, 16);
    x = paint_text(&p->paint, x, y, title, 16, PALETTE_TEXT);
    char count[16];
    label_count((double)p->in->status->event_count, count);
    snprintf(title, sizeof title, "%zu %s  \xC2\xB7  %s events", l->lanes.count, l->lanes.count == 1 ? "thread" : "threads", count);
    if (x + 14 * p->scale + paint_width(&p->paint, title, PAINT_SMALL) < 0.55f * p->width_px) /* the corner line comes from the right */
        x = paint_text(&p->paint, x + 14 * p->scale, y, title, PAINT_SMALL, PALETTE_TEXT_DIM);
    return x;
}

/* Right-aligned at x: nothing may lie over it. */
static void corner_line(painter *p, float x, float y, const char *line, float size, uint32_t color)
{
    paint_right(&p->paint, x, y, line, size, color);
    paint_take(p->in->taken, (paint_rect4){x - paint_width(&p->paint, line, size) - 20 * p->scale, y - size * p->scale, p->width_px, y + 5 * p->scale});
}

/* Right-aligned at x, with a red light before it. */
static void draw_recording(painter *p, float x, float y)
{
    const view_status *s = p->in->status;
    char line[160], bytes[24], name[96];
    float side = 10 * p->scale;
    copy_cut(name, sizeof name, s->recording);
    label_bytes(s->recorded_bytes, bytes);
    snprintf(line, sizeof line, "recording  %s  %s", name, bytes);
    corner_line(p, x, y, line, PAINT_TEXT, PALETTE_TEXT);
    quad_list_rect(p->paint.out, x - paint_width(&p->paint, line, PAINT_TEXT) - 1.8f * side, y - side, side, side, PALETTE_GC);
}

/* What goes on, right-aligned at x: as much of it as there is room for behind left_px. */
static void draw_figures(painter *p, float left_px, float x, float y)
{
    const view_status *s = p->in->status;
    char all[160], most[128], some[64], least[32], events[16], backlog[16], used[16], budget[16];
    label_count(s->events_per_s, events);
    label_count((double)s->backlog_events, backlog);
    label_bytes(s->memory_bytes, used);
    label_bytes(s->memory_budget, budget);
    snprintf(all, sizeof all, "%s events/s   backlog %s   %.0f frames/s   %s of %s", events, backlog, s->frames_per_s, used, budget);
    snprintf(most, sizeof most, "%s events/s   backlog %s   %s of %s", events, backlog, used, budget);
    snprintf(some, sizeof some, "%s events/s   backlog %s", events, backlog);
    snprintf(least, sizeof least, s->ended ? "%s of %s" : "backlog %s", s->ended ? used : backlog, budget);
    const char *const texts[] = {all, most, some, least};
    size_t first = s->ended ? 3 : 0;
    const char *text = fitting(p, texts + first, 4 - first, x - left_px - 20 * p->scale, PAINT_SMALL);
    if (text)
        corner_line(p, x, y, text, PAINT_SMALL, PALETTE_TEXT_DIM);
}

/* Returns how far down it reaches. */
static float draw_corner(painter *p, float left_px)
{
    const view_status *s = p->in->status;
    char line[160], events[16], other[16];
    float x = p->width_px - EDGE_PX * p->scale, y = 26 * p->scale, step = 19 * p->scale;
    if (!p->in->is_still)
        draw_figures(p, left_px, x, y);
    if (s->recording && !p->in->is_still)
        draw_recording(p, x, y += step);
    if (s->is_file && s->read_share < 1 && !p->in->is_still) {
        snprintf(line, sizeof line, "reading the recording: %.0f %%", floor(s->read_share * 100));
        corner_line(p, x, y += step, line, PAINT_SMALL, PALETTE_TEXT_DIM);
    }
    if (s->ended && !s->is_file && !p->in->is_still)
        corner_line(p, x, y += step, "program ended \xE2\x80\x93 last picture", PAINT_TEXT, PALETTE_TEXT);
    if (s->evicted_count > 0) {
        label_count((double)s->evicted_count, events);
        label_count((double)s->span_count, other);
        snprintf(line, sizeof line, "the oldest %s of %s calls in outline only (--memory)", events, other);
        corner_line(p, x, y += step, line, PAINT_SMALL, PALETTE_TEXT_DIM);
    }
    if (s->writer_waits > 0) {
        label_count((double)s->writer_waits, events);
        snprintf(line, sizeof line, "the program waited %s times for this window (--buffer)", events);
        corner_line(p, x, y += step, line, PAINT_SMALL, PALETTE_TEXT_DIM);
    }
    if (s->dropped > 0) {
        label_count((double)s->dropped, events);
        snprintf(line, sizeof line, "%s events dropped", events);
        corner_line(p, x, y += step, line, PAINT_TEXT, PALETTE_ACCENT);
    }
    if (s->note)
        corner_line(p, x, y += step, s->note, PAINT_SMALL, PALETTE_ACCENT);
    return y + 0.4f * step;
}

static void draw_paused(painter *p)
{
    const char *state = "PAUSED", *way_out = "Space or L: back to now";
    float width = paint_width(&p->paint, state, 20), out_width = paint_width(&p->paint, way_out, PAINT_SMALL), gap = 14 * p->scale;
    float total = width + gap + out_width, x = 0.5f * (p->width_px - p->in->panel_px - total), pad = 14 * p->scale, y = fmaxf(76 * p->scale, p->in->find_px + 32 * p->scale);
    paint_take(p->in->taken, (paint_rect4){x - pad, y - 25 * p->scale, x + total + pad, y + 13 * p->scale});
    paint_rect(&p->paint, x - pad, y - 25 * p->scale, total + 2 * pad, 36 * p->scale, PALETTE_PANEL);
    paint_rect(&p->paint, x - pad, y + 11 * p->scale, total + 2 * pad, 2 * p->scale, PALETTE_ACCENT);
    paint_text(&p->paint, x, y, state, 20, PALETTE_ACCENT);
    paint_text(&p->paint, x + width + gap, y - 2 * p->scale, way_out, PAINT_SMALL, PALETTE_TEXT);
}

/* In the charts lanes may lie below the screen. */
static void draw_more_below(painter *p)
{
    const layout *l = p->in->scene->layout;
    uint32_t below = 0;
    char line[64];
    if (fmaxf(l->flame, l->threads_share) < 0.9f)
        return;
    for (size_t i = 0; i < l->lanes.count; i++) {
        float world[3] = {0, l->lanes.items[i].y_floor, l->lanes.items[i].z_end}, px[2];
        if (camera_project(p->in->scene->camera, world, px) && px[1] > p->height_px - 62 * p->scale)
            below++;
    }
    snprintf(line, sizeof line, "%u more below: drag, or Down", below);
    if (below > 0)
        pill(p, 0.5f * (p->width_px - p->in->panel_px - paint_width(&p->paint, line, PAINT_SMALL)), p->height_px - 78 * p->scale, line, PAINT_SMALL, PALETTE_ACCENT, 1);
}

static float draw_length_step(painter *p, float x, float y, uint32_t step)
{
    static const char *const names[] = {"1 \xC2\xB5s", "", "", "1 ms", "", "", "1 s", "longer"};
    _Static_assert(sizeof names / sizeof *names == TINT_LENGTH_STEPS, "one a step");
    float side = 10 * p->scale;
    paint_rect(&p->paint, x, y - side + 1 * p->scale, side * 1.6f, side, tint_length(step));
    x += side * 1.6f;
    return names[step][0] ? paint_text(&p->paint, x + 4 * p->scale, y, names[step], PAINT_SMALL, PALETTE_TEXT_DIM) + 8 * p->scale : x;
}

/* Returns where it ends. */
static float draw_legend(painter *p)
{
    const struct { uint32_t color; const char *name; palette_bands shape; } entries[] = {
        {palette_method(0x9e3779b9u, EV_METHOD_RUBY, 0), tint_name(p->in->scene->tint), FULL},
        {palette_gvl(SIM_GVL_RUNNING), "running", palette_gvl_bands(SIM_GVL_RUNNING)},
        {palette_gvl(SIM_GVL_WAITING), "waiting for the GVL", palette_gvl_bands(SIM_GVL_WAITING)},
        {palette_gvl(SIM_GVL_BLOCKED), "blocked or sleeping", palette_gvl_bands(SIM_GVL_BLOCKED)},
        {PALETTE_GC, "GC pause", FULL},
    };
    float x = EDGE_PX * p->scale, y = p->height_px - 14 * p->scale, side = 10 * p->scale;
    for (uint32_t step = 0; p->in->scene->tint == TINT_LENGTH && step < TINT_LENGTH_STEPS; step++)
        x = draw_length_step(p, x, y, step);
    for (size_t i = p->in->scene->tint == TINT_LENGTH; i < sizeof entries / sizeof entries[0]; i++) {
        if (x + side + paint_width(&p->paint, entries[i].name, PAINT_SMALL) > p->width_px - EDGE_PX * p->scale)
            break;
        for (uint32_t band = 0; band < entries[i].shape.count; band++) {
            const float *at = entries[i].shape.at[band];
            paint_rect(&p->paint, x, y + p->scale + (at[0] - 1) * side, side, (at[1] - at[0]) * side, entries[i].color);
        }
        x = paint_text(&p->paint, x + side + 6 * p->scale, y, entries[i].name, PAINT_SMALL, PALETTE_TEXT_DIM) + 18 * p->scale;
    }
    return x;
}

static void draw_hint(painter *p, float left_px)
{
    const char *hint = "wheel zoom   drag turn   Space pause   1 2 3 cameras   T what is slow   / find   ? all keys";
    if (p->in->hint_alpha > 0 && left_px + paint_width(&p->paint, hint, PAINT_SMALL) < p->width_px - EDGE_PX * p->scale)
        paint_right(&p->paint, p->width_px - EDGE_PX * p->scale, p->height_px - 14 * p->scale, hint, PAINT_SMALL,
                   palette_alpha(PALETTE_TEXT, p->in->hint_alpha));
}

static void draw_help(painter *p)
{
    static const char *const keys[][2] = {
        {"Wheel, W S", "zoom about the pointer; live: about now (Ctrl fine, Shift fast)"},
        {"A D, arrows, right drag", "move in time"},
        {"Up Down", "move along the stack"},
        {"Alt + wheel", "taller or lower rows"},
        {"Left or middle drag", "turn the scene; drag the chart (Alt + left turns anywhere)"},
        {"Shift + middle drag", "move the scene"},
        {"Point, click", "what is this; select a method and a call"},
        {"Enter, C", "open its source ($VISUAL, $EDITOR); copy its place"},
        {". and ,", "next and previous call of the selected method"},
        {"/ or Ctrl + F", "find: name  /regex/  thread:main  process:4711  dur>1ms"},
        {"N, Shift + N", "next and previous match (in the line: Enter; Tab leaves it)"},
        {"T", "what is slow now: open calls, hottest methods"},
        {"Tab, Enter", "go through the lists; choose"},
        {"V", "colours by method, by gem or class, by length"},
        {"M, P", "mark this time; keep a picture (PNG)"},
        {"R", "record from here on; again: end the recording, -o's too"},
        {"Drag the time axis", "measure a stretch of it (Shift + drag: anywhere)"},
        {"Esc", "close, let go; never quits"},
        {"Space", "pause, go on"},
        {"L, End", "back to now; to a recording's end"},
        {"Strip below", "click: go there; drag the frame or its edges"},
        {"F", "the selected call or span, a measure; again: all there is"},
        {"Home, 0", "reset the view"},
        {"1  2  3", "scene, flame chart, threads and GVL"},
        {"Ctrl + Q", "quit"},
        {"?", "close this list"},
    };
    const int count = (int)(sizeof keys / sizeof keys[0]);
    /* In a small window all of it is smaller. */
    float fit = fminf(1, fminf((p->height_px / p->scale - 8) / (HELP_ROW_PX * (float)(count + 1) + 40), (p->width_px / p->scale - 8) / HELP_WIDTH_PX));
    float unit = fit * p->scale, row = HELP_ROW_PX * unit, width = HELP_WIDTH_PX * unit, height = row * (float)(count + 1) + 40 * unit;
    float x = 0.5f * (p->width_px - width), y = 0.5f * (p->height_px - height);
    paint_rect(&p->paint, x, y, width, height, 0xf01c1510u);
    paint_rect(&p->paint, x, y, width, 2 * unit, PALETTE_ACCENT);
    y += 36 * unit;
    paint_text(&p->paint, x + 24 * unit, y, "Keys and mouse", 16 * fit, PALETTE_TEXT);
    for (int i = 0; i < count; i++) {
        y += row;
        paint_text(&p->paint, x + 24 * unit, y, keys[i][0], PAINT_TEXT * fit, PALETTE_ACCENT);
        paint_text(&p->paint, x + 220 * unit, y, keys[i][1], PAINT_TEXT * fit, PALETTE_TEXT);
    }
    if (p->in->status->device)
        paint_right(&p->paint, x + width - 24 * unit, y + row, p->in->status->device, PAINT_SMALL * fit, PALETTE_TEXT_DIM);
}

static void draw_empty(painter *p)
{
    bool is_elsewhere = catalog_thread_count(p->in->scene->model->catalog) > 0;
    const char *what = is_elsewhere ? "no thread ran at this time" : p->in->status->ended ? "no calls were recorded" : "waiting for the first call \xE2\x80\xA6";
    paint_text(&p->paint, 0.5f * (p->width_px - paint_width(&p->paint, what, 18)), 0.5f * p->height_px, what, 18, PALETTE_TEXT_DIM);
}

static painter painter_of(const panels_input *in, font *f, quad_list *out)
{
    painter p = {.in = in, .scale = in->scene->scale, .width_px = in->scene->camera->width_px,
                 .height_px = in->scene->camera->height_px - in->strip_px};
    p.paint = (paint){.f = f, .out = out, .scale = p.scale, .width_px = p.width_px, .height_px = p.height_px};
    return p;
}

void panels_draw_help(const panels_input *in, font *f, quad_list *out)
{
    painter p = painter_of(in, f, out);
    draw_help(&p);
}

float panels_draw(const panels_input *in, font *f, quad_list *out)
{
    painter p = painter_of(in, f, out);
    if (in->said.x1 > in->said.x0)
        paint_take(in->taken, in->said);
    if (in->is_paused)
        draw_paused(&p);
    if (in->scene->layout->lanes.count == 0) {
        draw_empty(&p);
    } else {
        draw_bars(&p);
        draw_now(&p);
        draw_more_below(&p);
        draw_lane_names(&p);
        draw_time_axis(&p);
    }
    float corner_px = draw_corner(&p, draw_title(&p));
    draw_hint(&p, draw_legend(&p));
    return corner_px;
}
