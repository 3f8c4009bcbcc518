#include "sim/stacks.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* Room above the frames that a part takes, so that few parts grow in emit. */
#define PART_ROOM 64u

void stacks_init(stacks *s, catalog *c) { *s = (stacks){.catalog = c}; }

void stacks_free(stacks *s)
{
    for (size_t i = 0; i < s->tracks.count; i++) {
        vec_free(&s->tracks.items[i].frames);
        vec_free(&s->tracks.items[i].shown);
    }
    vec_free(&s->tracks);
    vec_free(&s->touched);
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

/* Called before the frames change; low: how many will stay as they are. */
static bool touch(stacks *s, uint32_t track, stacks_track *t, size_t low)
{
    if (!t->is_touched) {
        uint32_t *place = vec_push(&s->touched);
        if (!place)
            return false;
        *place = track;
        t->is_touched = true;
        t->low = UINT32_MAX;
    }
    t->low = low < t->low ? (uint32_t)low : t->low;
    return true;
}

/* ---- folding a block's parts ---------------------------------------------------------------------------------- */

/* How many of the frames an operation leaves. */
static size_t left_by(const block_op *op, const stacks_frames *f, size_t count)
{
    if (op->kind == BLOCK_CUT) {
        while (count > 0 && !ev_is_deeper(op->key, f->items[count - 1].key))
            count--;
        return count;
    }
    const block_frame *top = count > 0 ? &f->items[count - 1] : NULL;
    return top && (top->key & 3u) == EV_POSITION_C && (top->method & ~BLOCK_OPEN_AT_START) == op->method ? count - 1 : count;
}

/* Move what the part pops from the stack to the part. The frame below goes along as a copy: the part never pops it, so its
 * emit rarely runs out of frames, which would take it out of its fast loop. */
static bool take_frames(stacks_frames *f, block_part *p)
{
    size_t left = f->count;
    for (size_t i = 0; i < p->ops.count; i++)
        left = left_by(&p->ops.items[i], f, left);
    size_t base = left > 0 ? left - 1 : 0, taken = f->count - base;
    if (!vec_reserve(&p->frames, taken + PART_ROOM))
        return false;
    if (taken > 0)
        memcpy(p->frames.items, f->items + base, taken * sizeof *f->items);
    p->frames.count = taken;
    p->base_depth = (uint32_t)base;
    f->count = left;
    return true;
}

static bool push_frames(stacks_frames *f, const block_work *w, const block_part *p)
{
    const block_own *own = p->own.items;
    if (!vec_reserve(f, f->count + p->own.count))
        return false;
    for (size_t i = 1; i < p->own.count; i++) /* by now they lie further off than the second-level cache */
        __builtin_prefetch(&w->events[own[i].index]);
    for (size_t i = 1; i < p->own.count; i++) {
        ev e = w->events[own[i].index];
        uint32_t flag = ev_kind_of(e) == EV_FRAME ? BLOCK_OPEN_AT_START : 0;
        f->items[f->count++] = (block_frame){
            .begin_ns = block_time(w, own[i].index),
            .key = own[i].key,
            .method = (e.number & ~BLOCK_OPEN_AT_START) | flag,
        };
    }
    return true;
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
    if (!take_frames(&t->frames, p) || !touch(s, p->track, t, t->frames.count) || !push_frames(&t->frames, w, p))
        return -ENOMEM;
    uint64_t end_ns = block_time(w, p->last_index);
    if (end_ns > fiber->end_ns)
        fiber->end_ns = end_ns;
    return 0;
}

int stacks_fold(stacks *s, block_work *w, uint32_t process, stacks_place *current)
{
    stacks_place final = *current;
    for (uint32_t i = 0; i < w->part_count; i++) {
        block_part *p = &w->parts.items[i];
        stacks_place place = *current;
        p->track = SIM_TRACK_NONE;
        p->thread_id = current->thread;
        if (p->is_inherited && !p->has_stack_events)
            continue; /* no thread need be invented for it */
        if (!p->is_inherited || current->fiber == CATALOG_NONE) {
            int error = place_part(s, w, p, process, &place);
            if (error)
                return error;
        }
        p->thread_id = place.thread;
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
    if (t->frames.count > 0 && !touch(s, track, t, 0))
        return -ENOMEM;
    while (t->frames.count > 0) {
        sim_span span;
        block_write_span(&span, &t->frames.items[t->frames.count - 1], now_ns, t->frames.count - 1, closed);
        int error = add_pending(out, track, &span);
        if (error)
            return error;
        t->frames.count--;
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

static bool show(stacks_track *t)
{
    size_t count = t->frames.count, low = t->low < count ? t->low : count;
    if (count == 0) { /* most fibers of a long session are over: they keep nothing */
        vec_free(&t->frames);
        vec_free(&t->shown);
        return true;
    }
    if (!vec_reserve(&t->shown, count))
        return false;
    memcpy(t->shown.items + low, t->frames.items + low, (count - low) * sizeof *t->shown.items);
    t->shown.count = count;
    return true;
}

int stacks_commit(stacks *s)
{
    int error = 0;
    for (size_t i = 0; i < s->touched.count; i++) {
        stacks_track *t = &s->tracks.items[s->touched.items[i]];
        t->is_touched = false;
        if (!show(t))
            error = -ENOMEM;
    }
    s->touched.count = 0;
    return error;
}

/* ---- what is open --------------------------------------------------------------------------------------------- */

uint32_t stacks_open_depth(const stacks *s, uint32_t track)
{
    if (track >= s->tracks.count)
        return 0;
    const stacks_track *t = &s->tracks.items[track];
    return t->shown.count > 0 ? (uint32_t)t->shown.count : t->state != STACKS_CLOSED;
}

size_t stacks_open_frames(const stacks *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max)
{
    uint32_t depth = stacks_open_depth(s, track);
    if (first_depth >= depth || max == 0)
        return 0;
    const stacks_track *t = &s->tracks.items[track];
    if (t->shown.count == 0) {
        out[0] = (sim_span){t->since_ns, t->since_ns, t->state, 0, SIM_OPEN, 0, {0}};
        return 1;
    }
    size_t count = depth - first_depth < max ? depth - first_depth : max;
    for (size_t i = 0; i < count; i++)
        block_write_span(&out[i], &t->shown.items[first_depth + i], 0, first_depth + i, SIM_OPEN);
    return count;
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

_Static_assert(SIM_STATE_CLOSED == STACKS_CLOSED, "one word for 'nothing is open'");

int stacks_save_frames(const stacks *s, uint32_t track, sim_state *out)
{
    if (track >= s->tracks.count)
        return 0;
    const stacks_frames *f = &s->tracks.items[track].frames;
    if (!vec_reserve(&out->frames, out->frames.count + f->count))
        return -ENOMEM;
    for (size_t i = 0; i < f->count; i++) /* ev_depth_key is its own inverse */
        out->frames.items[out->frames.count++] =
            (sim_state_frame){f->items[i].begin_ns, ev_depth_key(f->items[i].key), f->items[i].method};
    return 0;
}

int stacks_load_frames(stacks *s, uint32_t track, const sim_state_frame *frames, size_t count)
{
    stacks_track *t = track_at(s, track);
    if (!t || !touch(s, track, t, t->frames.count) || !vec_reserve(&t->frames, t->frames.count + count))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        t->frames.items[t->frames.count++] = (block_frame){frames[i].begin_ns, ev_depth_key(frames[i].position), frames[i].method};
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
