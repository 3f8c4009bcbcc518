#include "view/details.h"

#include "base/length.h"
#include "view/label.h"
#include "view/panels.h"
#include "wire/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 256u

void details_place(const catalog_method *m, char *out, size_t bytes)
{
    if (!m->path_bytes)
        snprintf(out, bytes, "%s", m->kind == EV_METHOD_C ? "in C" : "");
    else if (m->line)
        snprintf(out, bytes, "%s:%u", m->path, m->line);
    else
        snprintf(out, bytes, "%s", m->path);
}

void details_tip_of(details_tip *t, const scene_input *in, const view_box_ref *ref)
{
    *t = (details_tip){.ref = *ref};
    view_box_ref *r = &t->ref;
    if (r->kind == VIEW_BOX_END || r->kind == VIEW_BOX_IDLE)
        r->kind = VIEW_BOX_OPEN;
    if (r->is_open)
        r->end_ns = in->model->now_ns > r->begin_ns ? in->model->now_ns : r->end_ns;
    if (r->kind > VIEW_BOX_OPEN || r->span_count != 1)
        return;
    calls_query q = {.model = in->model, .history = in->history};
    calls_call call = {.begin_ns = r->begin_ns, .end_ns = r->end_ns, .track = r->track, .depth = r->depth, .is_open = r->kind == VIEW_BOX_OPEN};
    t->is_self_known = calls_self(&q, &call, &t->self_ns);
}

/* How it ended, if that was not by its return. */
static const char *end_of(const view_box_ref *r)
{
    if (r->is_open)
        return r->kind == VIEW_BOX_OPEN ? "   still running" : "   so far";
    return r->flags & HISTORY_UNWOUND ? "   ended by an exception or throw" : r->flags & HISTORY_NOT_ENDED ? "   had not ended" : "";
}

static void line_of_time(const details_tip *t, char *out, size_t bytes)
{
    char length[LENGTH_BYTES], self[LENGTH_BYTES];
    const view_box_ref *r = &t->ref;
    length_show((double)(r->end_ns - r->begin_ns), length);
    length_show((double)t->self_ns, self);
    snprintf(out, bytes, "%s%s%s%s", length, t->is_self_known ? "   self " : "", t->is_self_known ? self : "", end_of(r));
}

static void line_of_fold(const details_tip *t, const char *many, char *out, size_t bytes)
{
    char count[16], busy[LENGTH_BYTES], length[LENGTH_BYTES], longest[LENGTH_BYTES];
    const view_box_ref *r = &t->ref;
    label_count((double)r->span_count, count);
    length_show((double)r->busy_ns, busy);
    length_show((double)(r->end_ns - r->begin_ns), length);
    length_show((double)r->longest_ns, longest);
    snprintf(out, bytes, "%s %s in %s, busy %s, longest %s", count, many, length, busy, longest);
}

/* Number of the fiber whose call it is; 0: the thread's root fiber. */
static uint32_t fiber_of(const catalog *c, const view_box_ref *r)
{
    uint32_t first = catalog_thread_at(c, r->thread)->first_fiber;
    for (uint32_t id = first; id != CATALOG_NONE; id = catalog_fiber_at(c, id)->next)
        if (catalog_fiber_at(c, id)->track == r->track)
            return id == first ? 0 : catalog_fiber_at(c, id)->number;
    return 0;
}

static void line_of_where(const details_tip *t, const scene_input *in, char *out, size_t bytes)
{
    char at[LENGTH_BYTES], name[160], depth[72] = "", fiber[24] = "";
    const view_box_ref *r = &t->ref;
    const catalog *c = in->model->catalog;
    const catalog_process *process = catalog_process_at(c, r->process);
    length_show(r->begin_ns > in->begin_ns ? (double)(r->begin_ns - in->begin_ns) : 0, at);
    if (r->kind == VIEW_BOX_GC || r->thread >= catalog_thread_count(c)) {
        panels_process_title(c, r->process, name);
        snprintf(out, bytes, "at %s   %.100s", at, name);
        return;
    }
    catalog_thread_title(c, r->thread, name);
    if (view_box_is_call(r) && r->levels > 1)
        snprintf(depth, sizeof depth, "   depths %u to %u, of which this is %u", r->depth, r->depth + r->levels - 1, r->depth);
    else if (view_box_is_call(r))
        snprintf(depth, sizeof depth, "   depth %u", r->depth);
    if (view_box_is_call(r) && fiber_of(c, r) != 0)
        snprintf(fiber, sizeof fiber, ", fiber %u", fiber_of(c, r));
    snprintf(out, bytes, "at %s%s   thread %.48s%s   pid %u", at, depth, name, fiber, process->pid);
}

static const char *gvl_name(uint32_t state)
{
    return state == SIM_GVL_RUNNING ? "running (holds the GVL)" : state == SIM_GVL_WAITING ? "waiting for the GVL" : "blocked or sleeping";
}

static size_t lines_of_call(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160])
{
    const catalog_method *m = catalog_method_of(in->model->catalog, t->ref.process, t->ref.value);
    size_t n = 0;
    bool is_folded = t->ref.span_count != 1;
    snprintf(out[n++], 160, "%.150s", m->name);
    if (is_folded)
        snprintf(out[n++], 160, "takes most of these calls, too short to show alone: zoom in");
    else
        details_place(m, out[n], 160);
    n += !is_folded && out[n][0] != '\0';
    if (is_folded)
        line_of_fold(t, "calls", out[n++], 160);
    else
        line_of_time(t, out[n++], 160);
    line_of_where(t, in, out[n++], 160);
    if (t->ref.flags & HISTORY_OPEN_AT_START)
        snprintf(out[n++], 160, "it ran before tracing began");
    return n;
}

/* A state of a thread, or a pause of the GC. */
static size_t lines_of_state(const details_tip *t, const scene_input *in, const char *name, const char *many, char out[DETAILS_LINES][160])
{
    bool is_folded = t->ref.span_count != 1;
    snprintf(out[0], 160, "%s", name);
    if (is_folded)
        line_of_fold(t, many, out[1], 160);
    else
        line_of_time(t, out[1], 160);
    line_of_where(t, in, out[2], 160);
    return 3;
}

static size_t lines_of_gvl(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160])
{
    char count[16], busy[LENGTH_BYTES], length[LENGTH_BYTES];
    const view_box_ref *r = &t->ref;
    uint64_t length_ns = r->end_ns - r->begin_ns;
    if (r->is_open || (r->span_count == 1 && r->busy_ns >= length_ns))
        return lines_of_state(t, in, gvl_name(r->value), "states", out);
    label_count((double)r->span_count, count);
    length_show((double)r->busy_ns, busy);
    length_show((double)length_ns, length);
    snprintf(out[0], 160, "%s: %.3g %% of the time here", gvl_name(r->value), length_ns ? 100.0 * (double)r->busy_ns / (double)length_ns : 0);
    snprintf(out[1], 160, "%s of %s, in %s short %s", busy, length, count, r->span_count == 1 ? "state" : "states");
    line_of_where(t, in, out[2], 160);
    return 3;
}

static size_t lines_of_span(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160])
{
    snprintf(out[0], 160, "%.150s", catalog_string_of(in->model->catalog, t->ref.process, t->ref.value));
    snprintf(out[1], 160, t->ref.span_count == 1 ? "a span of the program's own" : "the longest of these spans, too short to show alone: zoom in");
    if (t->ref.span_count == 1)
        line_of_time(t, out[2], 160);
    else
        line_of_fold(t, "spans", out[2], 160);
    line_of_where(t, in, out[3], 160);
    return 4;
}

static size_t lines_of_mark(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160])
{
    char at[LENGTH_BYTES];
    if (t->ref.process == CATALOG_NONE) {
        length_show(t->ref.begin_ns > in->begin_ns ? (double)(t->ref.begin_ns - in->begin_ns) : 0, at);
        snprintf(out[0], 160, "mark %u", t->ref.value);
        snprintf(out[1], 160, "at %s   set here, with M", at);
        return 2;
    }
    snprintf(out[0], 160, "%.150s", catalog_string_of(in->model->catalog, t->ref.process, t->ref.value));
    snprintf(out[1], 160, "a mark of the program's own");
    line_of_where(t, in, out[2], 160);
    return 3;
}

size_t details_lines(const details_tip *t, const scene_input *in, char out[DETAILS_LINES][160])
{
    switch (t->ref.kind) {
    case VIEW_BOX_GVL: return lines_of_gvl(t, in, out);
    case VIEW_BOX_GC: return lines_of_state(t, in, t->ref.span_count == 1 ? "GC pause" : "GC pauses", "pauses", out);
    case VIEW_BOX_SPAN: return lines_of_span(t, in, out);
    case VIEW_BOX_MARK: return lines_of_mark(t, in, out);
    default: return lines_of_call(t, in, out);
    }
}

/* ---- the panel ------------------------------------------------------------------------------------------------ */

static details_arc *arc_of(details_arc *arcs, uint32_t *count, focus_method m)
{
    for (uint32_t i = 0; i < *count; i++)
        if (focus_is_one(arcs[i].method, m))
            return &arcs[i];
    if (*count == DETAILS_ARCS)
        return NULL;
    arcs[*count] = (details_arc){.method = m};
    return &arcs[(*count)++];
}

static int longer_first(const void *a, const void *b)
{
    const details_arc *x = a, *y = b;
    return x->total_ns > y->total_ns ? -1 : x->total_ns < y->total_ns;
}

static void add_to_arc(details_arc *arcs, uint32_t *count, focus_method m, uint64_t ns, bool is_call)
{
    details_arc *arc = arc_of(arcs, count, m);
    if (!arc)
        return;
    arc->calls += is_call;
    arc->total_ns += ns;
}

/* A frame that was open at the start counts with its time, but is no call: as figures.h has it. */
static bool is_call(const view_box_ref *r) { return !(r->flags & HISTORY_OPEN_AT_START); }

static void look_for_caller(details *d, const calls_query *q, const view_box_ref *r)
{
    calls_call call = {.begin_ns = r->begin_ns, .end_ns = r->end_ns, .track = r->track, .depth = r->depth, .process = r->process};
    uint32_t method;
    focus_method who = FOCUS_NOTHING;
    if (r->depth > 0 && !calls_caller(q, &call, &method))
        return; /* memory has let it go */
    if (r->depth > 0)
        who = (focus_method){r->process, method};
    d->caller_calls += is_call(r);
    add_to_arc(d->callers, &d->caller_count, who, r->end_ns - r->begin_ns, is_call(r));
}

/* One by one: a merged answer would count for the method that dominates it. */
static void look_for_callees(details *d, const calls_query *q, const view_box_ref *r)
{
    history_node nodes[PAGE];
    sim_span open;
    size_t count;
    bool is_whole = true;
    if (d->span_count >= DETAILS_SPANS)
        return;
    calls_pages pages = {.history = q->history, .track = r->track, .depth = r->depth + 1, .at_ns = r->begin_ns, .end_ns = r->end_ns};
    while (d->span_count < DETAILS_SPANS && (count = calls_page(&pages, nodes, PAGE)) > 0) {
        for (size_t i = 0; i < count; i++) {
            is_whole &= nodes[i].span_count == 1; /* else memory has let them go */
            if (nodes[i].span_count == 1)
                add_to_arc(d->callees, &d->callee_count, (focus_method){r->process, nodes[i].value}, nodes[i].busy_ns, true);
        }
        d->span_count += (uint32_t)count;
    }
    if (r->kind == VIEW_BOX_OPEN && view_open_frame(q->model, r->track, r->depth + 1, &open) && open.begin_ns < r->end_ns)
        add_to_arc(d->callees, &d->callee_count, (focus_method){r->process, open.value}, r->end_ns - open.begin_ns, !open.open_at_start);
    d->is_cut = !pages.is_done;
    d->callee_calls += is_whole && is_call(r);
}

static void look_at_call(details *d, const calls_query *q, const view_box_ref *r)
{
    d->call_count++;
    d->begun_count += is_call(r);
    look_for_caller(d, q, r);
    look_for_callees(d, q, r);
}

/* The selected call: known whatever is drawn of it. False: it is out of sight, or there is none. */
static bool selected_in_sight(const scene *s, const scene_input *in, view_box_ref *out)
{
    const focus_call *call = in->focus ? &in->focus->call : NULL;
    if (!call || !call->is_set || call->begin_ns >= s->end_ns || (!call->is_open && call->end_ns <= s->begin_ns))
        return false;
    sim_span open;
    history_node ended;
    bool is_open = call->is_open && view_open_frame(in->model, call->track, call->depth, &open) && open.begin_ns == call->begin_ns;
    bool was_open = is_open ? open.open_at_start : history_query(in->history, call->track, call->depth, call->begin_ns, call->begin_ns + 1, 0, &ended, 1) == 1 &&
                                                       ended.flags & HISTORY_OPEN_AT_START;
    *out = (view_box_ref){.begin_ns = call->begin_ns, .end_ns = is_open && in->model->now_ns > call->begin_ns ? in->model->now_ns : call->end_ns,
                          .track = call->track, .depth = call->depth, .process = call->process, .thread = call->thread, .span_count = 1,
                          .flags = was_open ? HISTORY_OPEN_AT_START : 0, .kind = is_open ? VIEW_BOX_OPEN : VIEW_BOX_CALL};
    return true;
}

/* Is another one selected than when callers and callees were looked up? */
static bool is_other_call(const details *d, const scene_input *in)
{
    return in->focus && in->focus->call.is_set && !focus_is_call(in->focus, d->selected.track, d->selected.depth, d->selected.begin_ns);
}

static void look_in_sight(details *d, const scene *s, const scene_input *in)
{
    calls_query q = {.model = in->model, .history = in->history};
    view_box_ref selected;
    d->selected = in->focus ? in->focus->call : (focus_call){0};
    d->caller_count = d->callee_count = d->call_count = d->begun_count = d->caller_calls = d->callee_calls = d->span_count = 0;
    d->is_cut = false;
    bool has_selected = selected_in_sight(s, in, &selected);
    if (has_selected)
        look_at_call(d, &q, &selected);
    for (size_t i = 0; i < s->refs.count && d->call_count < DETAILS_CALLS; i++) {
        const view_box_ref *r = &s->refs.items[i];
        if (!view_box_is_call(r) || r->span_count != 1 || !focus_same(in->model->catalog, (focus_method){r->process, r->value}, d->method))
            continue;
        if (!has_selected || r->track != selected.track || r->depth != selected.depth || r->begin_ns != selected.begin_ns)
            look_at_call(d, &q, r);
    }
    qsort(d->callers, d->caller_count, sizeof *d->callers, longer_first);
    qsort(d->callees, d->callee_count, sizeof *d->callees, longer_first);
}

/* ---- how many are in sight ------------------------------------------------------------------------------------- */

typedef struct one_method {
    const catalog *catalog;
    focus_method method;
} one_method;

static bool is_of_method(void *context, const calls_call *call)
{
    const one_method *m = context;
    return focus_same(m->catalog, (focus_method){call->process, call->method}, m->method);
}

static void count_in_sight(details *d, const scene *s, const scene_input *in, bool is_new, bool is_due)
{
    one_method m = {in->model->catalog, d->method};
    tally_query q = {.model = in->model, .history = in->history, .begin_ns = s->begin_ns, .end_ns = s->end_ns, .match = is_of_method, .context = &m};
    if (is_due)
        d->open = tally_open_calls(&q);
    if (in->model->figures && tally_is_all(&q, in->begin_ns)) { /* all that was counted */
        d->sight = (tally_sum){.calls = d->all.calls + d->open.begun, .ns = d->all.sum_ns + d->open.ns, .is_exact = true};
        tally_stop(&d->tally);
        return;
    }
    if (is_due || !d->tally.history)
        tally_begin(&d->tally, &q, is_new);
    tally_go_on(&d->tally, &q);
    d->sight = d->tally.shown;
    if (!d->sight.is_exact && d->sight.calls < d->begun_count)
        d->sight.calls = d->begun_count; /* so many have been seen already */
}

/* The same method in all processes. */
static void sum_up(details *d, const scene_input *in)
{
    const catalog *c = in->model->catalog;
    d->all = (figures_method){0};
    for (uint32_t p = 0; in->model->figures && p < catalog_process_count(c); p++) {
        uint32_t begin = p == d->method.process ? d->method.number : 0, end = p == d->method.process ? begin + 1 : catalog_method_limit(c, p);
        for (uint32_t i = begin; i < end; i++) {
            if (!focus_same(c, d->method, (focus_method){p, i}))
                continue;
            figures_method f = figures_of(in->model->figures, p, i);
            d->all.calls += f.calls;
            d->all.sum_ns += f.sum_ns;
            d->all.self_ns += f.self_ns;
            d->all.longest_ns = f.longest_ns > d->all.longest_ns ? f.longest_ns : d->all.longest_ns;
        }
    }
}

void details_update(details *d, focus_method method, const scene *s, const scene_input *in, double time_s)
{
    bool is_new = !focus_is_one(method, d->method);
    d->age_s += time_s;
    if (!is_new && d->age_s < DETAILS_EVERY_S) {
        if (is_other_call(d, in))
            look_in_sight(d, s, in);
        count_in_sight(d, s, in, false, false);
        return;
    }
    d->age_s = 0;
    d->method = method;
    sum_up(d, in);
    double seconds = in->model->is_file && in->model->now_ns > in->begin_ns ? (double)(in->model->now_ns - in->begin_ns) * 1e-9 : 0;
    if (in->model->is_file) {
        d->calls_per_s = seconds * in->model->read_share > 0 ? (double)d->all.calls / (seconds * in->model->read_share) : 0;
    } else if (is_new || d->all.calls < d->rate_calls) {
        d->calls_per_s = 0;
        d->rate_calls = d->all.calls;
        d->rate_ns = in->model->now_ns;
    } else if (in->model->now_ns > d->rate_ns) {
        d->calls_per_s = (double)(d->all.calls - d->rate_calls) * 1e9 / (double)(in->model->now_ns - d->rate_ns);
        d->rate_calls = d->all.calls;
        d->rate_ns = in->model->now_ns;
    }
    look_in_sight(d, s, in);
    count_in_sight(d, s, in, is_new, true);
}

static void basis(const details *d, uint32_t looked_at, char *out, size_t bytes)
{
    char looked[16], all[16];
    label_count((double)looked_at, looked);
    label_count((double)d->sight.calls, all);
    if (d->call_count == 0)
        snprintf(out, bytes, "no single call in sight");
    else if (looked_at == 0 && d->begun_count == 0)
        snprintf(out, bytes, "it ran before tracing began");
    else if (looked_at < d->sight.calls)
        snprintf(out, bytes, "of %s among %s%s in sight", looked, d->sight.is_exact ? "" : "at least ", all);
    else
        snprintf(out, bytes, "of %s %s in sight", looked, looked_at == 1 ? "call" : "calls");
}

void details_basis_of_callers(const details *d, char *out, size_t bytes) { basis(d, d->caller_calls, out, bytes); }

void details_basis_of_callees(const details *d, char *out, size_t bytes)
{
    char spans[16], looked[16];
    label_count((double)d->span_count, spans);
    label_count((double)d->callee_calls, looked);
    if (d->is_cut)
        snprintf(out, bytes, "the first %s, of %s %s", spans, looked, d->callee_calls == 1 ? "call" : "calls");
    else
        basis(d, d->callee_calls, out, bytes);
}
