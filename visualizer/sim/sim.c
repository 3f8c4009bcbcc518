#include "sim/sim.h"

#include "base/mem.h"
#include "base/vec.h"
#include "base/workers.h"
#include "sim/block.h"
#include "sim/stacks.h"

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

/* Serial: fold one block's summary into the running stacks, and give each of its parts the state that it starts from. */
static int fold(sim *s, stream *st, block_work *w)
{
    catalog_process *process = catalog_process_at(s->desc.catalog, st->process);
    int error = block_read_definitions(w, &st->clock, st->last_ticks, s->desc.catalog, st->process);
    if (!error)
        error = stacks_fold(&s->stacks, w, st->process, &st->current);
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

size_t sim_open_frames(const sim *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max)
{
    return stacks_open_frames(&s->stacks, track, first_depth, out, max);
}

uint32_t sim_open_depth(const sim *s, uint32_t track) { return stacks_open_depth(&s->stacks, track); }
