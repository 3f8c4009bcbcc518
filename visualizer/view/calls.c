#include "view/calls.h"

#define NODES 256u
#define OPEN 64u
#define SELF_NODES 64u
#define FIRST_STEP_NS UINT64_C(1000000)

typedef struct looking {
    const calls_query *q;
    uint64_t from_ns, to_ns; /* begins in [from_ns, to_ns) count */
    bool wants_last;
    bool is_found;
    calls_call best;
    uint32_t looked;
} looking;

static void consider(looking *l, const calls_call *call)
{
    if (call->begin_ns < l->from_ns || call->begin_ns >= l->to_ns)
        return;
    if (l->is_found && (l->wants_last ? call->begin_ns <= l->best.begin_ns : call->begin_ns >= l->best.begin_ns))
        return;
    if (!l->q->match(l->q->context, call))
        return;
    l->best = *call;
    l->is_found = true;
}

static void look_in_row(looking *l, calls_call *call)
{
    history_node nodes[NODES];
    for (uint64_t at_ns = l->from_ns; at_ns < l->to_ns && l->looked < CALLS_LOOK_MAX;) {
        if (l->is_found && !l->wants_last && at_ns > l->best.begin_ns)
            return; /* all others are later */
        size_t count = history_query(l->q->history, call->track, call->depth, at_ns, l->to_ns, 1, nodes, NODES);
        for (size_t i = 0; i < count; i++) {
            if (nodes[i].span_count != 1)
                continue;
            call->begin_ns = nodes[i].begin_ns;
            call->end_ns = nodes[i].end_ns;
            call->method = nodes[i].value;
            call->is_open = false;
            consider(l, call);
        }
        l->looked += (uint32_t)count + 1;
        if (count < NODES || nodes[count - 1].end_ns <= at_ns)
            return;
        at_ns = nodes[count - 1].end_ns;
    }
}

static void look_at_open(looking *l, calls_call *call)
{
    sim_span open[OPEN];
    const view_model *m = l->q->model;
    if (!m->sim)
        return;
    for (uint32_t depth = 0;;) {
        size_t count = sim_open_frames(m->sim, call->track, depth, open, OPEN);
        for (size_t i = 0; i < count; i++) {
            call->begin_ns = open[i].begin_ns;
            call->end_ns = m->now_ns;
            call->method = open[i].value;
            call->depth = open[i].depth;
            call->is_open = true;
            consider(l, call);
        }
        l->looked += (uint32_t)count;
        depth += (uint32_t)count;
        if (count < OPEN || l->looked >= CALLS_LOOK_MAX)
            return;
    }
}

static bool has_open(const view_model *m, uint32_t track) { return m->sim && sim_open_depth(m->sim, track) > 0; }

static void look_in_window(looking *l)
{
    const catalog *c = l->q->model->catalog;
    for (uint32_t id = 0; id < catalog_fiber_count(c) && l->looked < CALLS_LOOK_MAX; id++) {
        const catalog_fiber *fiber = catalog_fiber_at(c, id);
        if (fiber->begin_ns >= l->to_ns || (fiber->end_ns < l->from_ns && !has_open(l->q->model, fiber->track)))
            continue;
        calls_call call = {.track = fiber->track, .thread = fiber->thread, .process = catalog_thread_at(c, fiber->thread)->process};
        uint32_t rows = history_rows(l->q->history, fiber->track);
        for (uint32_t depth = 0; depth < rows && l->looked < CALLS_LOOK_MAX; depth++) {
            call.depth = depth;
            look_in_row(l, &call);
        }
        look_at_open(l, &call);
    }
}

bool calls_after(const calls_query *q, uint64_t time_ns, calls_call *out)
{
    looking l = {.q = q, .from_ns = time_ns + 1};
    for (uint64_t step_ns = FIRST_STEP_NS; l.from_ns < q->end_ns && l.looked < CALLS_LOOK_MAX; step_ns *= 2) {
        l.to_ns = q->end_ns - l.from_ns > step_ns ? l.from_ns + step_ns : q->end_ns;
        look_in_window(&l);
        if (l.is_found) {
            *out = l.best;
            return true;
        }
        l.from_ns = l.to_ns;
    }
    return false;
}

bool calls_before(const calls_query *q, uint64_t time_ns, calls_call *out)
{
    looking l = {.q = q, .to_ns = time_ns, .wants_last = true};
    for (uint64_t step_ns = FIRST_STEP_NS; l.to_ns > q->begin_ns && l.looked < CALLS_LOOK_MAX; step_ns *= 2) {
        l.from_ns = l.to_ns - q->begin_ns > step_ns ? l.to_ns - step_ns : q->begin_ns;
        look_in_window(&l);
        if (l.is_found) {
            *out = l.best;
            return true;
        }
        l.to_ns = l.from_ns;
    }
    return false;
}

size_t calls_page(calls_pages *p, history_node *nodes, size_t max)
{
    size_t count = p->is_done ? 0 : history_query(p->history, p->track, p->depth, p->at_ns, p->end_ns, p->resolution_ns, nodes, max);
    p->is_done |= count < max;
    if (p->is_done)
        return count;
    /* Of those that end together with the last there may be more: all of them are left to the next page. */
    uint64_t end_ns = nodes[count - 1].end_ns;
    size_t kept = count;
    while (kept > 0 && nodes[kept - 1].end_ns == end_ns)
        kept--;
    p->has_lost |= kept == 0;
    p->at_ns = kept ? end_ns - 1 : end_ns;
    return kept ? kept : count;
}

bool calls_open_at(const calls_query *q, uint32_t track, uint32_t depth, uint64_t at_ns, sim_span *out)
{
    history_node node;
    if (view_open_frame(q->model, track, depth, out) && out->begin_ns <= at_ns) {
        out->end_ns = q->model->now_ns;
        return true;
    }
    if (at_ns >= q->model->now_ns || history_query(q->history, track, depth, at_ns, at_ns + 1, 0, &node, 1) != 1 || node.span_count != 1 ||
        node.begin_ns > at_ns || node.end_ns <= at_ns)
        return false;
    *out = (sim_span){.begin_ns = node.begin_ns, .end_ns = node.end_ns, .value = node.value, .depth = depth};
    return true;
}

uint32_t calls_depth_at(const calls_query *q, uint32_t track, uint64_t at_ns, uint32_t max)
{
    sim_span frame;
    uint32_t low = 0, high = history_rows(q->history, track), open = q->model->sim ? sim_open_depth(q->model->sim, track) : 0;
    if (at_ns >= q->model->now_ns)
        return open < max ? open : max;
    high = high > open ? high : open;
    high = high < max ? high : max;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (calls_open_at(q, track, middle, at_ns, &frame))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool calls_self(const calls_query *q, const calls_call *call, uint64_t *self_ns)
{
    history_node nodes[SELF_NODES];
    sim_span open;
    uint64_t length_ns = call->end_ns - call->begin_ns, above_ns = 0;
    size_t count = history_query(q->history, call->track, call->depth + 1, call->begin_ns, call->end_ns, length_ns / (SELF_NODES / 4) + 1, nodes, SELF_NODES);
    bool is_known = count < SELF_NODES;
    for (size_t i = 0; i < count; i++) {
        is_known &= !(nodes[i].flags & HISTORY_EVICTED) && nodes[i].begin_ns >= call->begin_ns && nodes[i].end_ns <= call->end_ns;
        above_ns += nodes[i].busy_ns;
    }
    if (call->is_open && view_open_frame(q->model, call->track, call->depth + 1, &open) && open.begin_ns < call->end_ns)
        above_ns += call->end_ns - open.begin_ns;
    *self_ns = length_ns > above_ns ? length_ns - above_ns : 0;
    return is_known;
}

bool calls_caller(const calls_query *q, const calls_call *call, uint32_t *method)
{
    history_node node;
    sim_span open;
    if (call->depth == 0)
        return false;
    if (view_open_frame(q->model, call->track, call->depth - 1, &open) && open.begin_ns <= call->begin_ns) {
        *method = open.value;
        return true;
    }
    if (history_query(q->history, call->track, call->depth - 1, call->begin_ns, call->begin_ns + 1, 0, &node, 1) != 1 || node.span_count != 1 ||
        node.begin_ns > call->begin_ns || node.end_ns < call->end_ns)
        return false;
    *method = node.value;
    return true;
}
