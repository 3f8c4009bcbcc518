/* sim/block.h - the two parallel steps over one block: summarise and emit.
 * For:     sim.c only.
 * Idea:    a block touches some fibers, each a part. To a part the stack below its first event is unknown when it is
 *          summarised; what it does to that stack is a short list of operations (almost always one cut), and then frames
 *          that it leaves on top. To emit, the same replay runs again, on top of just those frames that the operations
 *          take from the stack, which the prefix step has moved over by then: what lies below them can't matter to it.
 *
 *          unknown stack   | cut ≥ key |      the part's own frames at its end
 *          ────────────────╳───────────┴──> [key, event] [key, event] …
 * Use:     block_summarise; then, serially, block_read_definitions and stacks_fold; then block_emit; then read spans.
 * Memory:  a block_work owns its arrays and keeps them from batch to batch.
 * Threads: one thread a block_work at a time.
 * Units:   index: event of the block. Keys as ev_depth_key.
 */
#ifndef RRTRACE_SIM_BLOCK_H
#define RRTRACE_SIM_BLOCK_H

#include "base/vec.h"
#include "sim/catalog.h"
#include "sim/span.h"
#include "sim/timebase.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_OPEN_AT_START 0x80000000u /* in method: from a FRAME event; numbers have 28 bits */

typedef enum block_op_kind {
    BLOCK_CUT,   /* pop while top is at or deeper than key */
    BLOCK_UNWIND /* pop the top if it is a C method with this number */
} block_op_kind;

typedef struct block_op {
    block_op_kind kind;
    uint32_t key;    /* CUT */
    uint32_t method; /* UNWIND */
} block_op;

/* An open frame. */
typedef struct block_frame {
    uint64_t begin_ns;
    uint32_t key;
    uint32_t method; /* with BLOCK_OPEN_AT_START */
} block_frame;

/* A frame of the part's own while it is summarised. */
typedef struct block_own {
    uint32_t key, index; /* its event's */
} block_own;

/* A frame at that depth as a span; one that would end before it begins ends then. */
static inline void block_write_span(sim_span *out, const block_frame *f, uint64_t end_ns, size_t depth, sim_closed closed)
{
    *out = (sim_span){
        .begin_ns = f->begin_ns,
        .end_ns = end_ns > f->begin_ns ? end_ns : f->begin_ns,
        .value = f->method & ~BLOCK_OPEN_AT_START,
        .depth = (uint32_t)depth,
        .closed = (uint8_t)closed,
        .open_at_start = (uint8_t)(f->method >> 31),
    };
}

typedef struct block_part {
    uint32_t fiber, thread; /* numbers of the stream; of no meaning when is_inherited */
    bool is_inherited;      /* runs where the block before left off */
    bool has_stack_events;
    uint32_t first_index, last_index; /* first event; last event before another part took over */
    VEC(block_op) ops;      /* on the unknown stack, in order */
    VEC(block_own) own;     /* [0]: the floor, no frame; from [1]: the frames left on top, lowest first */
    /* Set by the prefix step: */
    uint32_t track;
    uint32_t thread_id;      /* of the catalog; CATALOG_NONE: none yet */
    uint32_t base_depth;     /* frames of the stack that are not in frames */
    VEC(block_frame) frames; /* those of the stack before it that the part pops, and the one below; then emit's stack */
} block_part;

/* Something of the runtime, not of a stack: GC, threads, GVL. */
typedef struct block_runtime {
    uint32_t index;
    uint32_t kind; /* ev_kind; EV_GC_EXIT also stands for 'a call came, so the GC was over' */
} block_runtime;

/* A mark, or a user span's begin or end. */
typedef struct block_note {
    uint32_t index, part;
    bool is_placed; /* a stack event came before it in the part: so the part has a place, if need be an invented one */
} block_note;

typedef struct block_define {
    uint32_t index;
    uint32_t previous_index; /* the last event before it, UINT32_MAX: none in this block */
} block_define;

typedef struct block_line {
    uint32_t first_index; /* the line holds from this event on */
    timebase_line line;
} block_line;

typedef struct block_pending {
    uint32_t track;
    sim_span span;
} block_pending;

typedef VEC(block_pending) block_pendings;

typedef struct block_run {
    uint32_t track;
    uint32_t span_count;
} block_run;

typedef struct block_work {
    const ev *events; /* borrowed during sim_run */
    uint32_t event_count, plain_count; /* slots; events that are no payload */
    uint32_t last_index;               /* of the last event that is no payload */
    VEC(block_part) parts; /* in order of appearance; parts[0] is the inherited one. Those past part_count wait for use */
    uint32_t part_count;
    VEC(uint32_t) switches; /* part of each SWITCH, in order */
    uint32_t final_part;    /* where the block ends */
    VEC(block_runtime) runtime;
    VEC(block_define) defines;
    VEC(block_note) notes;
    VEC(block_line) lines;
    VEC(sim_span) spans; /* finished, in order of events */
    VEC(block_run) runs; /* spans by track: runs[i] covers the next span_count of spans */
    block_pendings pending; /* GVL and GC spans */
    block_pendings exits;   /* frames of threads that ended in this block; after spans */
    uint32_t *part_table;   /* fiber number -> part, open addressing; owned */
    uint32_t part_table_bits;
} block_work;

int block_summarise(block_work *w, const ev *events, uint32_t event_count); /* 0 or -ENOMEM */
/* Take over the definitions, and lay the time lines of the block. */
int block_read_definitions(block_work *w, timebase *clock, uint64_t last_ticks, catalog *c, uint32_t process);
int block_emit(block_work *w); /* 0 or -ENOMEM */
void block_work_free(block_work *w);

/* Time of an event of the block; after block_read_definitions. */
uint64_t block_time(const block_work *w, uint32_t index);

#endif
