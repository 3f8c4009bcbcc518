/* intake/block_pool.h - a fixed number of event blocks, and the queue that carries them from the drain to the simulation.
 * For:     intake/ (takes free blocks, fills and queues them), app/'s simulation thread (takes queued ones, gives them back).
 * Idea:    two lists under one mutex. An empty pool is news, not an error: the drain then leaves events in their ring, whose
 *          writers wait: the chain is bounded from end to end.
 *
 *          free ──take──> drain fills ──queue──> simulation ──give──> free
 * Use:     block_pool_new; block_pool_take/block_pool_queue; block_pool_wait/block_pool_give; block_pool_delete.
 * Memory:  block_count * BLOCK_EVENTS * 16 bytes, reserved at once and touched as used.
 * Threads: any; a block belongs to whoever took it last. The mutex orders what was written into it before the hand-over.
 */
#ifndef RRTRACE_INTAKE_BLOCK_POOL_H
#define RRTRACE_INTAKE_BLOCK_POOL_H

#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_EVENTS 16384u /* 256 KiB: holds the longest DEFINE (5,121 slots), and fits the second-level cache twice */

typedef enum block_kind {
    BLOCK_EVENTS_KIND, /* events[0, event_count) */
    BLOCK_STREAM_BEGINS, /* a program has joined: stream, pid, clock_source */
    BLOCK_STREAM_ENDS,   /* no more events of the stream will come */
} block_kind;

typedef struct block {
    block_kind kind;
    uint32_t stream; /* intake's number, from 0 */
    uint32_t event_count;
    uint32_t pid;          /* BEGINS: as we see it */
    uint32_t clock_source; /* BEGINS */
    bool said_bye;         /* ENDS: the program waits for intake_done */
    const char *problem;   /* ENDS: static text, NULL unless the stream was damaged */
    ev *events;            /* borrowed from the pool */
    struct block *next;
} block;

typedef struct block_pool block_pool;

int block_pool_new(block_pool **out, uint32_t block_count); /* 0 or -ENOMEM */
void block_pool_delete(block_pool *p);                      /* NULL is fine */

block *block_pool_take(block_pool *p); /* NULL: none is free just now */
void block_pool_queue(block_pool *p, block *b);
/* Up to max queued blocks, oldest first; waits for the first one up to timeout_ms. Returns how many. */
size_t block_pool_wait(block_pool *p, block **out, size_t max, int timeout_ms);
void block_pool_give(block_pool *p, block *b);
/* Events in queued blocks: what the simulation is behind. */
uint64_t block_pool_backlog(block_pool *p);

#endif
