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
