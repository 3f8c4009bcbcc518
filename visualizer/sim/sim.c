#include "sim/sim.h"

#include "base/mem.h"
#include "base/vec.h"
#include "base/workers.h"
#include "sim/block.h"
#include "sim/stacks.h"
#include "sim/state.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Blocks worked on at once. More would use more scratch memory and make the picture wait longer; fewer would leave threads
 * idle at the end of each step. */
#define BATCH_BLOCKS 16u

typedef struct stream {
    uint32_t process;
    bool is_open;
    timebase clock;
    uint64_t last_ticks, last_ns;
    stacks_place current; /* where events run until the next SWITCH */
} stream;

struct sim {
    sim_desc desc;
    VEC(stream) streams;
    stacks stacks;
    block_work works[BATCH_BLOCKS];
    const sim_block *batch; /* borrowed during sim_run */
    _Atomic int error;      /* a failure of a parallel step; relaxed: workers_run's end orders it before it is read */
};

int sim_new(sim **out, const sim_desc *desc)
{
    sim *s = *out = mem_zalloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->desc = *desc;
    stacks_init(&s->stacks, desc->catalog);
    return 0;
}

void sim_delete(sim *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < BATCH_BLOCKS; i++)
        block_work_free(&s->works[i]);
    stacks_free(&s->stacks);
    vec_free(&s->streams);
    mem_free(s);
}

static void lock(sim *s)
{
    if (s->desc.lock)
        s->desc.lock(s->desc.context);
}

static void unlock(sim *s)
{
    if (s->desc.unlock)
        s->desc.unlock(s->desc.context);
}

uint32_t sim_stream_open(sim *s, uint32_t process, uint32_t clock_source)
{
    (void)clock_source; /* CLOCK definitions say all; kept for streams whose first definition is damaged */
    stream *new_one = vec_push(&s->streams);
    if (!new_one)
        return SIM_STREAM_NONE;
    *new_one = (stream){.process = process, .is_open = true, .current = STACKS_NOWHERE};
    timebase_init(&new_one->clock);
    return (uint32_t)(s->streams.count - 1);
}

static void summarise_one(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    (void)thread;
    int error = block_summarise(&s->works[index], s->batch[index].events, s->batch[index].event_count);
    if (error)
        atomic_store_explicit(&s->error, error, memory_order_relaxed);
}

static void emit_one(void *context, size_t index, unsigned thread)
{
    sim *s = context;
    (void)thread;
    int error = block_emit(&s->works[index]);
    if (error)
        atomic_store_explicit(&s->error, error, memory_order_relaxed);
}

/* After stacks_fold. was_placed: the stream ran somewhere before this block. */
static void give_notes(sim *s, const stream *st, const block_work *w, bool was_placed)
{
    for (size_t i = 0; s->desc.note && i < w->notes.count; i++) {
        block_note n = w->notes.items[i];
        const block_part *p = &w->parts.items[n.part];
        ev e = w->events[n.index];
        bool has_place = !p->is_inherited || was_placed || n.is_placed;
        s->desc.note(s->desc.context, &(sim_note){block_time(w, n.index), ev_kind_of(e), st->process,
                                                  has_place ? p->thread_id : SIM_TRACK_NONE, e.number, e.place, 0});
    }
}

/* Serial: fold one block's summary into the running stacks, and give each of its parts the state that it starts from. */
static int fold(sim *s, stream *st, block_work *w)
{
    catalog_process *process = catalog_process_at(s->desc.catalog, st->process);
    bool was_placed = st->current.fiber != CATALOG_NONE;
    int error = block_read_definitions(w, &st->clock, st->last_ticks, s->desc.catalog, st->process);
    if (!error)
        error = stacks_fold(&s->stacks, w, st->process, &st->current);
    if (!error)
        give_notes(s, st, w, was_placed);
    if (!error)
        error = stacks_runtime(&s->stacks, w, st->process);
    if (w->event_count > 0) {
        st->last_ticks = ev_ticks_of(w->events[w->last_index]);
        st->last_ns = block_time(w, w->last_index);
        if (process->event_count == 0)
            process->begin_ns = block_time(w, 0);
        process->event_count += w->plain_count;
    }
    return error;
}

static void give_out(sim *s, const block_work *w)
{
    for (size_t i = 0; i < w->pending.count; i++)
        s->desc.sink(s->desc.context, w->pending.items[i].track, &w->pending.items[i].span, 1);
    size_t first = 0;
    for (size_t i = 0; i < w->runs.count; i++) {
        const block_run *run = &w->runs.items[i];
        if (run->span_count > 0)
            s->desc.sink(s->desc.context, run->track, w->spans.items + first, run->span_count);
        first += run->span_count;
    }
    for (size_t i = 0; i < w->exits.count; i++)
        s->desc.sink(s->desc.context, w->exits.items[i].track, &w->exits.items[i].span, 1);
}

static int run_batch(sim *s, const sim_block *blocks, size_t count)
{
    s->batch = blocks;
    atomic_store_explicit(&s->error, 0, memory_order_relaxed);
    workers_run(s->desc.workers, count, summarise_one, s);
    int error = atomic_load_explicit(&s->error, memory_order_relaxed);
    if (error)
        return error;

    lock(s);
    for (size_t i = 0; i < count && !error; i++)
        error = fold(s, &s->streams.items[blocks[i].stream], &s->works[i]);
    unlock(s);
    if (error)
        return error;

    workers_run(s->desc.workers, count, emit_one, s);
    error = atomic_load_explicit(&s->error, memory_order_relaxed);
    if (error)
        return error;

    lock(s);
    for (size_t i = 0; i < count; i++)
        give_out(s, &s->works[i]);
    error = stacks_commit(&s->stacks);
    unlock(s);
    return error;
}

int sim_run(sim *s, const sim_block *blocks, size_t block_count)
{
    int error = 0;
    for (size_t done = 0; done < block_count && !error;) {
        size_t count = block_count - done < BATCH_BLOCKS ? block_count - done : BATCH_BLOCKS;
        error = run_batch(s, blocks + done, count);
        done += count;
    }
    return error;
}

int sim_stream_close(sim *s, uint32_t number)
{
    stream *st = &s->streams.items[number];
    if (!st->is_open)
        return 0;
    st->is_open = false;
    block_pendings ended = {0};
    lock(s);
    int error = stacks_end_process(&s->stacks, st->process, st->last_ns, SIM_CLOSED_END, &ended);
    for (size_t i = 0; i < ended.count; i++)
        s->desc.sink(s->desc.context, ended.items[i].track, &ended.items[i].span, 1);
    if (stacks_commit(&s->stacks) != 0)
        error = -ENOMEM;
    catalog_process_at(s->desc.catalog, st->process)->end_ns = st->last_ns;
    unlock(s);
    vec_free(&ended);
    return error;
}

uint64_t sim_stream_now_ns(const sim *s, uint32_t number) { return s->streams.items[number].last_ns; }

uint64_t sim_stream_time_ns(const sim *s, uint32_t number, uint64_t ticks)
{
    return timebase_ns(&s->streams.items[number].clock.line, ticks);
}

size_t sim_open_frames(const sim *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max)
{
    return stacks_open_frames(&s->stacks, track, first_depth, out, max);
}

uint32_t sim_open_depth(const sim *s, uint32_t track) { return stacks_open_depth(&s->stacks, track); }

/* ---- states ---------------------------------------------------------------------------------------------------- */

static int save_fiber(const sim *s, const catalog_fiber *f, sim_state *out)
{
    size_t first = out->frames.count;
    int error = stacks_save_frames(&s->stacks, f->track, out);
    sim_state_fiber *saved = error ? NULL : vec_push(&out->fibers);
    if (!saved)
        return -ENOMEM;
    *saved = (sim_state_fiber){f->begin_ns, f->end_ns, f->number, (uint32_t)(out->frames.count - first)};
    return 0;
}

static int save_thread(const sim *s, const catalog_thread *t, sim_state *out)
{
    size_t first = out->fibers.count;
    for (uint32_t f = t->first_fiber; f != CATALOG_NONE; f = catalog_fiber_at(s->desc.catalog, f)->next) {
        int error = save_fiber(s, catalog_fiber_at(s->desc.catalog, f), out);
        if (error)
            return error;
    }
    sim_state_thread *saved = vec_push(&out->threads);
    if (!saved)
        return -ENOMEM;
    *saved = (sim_state_thread){
        .begin_ns = t->begin_ns,
        .end_ns = t->end_ns,
        .number = t->number,
        .fiber_count = (uint32_t)(out->fibers.count - first),
    };
    stacks_save_state(&s->stacks, t->gvl_track, &saved->gvl, &saved->gvl_since_ns);
    return 0;
}

int sim_stream_state(const sim *s, uint32_t number, sim_state *out)
{
    const stream *st = &s->streams.items[number];
    const catalog *c = s->desc.catalog;
    const catalog_process *process = catalog_process_at(c, st->process);
    out->threads.count = out->fibers.count = out->frames.count = 0;
    out->clock = st->clock;
    out->last_ticks = st->last_ticks;
    out->last_ns = st->last_ns;
    out->process_begin_ns = process->begin_ns;
    out->process_event_count = process->event_count;
    stacks_save_state(&s->stacks, process->gc_track, &out->gc, &out->gc_since_ns);
    out->is_placed = st->current.fiber != CATALOG_NONE;
    out->current_thread = out->is_placed ? catalog_thread_at(c, st->current.thread)->number : 0;
    out->current_fiber = out->is_placed ? catalog_fiber_at(c, st->current.fiber)->number : 0;
    for (uint32_t t = process->first_thread; t != CATALOG_NONE; t = catalog_thread_at(c, t)->next) {
        int error = save_thread(s, catalog_thread_at(c, t), out);
        if (error)
            return error;
    }
    return 0;
}

static int load_fiber(sim *s, uint32_t process, uint32_t thread, const sim_state_fiber *saved, const sim_state_frame *frames)
{
    uint32_t id = catalog_fiber_of(s->desc.catalog, process, saved->number, thread, saved->begin_ns);
    if (id == CATALOG_NONE)
        return -ENOMEM;
    catalog_fiber *f = catalog_fiber_at(s->desc.catalog, id);
    f->begin_ns = saved->begin_ns;
    f->end_ns = saved->end_ns;
    return stacks_load_frames(&s->stacks, f->track, frames, saved->frame_count);
}

static int load_threads(sim *s, uint32_t process, const sim_state *state)
{
    const sim_state_fiber *fiber = state->fibers.items;
    const sim_state_frame *frame = state->frames.items;
    for (size_t i = 0; i < state->threads.count; i++) {
        const sim_state_thread *saved = &state->threads.items[i];
        uint32_t id = catalog_thread_of(s->desc.catalog, process, saved->number, saved->begin_ns);
        if (id == CATALOG_NONE)
            return -ENOMEM;
        catalog_thread *t = catalog_thread_at(s->desc.catalog, id);
        t->begin_ns = saved->begin_ns;
        t->end_ns = saved->end_ns;
        int error = stacks_load_state(&s->stacks, t->gvl_track, saved->gvl, saved->gvl_since_ns);
        for (uint32_t k = 0; k < saved->fiber_count && !error; k++, frame += fiber->frame_count, fiber++)
            error = load_fiber(s, process, id, fiber, frame);
        if (error)
            return error;
    }
    return 0;
}

/* Where the state's events run, as ids: the threads and fibers exist by now. */
static int load_place(sim *s, uint32_t process, const sim_state *state, stacks_place *place)
{
    if (!state->is_placed)
        return 0;
    place->thread = catalog_thread_of(s->desc.catalog, process, state->current_thread, state->last_ns);
    if (place->thread == CATALOG_NONE)
        return -ENOMEM;
    place->fiber = catalog_fiber_of(s->desc.catalog, process, state->current_fiber, place->thread, state->last_ns);
    return place->fiber == CATALOG_NONE ? -ENOMEM : 0;
}

/* Do the counts add up, and do the states exist? A sim_state may come out of a file. */
static bool is_whole(const sim_state *state)
{
    uint64_t fibers = 0, frames = 0;
    for (size_t i = 0; i < state->threads.count; i++) {
        if (state->threads.items[i].gvl > SIM_GVL_BLOCKED && state->threads.items[i].gvl != SIM_STATE_CLOSED)
            return false;
        fibers += state->threads.items[i].fiber_count;
    }
    for (size_t i = 0; i < state->fibers.count; i++)
        frames += state->fibers.items[i].frame_count;
    return fibers == state->fibers.count && frames == state->frames.count && state->clock.line.ns_per_tick_q32 != 0 &&
           (state->gc == 0 || state->gc == SIM_STATE_CLOSED);
}

uint32_t sim_stream_resume(sim *s, uint32_t process_id, uint32_t clock_source, const sim_state *state)
{
    if (!is_whole(state))
        return SIM_STREAM_NONE;
    uint32_t number = sim_stream_open(s, process_id, clock_source);
    if (number == SIM_STREAM_NONE)
        return SIM_STREAM_NONE;
    stream *st = &s->streams.items[number];
    catalog_process *process = catalog_process_at(s->desc.catalog, process_id);
    st->clock = state->clock;
    st->last_ticks = state->last_ticks;
    st->last_ns = state->last_ns;
    process->begin_ns = state->process_begin_ns;
    process->event_count = state->process_event_count;
    int error = stacks_load_state(&s->stacks, process->gc_track, state->gc, state->gc_since_ns);
    if (!error)
        error = load_threads(s, process_id, state);
    if (!error)
        error = load_place(s, process_id, state, &st->current);
    if (stacks_commit(&s->stacks) != 0)
        error = -ENOMEM;
    if (error)
        st->is_open = false;
    return error ? SIM_STREAM_NONE : number;
}
