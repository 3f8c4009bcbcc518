#include "view/selftime.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define QUERY_COST 8u /* calls' worth of work that finding a place in a row takes */
#define SLICES_MIN 16u
#define SLICES_MAX 256u
#define COUNT_NODES 64u

void selftime_free(selftime *t)
{
    for (size_t i = 0; i < t->methods.count; i++)
        vec_free(&t->methods.items[i]);
    vec_free(&t->methods);
    vec_free(&t->todo);
}

void selftime_begin(selftime *t, const selftime_query *q)
{
    for (size_t i = 0; i < t->methods.count; i++)
        if (t->methods.items[i].count > 0)
            memset(t->methods.items[i].items, 0, t->methods.items[i].count * sizeof *t->methods.items[i].items);
    t->begin_ns = q->begin_ns;
    t->end_ns = q->end_ns;
    t->scale = 1;
    t->is_running = true;
    t->is_exact = history_stats_of(q->history).evicted_end_ns <= q->begin_ns && (!q->model->is_file || q->model->read_share >= 1);
    t->is_counted = t->is_within = false;
    t->span_count = t->row_count = 0;
    t->slice = 0;
    t->fiber = 0;
    t->now = (selftime_stretch){0};
    t->todo.count = 0;
    t->lower = &t->pages[0];
    t->upper = &t->pages[1];
}

static void add(selftime *t, uint32_t process, uint32_t method, uint64_t ns)
{
    if (ns == 0)
        return;
    bool has_room = vec_cover(&t->methods, (size_t)process + 1) && vec_cover(&t->methods.items[process], (size_t)method + 1);
    if (has_room)
        t->methods.items[process].items[method] += ns;
    else
        t->is_exact = false;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static uint32_t process_of(const selftime_query *q, uint32_t fiber)
{
    const catalog *c = q->model->catalog;
    return catalog_thread_at(c, catalog_fiber_at(c, fiber)->thread)->process;
}

static uint32_t open_depth(const selftime_query *q, uint32_t track) { return q->model->sim ? sim_open_depth(q->model->sim, track) : 0; }

/* Where an open call of the fiber ends: with its thread, its process, or the stretch of time. */
static uint64_t open_end_ns(const selftime_query *q, uint32_t fiber)
{
    const catalog_thread *thread = catalog_thread_at(q->model->catalog, catalog_fiber_at(q->model->catalog, fiber)->thread);
    uint64_t end_ns = thread->end_ns ? thread->end_ns : catalog_process_at(q->model->catalog, thread->process)->end_ns;
    return end_ns && end_ns < q->end_ns ? end_ns : q->end_ns;
}

static bool is_wanted(const selftime_query *q, uint32_t fiber, uint64_t from_ns, uint64_t to_ns)
{
    const catalog_fiber *f = catalog_fiber_at(q->model->catalog, fiber);
    if (f->begin_ns >= to_ns || (f->end_ns < from_ns && open_depth(q, f->track) == 0))
        return false;
    return !q->match_thread || q->match_thread(q->context, f->thread);
}

/* The row's calls in [*from, *to), the open one last. Of more than a page *to becomes less, and what is beyond it is put by, to be
 * read from row restart on. */
static void read_row(selftime *t, const selftime_query *q, uint32_t depth, selftime_stretch *s, uint32_t restart, selftime_page *out)
{
    uint32_t track = catalog_fiber_at(q->model->catalog, t->fiber)->track;
    out->count = history_query(q->history, track, depth, s->from_ns, s->to_ns, 0, out->nodes, SELFTIME_PAGE);
    uint64_t cut_ns = out->count == SELFTIME_PAGE ? out->nodes[SELFTIME_PAGE / 2].end_ns : s->to_ns; /* half: the next row may have more */
    if (cut_ns < s->to_ns) {
        selftime_stretch *rest = vec_push(&t->todo);
        if (rest)
            *rest = (selftime_stretch){restart, cut_ns, s->to_ns};
        t->is_exact &= rest != NULL;
        s->to_ns = cut_ns;
        while (out->count > 0 && out->nodes[out->count - 1].begin_ns >= cut_ns)
            out->count--;
    }
    for (size_t i = 0; i < out->count; i++)
        t->is_exact &= out->nodes[i].span_count == 1; /* memory has let them go, or they have not been read from the file yet */
    sim_span open;
    uint64_t end_ns = open_end_ns(q, t->fiber);
    if (depth < open_depth(q, track) && view_open_frame(q->model, track, depth, &open) && open.begin_ns < s->to_ns && end_ns > open.begin_ns)
        out->nodes[out->count++] = (history_node){.begin_ns = open.begin_ns, .end_ns = end_ns, .busy_ns = end_ns - open.begin_ns, .span_count = 1, .value = open.value};
}

/* How much of [from, to) is in calls of the node. */
static uint64_t busy_within(const history_node *n, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t from = n->begin_ns > from_ns ? n->begin_ns : from_ns, to = n->end_ns < to_ns ? n->end_ns : to_ns;
    if (to <= from)
        return 0;
    uint64_t length_ns = n->end_ns - n->begin_ns;
    return n->busy_ns == length_ns ? to - from : (uint64_t)((double)n->busy_ns * ((double)(to - from) / (double)length_ns));
}

/* Time of the calls of lower that is not of those of upper. */
static void take_rows(selftime *t, const selftime_query *q)
{
    uint32_t process = process_of(q, t->fiber);
    for (size_t i = 0, j = 0; i < t->lower->count; i++) {
        const history_node *n = &t->lower->nodes[i];
        uint64_t from_ns = n->begin_ns > t->now.from_ns ? n->begin_ns : t->now.from_ns, to_ns = n->end_ns < t->now.to_ns ? n->end_ns : t->now.to_ns;
        uint64_t busy_ns = busy_within(n, from_ns, to_ns), above_ns = 0;
        for (; j < t->upper->count && t->upper->nodes[j].begin_ns < to_ns; j++) {
            above_ns += busy_within(&t->upper->nodes[j], from_ns, to_ns);
            if (t->upper->nodes[j].end_ns > to_ns)
                break; /* some of it lies over the next one */
        }
        add(t, process, n->value, busy_ns > above_ns ? busy_ns - above_ns : 0);
    }
}

/* ---- how many there are ----------------------------------------------------------------------------------------- */

static void decide(selftime *t, const selftime_query *q)
{
    uint64_t length_ns = q->end_ns - q->begin_ns, slices = SELFTIME_SAMPLE / (QUERY_COST * (t->row_count + 1));
    t->is_counted = true;
    t->fiber = 0;
    t->slice_count = 1;
    t->slice_ns = length_ns;
    if (t->span_count <= q->exact_max)
        return;
    t->slice_count = slices < SLICES_MIN ? SLICES_MIN : slices > SLICES_MAX ? SLICES_MAX : (uint32_t)slices;
    double part_ns = (double)length_ns / t->slice_count;
    t->slice_ns = (uint64_t)fmax(part_ns * SELFTIME_SAMPLE / (double)t->span_count, 1);
    if ((double)t->slice_ns >= part_ns) { /* a stretch of some nanoseconds */
        t->slice_count = 1;
        t->slice_ns = length_ns;
        return;
    }
    t->scale = (double)length_ns / ((double)t->slice_ns * t->slice_count);
    t->is_exact = false;
}

/* The next row of the count. Above an empty one there are no others. */
static uint32_t count_row(selftime *t, const selftime_query *q)
{
    history_node nodes[COUNT_NODES];
    if (!is_wanted(q, t->fiber, q->begin_ns, q->end_ns)) {
        t->fiber++;
        return 1;
    }
    uint32_t track = catalog_fiber_at(q->model->catalog, t->fiber)->track, depth = t->now.depth++;
    size_t count = history_query(q->history, track, depth, q->begin_ns, q->end_ns, q->end_ns - q->begin_ns, nodes, COUNT_NODES);
    for (size_t i = 0; i < count; i++)
        t->span_count += nodes[i].span_count;
    if (count > 0 || depth < open_depth(q, track)) {
        t->row_count++;
        return QUERY_COST + (uint32_t)count;
    }
    t->fiber++;
    t->now.depth = 0;
    return QUERY_COST;
}

/* ---- reading them ---------------------------------------------------------------------------------------------- */

/* Slices lie in equal parts of the time, each somewhere in its own. */
static selftime_stretch slice_at(const selftime *t)
{
    uint64_t length_ns = t->end_ns - t->begin_ns, part_ns = length_ns / t->slice_count, free_ns = part_ns - (t->slice_ns < part_ns ? t->slice_ns : part_ns);
    double chance = (double)(t->slice * 2654435769u) / 4294967296.0; /* the golden ratio's multiples spread evenly */
    uint64_t from_ns = t->begin_ns + t->slice * part_ns + (uint64_t)(chance * (double)free_ns);
    return (selftime_stretch){.from_ns = from_ns, .to_ns = from_ns + t->slice_ns};
}

static void next_fiber(selftime *t, const selftime_query *q)
{
    if (++t->fiber < catalog_fiber_count(q->model->catalog))
        return;
    t->fiber = 0;
    t->slice++;
}

/* What was put by last, with its lower row. */
static uint32_t enter(selftime *t, const selftime_query *q)
{
    t->now = t->todo.items[--t->todo.count];
    read_row(t, q, t->now.depth, &t->now, t->now.depth, t->lower);
    t->is_within = t->lower->count > 0;
    if (!t->is_within && t->todo.count == 0)
        next_fiber(t, q);
    return QUERY_COST + (uint32_t)t->lower->count;
}

/* Puts the whole of the fiber by. */
static uint32_t enter_fiber(selftime *t, const selftime_query *q)
{
    selftime_stretch slice = slice_at(t), *whole = is_wanted(q, t->fiber, slice.from_ns, slice.to_ns) ? vec_push(&t->todo) : NULL;
    if (whole)
        *whole = slice;
    else
        next_fiber(t, q);
    return 1;
}

static uint32_t go_up(selftime *t, const selftime_query *q)
{
    read_row(t, q, t->now.depth + 1, &t->now, t->now.depth, t->upper);
    take_rows(t, q);
    selftime_page *read = t->upper;
    t->upper = t->lower;
    t->lower = read;
    t->now.depth++;
    t->is_within = read->count > 0;
    if (!t->is_within && t->todo.count == 0)
        next_fiber(t, q);
    return QUERY_COST + (uint32_t)read->count;
}

static bool is_done(const selftime *t, const selftime_query *q)
{
    return catalog_fiber_count(q->model->catalog) == 0 || t->end_ns <= t->begin_ns || (t->is_counted && t->slice >= t->slice_count);
}

bool selftime_go_on(selftime *t, const selftime_query *q)
{
    uint32_t cost = 0;
    while (t->is_running && cost < SELFTIME_STEP) {
        if (is_done(t, q))
            t->is_running = false;
        else if (!t->is_counted && t->fiber >= catalog_fiber_count(q->model->catalog))
            decide(t, q);
        else if (!t->is_counted)
            cost += count_row(t, q);
        else if (t->is_within)
            cost += go_up(t, q);
        else
            cost += t->todo.count > 0 ? enter(t, q) : enter_fiber(t, q);
    }
    return !t->is_running;
}
