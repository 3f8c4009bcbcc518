#include "sim/stacks.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define SLAB_NODES 1024u

void stacks_init(stacks *s, catalog *c) { *s = (stacks){.catalog = c}; }

void stacks_free(stacks *s)
{
    for (size_t i = 0; i < s->slabs.count; i++)
        mem_free(s->slabs.items[i]);
    vec_free(&s->slabs);
    vec_free(&s->tracks);
}

static stack_node *node_take(stacks *s)
{
    if (!s->free_nodes) {
        if (!vec_reserve(&s->slabs, s->slabs.count + 1))
            return NULL;
        stack_node *slab = mem_alloc(SLAB_NODES, sizeof *slab);
        if (!slab)
            return NULL;
        s->slabs.items[s->slabs.count++] = slab;
        for (size_t i = 0; i < SLAB_NODES; i++)
            slab[i].parent = i + 1 < SLAB_NODES ? &slab[i + 1] : NULL;
        s->free_nodes = slab;
    }
    stack_node *n = s->free_nodes;
    s->free_nodes = n->parent;
    return n;
}

/* Popped nodes still belong to blocks of this batch: their parents must stay as they are, so they are only counted off here,
 * through a list of their own. */
static void retire(stacks *s, stacks_track *t)
{
    stack_node *n = t->top;
    t->top = n->parent;
    n->next_retired = s->retired;
    s->retired = n;
}

/* Tracks grow with the catalog's. */
static stacks_track *track_at(stacks *s, uint32_t track)
{
    size_t wanted = catalog_track_count(s->catalog);
    if (s->tracks.count < wanted) {
        if (!vec_reserve(&s->tracks, wanted))
            return NULL;
        for (; s->tracks.count < wanted; s->tracks.count++)
            s->tracks.items[s->tracks.count] = (stacks_track){.state = STACKS_CLOSED};
    }
    return &s->tracks.items[track];
}

/* ---- folding a block's parts ---------------------------------------------------------------------------------- */

static void apply(stacks *s, stacks_track *t, const block_op *op)
{
    if (op->kind == BLOCK_CUT) {
        while (t->top && !ev_is_deeper(op->key, t->top->key))
            retire(s, t);
    } else if (t->top && (t->top->key & 3u) == EV_POSITION_C && (t->top->method & ~BLOCK_OPEN_AT_START) == op->method) {
        retire(s, t);
    }
}

static int push_frames(stacks *s, stacks_track *t, const block_work *w, const block_part *p)
{
    for (size_t i = 0; i < p->keys.count; i++) {
        stack_node *n = node_take(s);
        if (!n)
            return -ENOMEM;
        ev e = w->events[p->indices[i]];
        uint32_t flag = ev_kind_of(e) == EV_FRAME ? BLOCK_OPEN_AT_START : 0;
        *n = (stack_node){
            .parent = t->top,
            .begin_ns = block_time(w, p->indices[i]),
            .key = p->keys.items[i],
            .method = (e.number & ~BLOCK_OPEN_AT_START) | flag,
            .depth = t->top ? t->top->depth + 1 : 0,
        };
        t->top = n;
    }
    return 0;
}

/* Where a part runs, made known to the catalog. */
static int place_part(stacks *s, const block_work *w, const block_part *p, uint32_t process, stacks_place *place)
{
    uint64_t now_ns = block_time(w, p->first_index);
    uint32_t thread = p->is_inherited ? 0 : p->thread, fiber = p->is_inherited ? 0 : p->fiber;
    place->thread = catalog_thread_of(s->catalog, process, thread, now_ns);
    if (place->thread == CATALOG_NONE)
        return -ENOMEM;
    place->fiber = catalog_fiber_of(s->catalog, process, fiber, place->thread, now_ns);
    return place->fiber == CATALOG_NONE ? -ENOMEM : 0;
}

static int fold_part(stacks *s, block_work *w, block_part *p, stacks_place place)
{
    catalog_fiber *fiber = catalog_fiber_at(s->catalog, place.fiber);
    stacks_track *t = track_at(s, fiber->track);
    if (!t)
        return -ENOMEM;
    p->track = fiber->track;
    p->start = t->top;
    for (size_t i = 0; i < p->ops.count; i++)
        apply(s, t, &p->ops.items[i]);
    uint64_t end_ns = block_time(w, p->last_index);
    if (end_ns > fiber->end_ns)
        fiber->end_ns = end_ns;
    return push_frames(s, t, w, p);
}

int stacks_fold(stacks *s, block_work *w, uint32_t process, stacks_place *current)
{
    stacks_place final = *current;
    for (uint32_t i = 0; i < w->part_count; i++) {
        block_part *p = &w->parts.items[i];
        stacks_place place = *current;
        p->track = SIM_TRACK_NONE;
        if (p->is_inherited && !p->has_stack_events)
            continue; /* no thread need be invented for it */
        if (!p->is_inherited || current->fiber == CATALOG_NONE) {
            int error = place_part(s, w, p, process, &place);
            if (error)
                return error;
        }
        int error = fold_part(s, w, p, place);
        if (error)
            return error;
        if (i == w->final_part)
            final = place;
    }
    *current = final;
    return 0;
}

/* ---- GVL, GC, threads that end -------------------------------------------------------------------------------- */

static int add_pending(block_pendings *out, uint32_t track, const sim_span *span)
{
    block_pending *p = vec_push(out);
    if (!p)
        return -ENOMEM;
    *p = (block_pending){track, *span};
    return 0;
}

/* The track's state changes: what it was until now becomes a span. */
static int change_state(stacks *s, uint32_t track, uint32_t state, uint64_t now_ns, sim_closed closed, block_pendings *out)
{
    stacks_track *t = track_at(s, track);
    if (!t)
        return -ENOMEM;
    if (t->state == state)
        return 0;
    int error = 0;
    if (t->state != STACKS_CLOSED && now_ns > t->since_ns)
        error = add_pending(out, track, &(sim_span){t->since_ns, now_ns, t->state, 0, (uint8_t)closed, 0, {0}});
    t->state = state;
    t->since_ns = now_ns;
    return error;
}

/* All frames of a track end now, deepest first. */
static int end_frames(stacks *s, uint32_t track, uint64_t now_ns, sim_closed closed, block_pendings *out)
{
    stacks_track *t = track_at(s, track);
    if (!t)
        return -ENOMEM;
    while (t->top) {
        const stack_node *n = t->top;
        sim_span span = {
            .begin_ns = n->begin_ns,
            .end_ns = now_ns > n->begin_ns ? now_ns : n->begin_ns,
            .value = n->method & ~BLOCK_OPEN_AT_START,
            .depth = n->depth,
            .closed = (uint8_t)closed,
            .open_at_start = (uint8_t)(n->method >> 31),
        };
        int error = add_pending(out, track, &span);
        if (error)
            return error;
        retire(s, t);
    }
    return 0;
}

static int end_thread_frames(stacks *s, uint32_t thread, uint64_t now_ns, sim_closed closed, block_pendings *out)
{
    int error = 0;
    for (uint32_t f = catalog_thread_at(s->catalog, thread)->first_fiber; f != CATALOG_NONE && !error;) {
        const catalog_fiber *fiber = catalog_fiber_at(s->catalog, f);
        error = end_frames(s, fiber->track, now_ns, closed, out);
        f = fiber->next;
    }
    return error;
}

static uint32_t gvl_state_of(uint32_t kind)
{
    switch (kind) {
    case EV_THREAD_READY: return SIM_GVL_WAITING;
    case EV_THREAD_STARTED:
    case EV_THREAD_SUSPENDED: return SIM_GVL_BLOCKED;
    case EV_THREAD_EXITED: return STACKS_CLOSED;
    default: return SIM_GVL_RUNNING; /* RESUMED, and SWITCH: who calls is running, whatever events were missed */
    }
}

static int thread_event(stacks *s, block_work *w, uint32_t process, block_runtime r, uint64_t now_ns)
{
    ev e = w->events[r.index];
    uint32_t number = r.kind == EV_SWITCH ? e.place : e.number;
    uint32_t id = catalog_thread_of(s->catalog, process, number, now_ns);
    if (id == CATALOG_NONE)
        return -ENOMEM;
    catalog_thread *thread = catalog_thread_at(s->catalog, id);
    if (now_ns < thread->begin_ns)
        thread->begin_ns = now_ns; /* parts are folded first: a later SWITCH of this block may have made it */
    int error = 0;
    if (r.kind == EV_THREAD_SUSPENDED && track_at(s, thread->gvl_track) &&
        track_at(s, thread->gvl_track)->state == STACKS_CLOSED && thread->end_ns == 0) {
        /* The running thread's first event: it has been running since it was first seen. */
        track_at(s, thread->gvl_track)->state = SIM_GVL_RUNNING;
        track_at(s, thread->gvl_track)->since_ns = thread->begin_ns;
    }
    error = change_state(s, thread->gvl_track, gvl_state_of(r.kind), now_ns, SIM_CLOSED_RETURN, &w->pending);
    if (!error && r.kind == EV_THREAD_EXITED) {
        thread->end_ns = now_ns;
        error = end_thread_frames(s, id, now_ns, SIM_CLOSED_UNWOUND, &w->exits);
    }
    return error;
}

int stacks_runtime(stacks *s, block_work *w, uint32_t process)
{
    uint32_t gc_track = catalog_process_at(s->catalog, process)->gc_track;
    int error = 0;
    for (size_t i = 0; i < w->runtime.count && !error; i++) {
        block_runtime r = w->runtime.items[i];
        uint64_t now_ns = block_time(w, r.index);
        if (r.kind == EV_GC_ENTER || r.kind == EV_GC_EXIT)
            error = change_state(s, gc_track, r.kind == EV_GC_ENTER ? 0 : STACKS_CLOSED, now_ns, SIM_CLOSED_RETURN, &w->pending);
        else
            error = thread_event(s, w, process, r, now_ns);
    }
    return error;
}

int stacks_end_process(stacks *s, uint32_t process, uint64_t now_ns, sim_closed closed, block_pendings *out)
{
    const catalog_process *p = catalog_process_at(s->catalog, process);
    int error = change_state(s, p->gc_track, STACKS_CLOSED, now_ns, closed, out);
    for (uint32_t t = p->first_thread; t != CATALOG_NONE && !error;) {
        catalog_thread *thread = catalog_thread_at(s->catalog, t);
        error = end_thread_frames(s, t, now_ns, closed, out);
        if (!error)
            error = change_state(s, thread->gvl_track, STACKS_CLOSED, now_ns, closed, out);
        if (thread->end_ns == 0)
            thread->end_ns = now_ns;
        t = thread->next;
    }
    return error;
}

void stacks_commit(stacks *s)
{
    for (size_t i = 0; i < s->tracks.count; i++)
        s->tracks.items[i].shown_top = s->tracks.items[i].top;
    while (s->retired) {
        stack_node *n = s->retired;
        s->retired = n->next_retired;
        n->parent = s->free_nodes;
        s->free_nodes = n;
    }
}

/* ---- what is open --------------------------------------------------------------------------------------------- */

uint32_t stacks_open_depth(const stacks *s, uint32_t track)
{
    if (track >= s->tracks.count)
        return 0;
    const stacks_track *t = &s->tracks.items[track];
    return t->shown_top ? t->shown_top->depth + 1 : t->state != STACKS_CLOSED;
}

size_t stacks_open_frames(const stacks *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max)
{
    uint32_t depth = stacks_open_depth(s, track);
    if (first_depth >= depth || max == 0)
        return 0;
    const stacks_track *t = &s->tracks.items[track];
    if (!t->shown_top) {
        out[0] = (sim_span){t->since_ns, t->since_ns, t->state, 0, SIM_OPEN, 0, {0}};
        return 1;
    }
    size_t count = depth - first_depth < max ? depth - first_depth : max;
    for (const stack_node *n = t->shown_top; n && n->depth >= first_depth; n = n->parent)
        if (n->depth - first_depth < count)
            out[n->depth - first_depth] = (sim_span){
                .begin_ns = n->begin_ns,
                .end_ns = n->begin_ns,
                .value = n->method & ~BLOCK_OPEN_AT_START,
                .depth = n->depth,
                .closed = SIM_OPEN,
                .open_at_start = (uint8_t)(n->method >> 31),
            };
    return count;
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

_Static_assert(SIM_STATE_CLOSED == STACKS_CLOSED, "one word for 'nothing is open'");

int stacks_save_frames(const stacks *s, uint32_t track, sim_state *out)
{
    const stack_node *n = track < s->tracks.count ? s->tracks.items[track].top : NULL;
    size_t first = out->frames.count, count = n ? (size_t)n->depth + 1 : 0;
    if (!vec_reserve(&out->frames, first + count))
        return -ENOMEM;
    out->frames.count = first + count;
    for (; n; n = n->parent) /* ev_depth_key is its own inverse */
        out->frames.items[first + n->depth] = (sim_state_frame){n->begin_ns, ev_depth_key(n->key), n->method};
    return 0;
}

int stacks_load_frames(stacks *s, uint32_t track, const sim_state_frame *frames, size_t count)
{
    stacks_track *t = track_at(s, track);
    if (!t)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        stack_node *n = node_take(s);
        if (!n)
            return -ENOMEM;
        *n = (stack_node){
            .parent = t->top,
            .begin_ns = frames[i].begin_ns,
            .key = ev_depth_key(frames[i].position),
            .method = frames[i].method,
            .depth = t->top ? t->top->depth + 1 : 0,
        };
        t->top = n;
    }
    return 0;
}

void stacks_save_state(const stacks *s, uint32_t track, uint32_t *state, uint64_t *since_ns)
{
    bool is_known = track < s->tracks.count;
    *state = is_known ? s->tracks.items[track].state : STACKS_CLOSED;
    *since_ns = is_known ? s->tracks.items[track].since_ns : 0;
}

int stacks_load_state(stacks *s, uint32_t track, uint32_t state, uint64_t since_ns)
{
    stacks_track *t = track_at(s, track);
    if (!t)
        return -ENOMEM;
    t->state = state;
    t->since_ns = since_ns;
    return 0;
}
