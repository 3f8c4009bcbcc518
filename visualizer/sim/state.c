#include "sim/state.h"

#include "base/mem.h"

#include <string.h>

void sim_state_free(sim_state *state)
{
    vec_free(&state->threads);
    vec_free(&state->fibers);
    vec_free(&state->frames);
    *state = (sim_state){0};
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void begin_fiber_at(sim_state_fiber *f, sim_state_frame *frames, uint64_t begin_ns)
{
    f->begin_ns = later(f->begin_ns, begin_ns);
    f->end_ns = later(f->end_ns, begin_ns);
    for (uint32_t i = 0; i < f->frame_count; i++) {
        frames[i].method |= frames[i].begin_ns < begin_ns ? SIM_STATE_OPEN_AT_START : 0;
        frames[i].begin_ns = later(frames[i].begin_ns, begin_ns);
    }
}

static bool has_frames(const sim_state_fiber *fibers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fibers[i].frame_count > 0)
            return true;
    return false;
}

void sim_state_begin_at(sim_state *state, uint64_t begin_ns)
{
    size_t threads = 0, fibers = 0; /* kept */
    sim_state_fiber *own = state->fibers.items;
    sim_state_frame *frames = state->frames.items;
    state->process_begin_ns = later(state->process_begin_ns, begin_ns);
    if (state->gc != SIM_STATE_CLOSED)
        state->gc_since_ns = later(state->gc_since_ns, begin_ns);
    for (size_t i = 0; i < state->threads.count; i++) {
        sim_state_thread t = state->threads.items[i];
        sim_state_fiber *first = own;
        bool is_gone = t.end_ns != 0 && t.end_ns < begin_ns && !has_frames(own, t.fiber_count);
        for (uint32_t k = 0; k < t.fiber_count; k++, frames += own->frame_count, own++)
            begin_fiber_at(own, frames, begin_ns);
        if (is_gone)
            continue;
        if (t.fiber_count > 0)
            memmove(state->fibers.items + fibers, first, t.fiber_count * sizeof *first);
        fibers += t.fiber_count;
        t.begin_ns = later(t.begin_ns, begin_ns);
        if (t.gvl != SIM_STATE_CLOSED)
            t.gvl_since_ns = later(t.gvl_since_ns, begin_ns);
        state->threads.items[threads++] = t;
    }
    state->threads.count = threads;
    state->fibers.count = fibers;
}

static bool same_bytes(const void *a, size_t a_count, const void *b, size_t b_count, size_t element_bytes)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * element_bytes) == 0);
}

static bool same_clock(const timebase *a, const timebase *b)
{
    return a->line.base_ticks == b->line.base_ticks && a->line.base_ns == b->line.base_ns &&
           a->line.ns_per_tick_q32 == b->line.ns_per_tick_q32 && a->first_ticks == b->first_ticks &&
           a->first_ns == b->first_ns && a->pair_count == b->pair_count;
}

bool sim_state_equal(const sim_state *a, const sim_state *b)
{
    return same_clock(&a->clock, &b->clock) && a->last_ticks == b->last_ticks && a->last_ns == b->last_ns &&
           a->process_begin_ns == b->process_begin_ns && a->process_event_count == b->process_event_count &&
           a->gc_since_ns == b->gc_since_ns && a->gc == b->gc && a->is_placed == b->is_placed &&
           a->current_thread == b->current_thread && a->current_fiber == b->current_fiber &&
           same_bytes(a->threads.items, a->threads.count, b->threads.items, b->threads.count, sizeof *a->threads.items) &&
           same_bytes(a->fibers.items, a->fibers.count, b->fibers.items, b->fibers.count, sizeof *a->fibers.items) &&
           same_bytes(a->frames.items, a->frames.count, b->frames.items, b->frames.count, sizeof *a->frames.items);
}
