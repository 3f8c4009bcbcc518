#include "view/tally.h"

#include "base/mem.h"

#include <string.h>

#define PAGE 256u
#define OPEN 64u
#define SELF_MAX 64u /* open calls whose own time is looked up */
#define NODE_COST 2u /* spans' worth of work that a node takes where short calls are passed over */

void tally_free(tally *t)
{
    for (size_t i = 0; i < t->seen.count; i++)
        vec_free(&t->seen.items[i]);
    vec_free(&t->seen);
}

static void forget_seen(tally *t)
{
    for (size_t i = 0; i < t->seen.count; i++)
        if (t->seen.items[i].count > 0)
            memset(t->seen.items[i].items, 0, t->seen.items[i].count);
}

static void see(tally *t, uint32_t process, uint32_t method)
{
    while (t->seen.count <= process) {
        focus_bytes *fresh = vec_push(&t->seen);
        if (!fresh) {
            t->is_rough = true;
            return;
        }
        *fresh = (focus_bytes){0};
    }
    focus_bytes *methods = &t->seen.items[process];
    if (!vec_cover(methods, (size_t)method + 1)) {
        t->is_rough = true;
        return;
    }
    t->sum.methods += methods->items[method] == 0;
    methods->items[method] = 1;
}

/* A count of one stretch of time is brought to its end, whatever comes in meanwhile. */
static bool is_as_it_was(const tally *t, const tally_query *q)
{
    bool has_news = t->now_ns != q->model->now_ns || t->read_share != q->model->read_share;
    return t->begin_ns == q->begin_ns && t->end_ns == q->end_ns && t->history == q->history && (t->is_running || !has_news);
}

/* A film that flows: a count that is under way has to come to its end, or of many calls it never would. */
static bool is_nearly_as_it_was(const tally *t, const tally_query *q)
{
    uint64_t was_ns = t->end_ns - t->begin_ns, is_ns = q->end_ns - q->begin_ns;
    bool has_flowed = q->end_ns >= t->end_ns && q->end_ns - t->end_ns < was_ns;
    return t->is_running && t->history == q->history && has_flowed && is_ns <= was_ns + was_ns / 8 && was_ns <= is_ns + is_ns / 8;
}

static void enter_row(tally *t, const tally_query *q)
{
    t->pages = (calls_pages){.history = q->history, .depth = t->depth, .at_ns = t->begin_ns, .end_ns = t->end_ns,
                             .resolution_ns = q->least_ns > 1 ? q->least_ns - 1 : 0};
    if (t->fiber < catalog_fiber_count(q->model->catalog))
        t->pages.track = catalog_fiber_at(q->model->catalog, t->fiber)->track;
}

void tally_begin(tally *t, const tally_query *q, bool is_other)
{
    if (!is_other && (is_as_it_was(t, q) || is_nearly_as_it_was(t, q)))
        return;
    t->is_first = is_other || !t->history;
    if (!t->is_first && t->is_running) {
        t->shown = t->sum;
        t->shown.is_exact = false;
    }
    t->begin_ns = q->begin_ns;
    t->end_ns = q->end_ns;
    t->now_ns = q->model->now_ns;
    t->read_share = q->model->read_share;
    t->history = q->history;
    t->sum = (tally_sum){0};
    t->is_running = true;
    t->is_rough = history_stats_of(q->history).evicted_end_ns > q->begin_ns || (q->model->is_file && q->model->read_share < 1);
    t->fiber = t->depth = 0;
    forget_seen(t);
    enter_row(t, q);
}

static calls_call call_on(const tally_query *q, uint32_t fiber)
{
    const catalog_fiber *f = catalog_fiber_at(q->model->catalog, fiber);
    return (calls_call){.track = f->track, .thread = f->thread, .process = catalog_thread_at(q->model->catalog, f->thread)->process};
}

static void take_self(const tally_query *q, const calls_call *call, tally_open *open)
{
    calls_query all = {.model = q->model, .history = q->model->history};
    uint64_t self_ns = 0;
    open->is_self_known &= open->calls <= SELF_MAX && calls_self(&all, call, &self_ns);
    open->self_ns += self_ns;
}

/* What is open on a fiber. t: counts it too; NULL: none does. */
static void take_open(const tally_query *q, uint32_t fiber, tally_open *open, tally *t)
{
    sim_span frames[OPEN];
    calls_call call = call_on(q, fiber);
    size_t count = OPEN;
    for (uint32_t depth = 0; q->model->sim && count == OPEN; depth += OPEN) {
        count = sim_open_frames(q->model->sim, call.track, depth, frames, OPEN);
        for (size_t i = 0; i < count && frames[i].begin_ns < q->end_ns; i++) {
            call.begin_ns = frames[i].begin_ns;
            call.end_ns = q->model->now_ns > call.begin_ns ? q->model->now_ns : call.begin_ns;
            call.depth = frames[i].depth;
            call.method = frames[i].value;
            call.is_open = true;
            if (!q->match(q->context, &call))
                continue;
            uint64_t ns = call.end_ns - call.begin_ns;
            open->calls++;
            open->ns += ns;
            open->begun += !frames[i].open_at_start;
            open->longest_ns = ns > open->longest_ns ? ns : open->longest_ns;
            if (!t)
                take_self(q, &call, open);
            if (t && q->wants_methods)
                see(t, call.process, call.method);
        }
    }
}

tally_open tally_open_calls(const tally_query *q)
{
    tally_open open = {.is_self_known = true};
    for (uint32_t fiber = 0; fiber < catalog_fiber_count(q->model->catalog); fiber++)
        take_open(q, fiber, &open, NULL);
    return open;
}

static void take_node(tally *t, const tally_query *q, calls_call *call, const history_node *n)
{
    if (n->span_count != 1) { /* by least_ns no match is in it, or memory has let them go */
        t->is_rough |= n->longest_ns >= q->least_ns;
        return;
    }
    call->begin_ns = n->begin_ns;
    call->end_ns = n->end_ns;
    call->depth = t->depth;
    call->method = n->value;
    if (n->flags & HISTORY_OPEN_AT_START || !q->match(q->context, call)) /* figures.h counts no such call, either */
        return;
    t->sum.calls++;
    t->sum.ns += n->busy_ns;
    if (q->wants_methods)
        see(t, call->process, call->method);
}

/* A page of a row; what it cost. */
static uint32_t take_page(tally *t, const tally_query *q, calls_call *call)
{
    history_node nodes[PAGE];
    size_t count = calls_page(&t->pages, nodes, PAGE);
    for (size_t i = 0; i < count; i++)
        take_node(t, q, call, &nodes[i]);
    t->is_rough |= t->pages.has_lost;
    return (uint32_t)count * (t->pages.resolution_ns ? NODE_COST : 1) + NODE_COST;
}

/* Rows first, then what is open: so a call that ends meanwhile does not count twice. */
static uint32_t take_fiber(tally *t, const tally_query *q, uint32_t budget)
{
    uint32_t cost = 1, rows;
    tally_open open = {0};
    calls_call call = call_on(q, t->fiber);
    if (!q->match_thread || q->match_thread(q->context, call.thread)) {
        rows = history_rows(q->history, call.track);
        for (; t->depth < rows; t->depth++, enter_row(t, q))
            for (; !t->pages.is_done; cost += take_page(t, q, &call))
                if (cost >= budget)
                    return cost;
        take_open(q, t->fiber, &open, t);
        t->sum.calls += open.begun;
        t->sum.ns += open.ns;
        cost += (uint32_t)open.calls;
    }
    t->fiber++;
    t->depth = 0;
    enter_row(t, q);
    return cost;
}

void tally_go_on(tally *t, const tally_query *q)
{
    if (!t->is_running)
        return;
    if (t->history != q->history)
        tally_begin(t, q, t->is_first);
    uint32_t cost = 0;
    while (t->fiber < catalog_fiber_count(q->model->catalog) && cost < TALLY_SPANS)
        cost += take_fiber(t, q, TALLY_SPANS - cost);
    if (t->fiber >= catalog_fiber_count(q->model->catalog)) {
        t->is_running = false;
        t->sum.is_exact = !t->is_rough && t->now_ns == q->model->now_ns;
    }
    if (t->is_first || !t->is_running)
        t->shown = t->sum;
}

void tally_stop(tally *t)
{
    t->history = NULL;
    t->is_running = false;
}

bool tally_is_behind(const tally *t, uint64_t begin_ns, uint64_t end_ns)
{
    return t->history && (t->is_running || t->begin_ns != begin_ns || t->end_ns != end_ns);
}

bool tally_is_all(const tally_query *q, uint64_t session_begin_ns)
{
    return q->begin_ns <= session_begin_ns && q->end_ns >= q->model->now_ns;
}
