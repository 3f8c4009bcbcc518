/* sim/sim.h - the parallel scan: blocks of events in, finished spans out, open frames kept.
 * For:     app/ (live sessions), record/ (reading a file back), bench/.
 * Idea:    three steps over consecutive blocks of one stream:
 *            summarise (parallel)  what does this block do to a stack that nobody knows yet: cut so deep, push these
 *            prefix    (serial)    fold the summaries into the running stacks; frames move to the block that pops them
 *            emit      (parallel)  replay each block from its starting state, now known, and give out finished spans
 *          sim/reference.h does the same one event after another; both must agree exactly.
 * Use:     sim_new; stream = sim_stream_open; sim_run(blocks of any streams, in stream order); sim_stream_close at its end.
 * Memory:  owns its stacks and scratch space; blocks are borrowed during sim_run only.
 * Threads: one caller at a time; sim_run uses the workers that sim_new was given. What the sink, catalog and open frames
 *          share with other threads is guarded by the model lock, which sim_run takes through sim_desc.lock for the serial
 *          parts that touch them.
 * Units:   ticks in, CLOCK_MONOTONIC ns out.
 * Source:  Blelloch, "Prefix Sums and Their Applications" (1990); the operator is DESIGN §2's "cut, then push".
 */
#ifndef RRTRACE_SIM_SIM_H
#define RRTRACE_SIM_SIM_H

#include "sim/catalog.h"
#include "sim/span.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workers;

typedef struct sim sim;

/* A block: consecutive events of one stream, no DEFINE cut in two (intake/ checked lengths and kinds). */
typedef struct sim_block {
    uint32_t stream;    /* from sim_stream_open */
    uint32_t event_count;
    const ev *events;
} sim_block;

typedef struct sim_desc {
    struct workers *workers; /* borrowed; NULL: everything on the calling thread */
    catalog *catalog;        /* borrowed */
    /* Takes finished spans, all of one track, in the order of their ends; called with the lock held. */
    void (*sink)(void *context, uint32_t track, const sim_span *spans, size_t span_count);
    /* Takes marks, and begins and ends of user spans, in the order of events; called with the lock held. May be NULL. */
    void (*note)(void *context, const sim_note *note);
    void (*lock)(void *context);   /* the model lock; may be NULL */
    void (*unlock)(void *context);
    void *context;
} sim_desc;

int sim_new(sim **out, const sim_desc *desc); /* 0 or -ENOMEM */
void sim_delete(sim *s);

/* A new stream; process: its id in the catalog. clock_source: of the ring's header. SIM_STREAM_NONE: memory is out. */
#define SIM_STREAM_NONE UINT32_MAX
uint32_t sim_stream_open(sim *s, uint32_t process, uint32_t clock_source);
int sim_run(sim *s, const sim_block *blocks, size_t block_count); /* 0 or -ENOMEM */
/* The stream has ended: its open frames are given out as SIM_CLOSED_END at its last time. */
int sim_stream_close(sim *s, uint32_t stream);

/* Time of the newest event of a stream. Model lock. */
uint64_t sim_stream_now_ns(const sim *s, uint32_t stream);
/* A time of the stream's clock, by what is known of it by now. Model lock. */
uint64_t sim_stream_time_ns(const sim *s, uint32_t stream, uint64_t ticks);

/* Frames open on a track after the last sim_run, shallowest first: out[i].depth == first_depth + i; closed == SIM_OPEN,
 * end_ns == begin_ns. GVL and GC tracks have at most one. Returns how many were written, at most max. Model lock. */
size_t sim_open_frames(const sim *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max);
/* How many frames are open on a track. Model lock. */
uint32_t sim_open_depth(const sim *s, uint32_t track);

#endif
