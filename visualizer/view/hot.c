#include "view/hot.h"

#include "view/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEARLY 1.3 /* a caller this much older than what it has called is a call of its own */
#define DEPTH_MAX 20000u /* frames of a stack that are looked at */
#define FIBERS_MAX 64u   /* … and fibers of a thread that have frames, … */
#define FIBERS_SEEN_MAX 4096u /* … among so many: a thread may have had any number of them */

static hot_method *entry_of(hot *h, uint32_t process, uint32_t number)
{
    uint32_t at = (number * 2654435761u ^ process * 40503u) % HOT_TABLE;
    for (uint32_t tries = 0; tries < 64; tries++, at = (at + 1) % HOT_TABLE) {
        hot_method *e = &h->table[at];
        if (e->method.process == CATALOG_NONE)
            e->method = (focus_method){process, number};
        if (focus_is_one(e->method, (focus_method){process, number}))
            return e;
    }
    return NULL;
}

/* What of a box's time is in sight. */
static int64_t seen_ns(const scene *s, const view_box_ref *r)
{
    uint64_t from = r->begin_ns > s->begin_ns ? r->begin_ns : s->begin_ns, to = r->end_ns < s->end_ns ? r->end_ns : s->end_ns;
    if (to <= from)
        return 0;
    double share = (double)(to - from) / (double)(r->end_ns - r->begin_ns);
    return (int64_t)((double)r->busy_ns * share);
}

/* The end of the run of boxes of one row that begins at first; boxes of another kind in it are left out later. */
static size_t row_end(const scene *s, size_t first)
{
    const view_box_ref *r = s->refs.items;
    size_t i = first + 1;
    while (i < s->refs.count && r[i].track == r[first].track && r[i].depth == r[first].depth)
        i++;
    return i;
}

/* Rows come from the top down, and in a row the latest first: the row after this one is what it stands on. */
static void take_row(hot *h, const scene *s, size_t begin, size_t end)
{
    const view_box_ref *r = s->refs.items;
    size_t below = end, below_end = end;
    if (end < s->refs.count && r[end].track == r[begin].track)
        below_end = row_end(s, end);
    for (size_t i = begin; i < end; i++) {
        if (!view_box_is_call(&r[i]))
            continue;
        int64_t ns = seen_ns(s, &r[i]);
        hot_method *own = entry_of(h, r[i].process, r[i].value), *caller = NULL;
        if (own) {
            own->self_ns += ns;
            own->calls += r[i].span_count;
        }
        while (below < below_end && (r[below].begin_ns > r[i].begin_ns || !view_box_is_call(&r[below])))
            below++;
        if (below < below_end)
            caller = entry_of(h, r[below].process, r[below].value);
        if (caller)
            caller->self_ns -= ns;
    }
}

static int hotter_first(const void *a, const void *b)
{
    const hot_method *x = a, *y = b;
    return x->self_ns > y->self_ns ? -1 : x->self_ns < y->self_ns;
}

static void find_methods(hot *h, const scene *s)
{
    for (size_t i = 0; i < HOT_TABLE; i++)
        h->table[i] = (hot_method){.method = FOCUS_NOTHING};
    for (size_t begin = 0, end; begin < s->refs.count; begin = end) {
        end = row_end(s, begin);
        take_row(h, s, begin, end);
    }
    qsort(h->table, HOT_TABLE, sizeof *h->table, hotter_first);
    h->method_count = 0;
    while (h->method_count < HOT_METHODS && h->table[h->method_count].self_ns > 0)
        h->method_count++;
    memcpy(h->methods, h->table, h->method_count * sizeof *h->methods);
}

/* The frames of a stack that say something, innermost first. */
static size_t stages_of(const calls_query *q, uint64_t at_ns, uint32_t track, uint32_t depth, hot_call *out, size_t max)
{
    sim_span frame;
    uint64_t last_ns = 0;
    size_t count = 0;
    while (depth-- > 0 && calls_open_at(q, track, depth, at_ns, &frame)) {
        uint64_t ns = at_ns > frame.begin_ns ? at_ns - frame.begin_ns : 0;
        if (count > 0 && (double)ns < NEARLY * (double)last_ns + 1e5)
            continue;
        last_ns = ns;
        if (count == max) /* the longest are wanted: the innermost but one makes room */
            memmove(out + 1, out + 2, (max - 2) * sizeof *out), count--;
        out[count++] = (hot_call){.method.number = frame.value, .track = track, .depth = depth, .begin_ns = frame.begin_ns, .end_ns = frame.end_ns};
    }
    return count;
}

/* Of a thread's fibers the one that ran last: whose innermost frame is the youngest. Returns its depth. */
static uint32_t running_fiber(const calls_query *q, uint64_t at_ns, uint32_t thread, uint32_t *track)
{
    const catalog *c = q->model->catalog;
    uint64_t newest_ns = 0;
    uint32_t best = 0, looked = 0, seen = 0;
    for (uint32_t id = catalog_thread_at(c, thread)->first_fiber; id != CATALOG_NONE && looked < FIBERS_MAX && seen < FIBERS_SEEN_MAX;
         id = catalog_fiber_at(c, id)->next, seen++) {
        const catalog_fiber *fiber = catalog_fiber_at(c, id);
        sim_span frame;
        if (fiber->begin_ns > at_ns || !calls_open_at(q, fiber->track, 0, at_ns, &frame))
            continue;
        uint32_t depth = calls_depth_at(q, fiber->track, at_ns, DEPTH_MAX);
        looked++;
        bool is_now = at_ns >= q->model->now_ns;
        uint64_t its_ns = is_now ? fiber->end_ns : depth && calls_open_at(q, fiber->track, depth - 1, at_ns, &frame) ? frame.begin_ns : 0;
        if (depth > 0 && (best == 0 || its_ns >= newest_ns)) {
            *track = fiber->track;
            best = depth;
            newest_ns = its_ns;
        }
    }
    return best;
}

static void find_open_calls(hot *h, const scene *s, const scene_input *in)
{
    calls_query q = {.model = in->model, .history = in->history};
    h->open_count = h->open_thread_count = 0;
    h->is_open_now = s->end_ns >= in->model->now_ns;
    h->open_at_ns = h->is_open_now ? in->model->now_ns : s->end_ns;
    for (size_t lane = 0; lane < in->layout->lanes.count; lane++) {
        uint32_t thread = in->layout->lanes.items[lane].thread, track, depth = running_fiber(&q, h->open_at_ns, thread, &track);
        hot_call stages[HOT_OPEN_A_THREAD];
        size_t count = depth ? stages_of(&q, h->open_at_ns, track, depth, stages, HOT_OPEN_A_THREAD) : 0;
        h->open_thread_count += count > 0;
        for (size_t i = count; i-- > 0 && h->open_count < HOT_OPEN;) {
            hot_call *call = &h->open[h->open_count++];
            *call = stages[i];
            call->method.process = in->layout->lanes.items[lane].process;
            call->thread = thread;
            call->is_first = i + 1 == count;
        }
    }
}

bool hot_update(hot *h, const scene *s, const scene_input *in, double time_s)
{
    h->age_s += time_s;
    if (h->is_filled && h->age_s < HOT_EVERY_S)
        return false;
    h->age_s = 0;
    h->is_filled = true;
    h->sight_ns = s->end_ns - s->begin_ns;
    find_methods(h, s);
    find_open_calls(h, s, in);
    return true;
}
