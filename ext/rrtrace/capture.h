/* capture.h - the hooks: VM event in, 16-byte event in the ring out.
 * For:     join.c (switches them on and off), methods.c and frames.c (push definitions), rrtrace.c (spans and marks).
 * Idea:    everything that a hook needs lies in one struct; the fast path is: look up, lock, compare the execution
 *          context, read the clock, store, unlock. Whatever is unusual leaves it for a slow path that starts over.
 * Use:     capture_start once a ring is there; capture_stop before it goes.
 * Memory:  the ring belongs to join.c. No hook allocates outside the slow paths that hold the GVL.
 * Threads: CALL and RETURN hooks hold the GVL. Thread hooks and the watcher do not: they count themselves in `users`
 *          while they use the ring, and capture_drain_users waits for them.
 */
#ifndef RRTRACE_EXT_CAPTURE_H
#define RRTRACE_EXT_CAPTURE_H

#include "vm.h"
#include "wire/clock.h"
#include "wire/ring.h"

#include <ruby/thread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum capture_mode {
    CAPTURE_OFF = 0,
    CAPTURE_ON,
    CAPTURE_MUST_JOIN, /* a forked child: the next event makes a ring of its own first */
} capture_mode;

typedef struct capture_state {
    _Atomic uint32_t mode; /* capture_mode; stored by join.c, its watcher and the fork handler; loaded by every hook */
    uint32_t clock_source;
    ring *ring;             /* borrowed from join.c while mode is CAPTURE_ON */
    const void *last_ec;    /* under the ring's lock: whose events the reader takes the next ones for; NULL: nobody's */
    uint32_t last_thread;   /* under the lock: the thread of the last SWITCH; 0 after it let the GVL go */
    bool drop;              /* full ring: count and go on, instead of wait */
    bool positions_counted; /* the VM's memory is not as we know it */
    bool by_entry;          /* a Ruby method is known by its frame's method entry */
    bool c_calls, blocks;
    uint64_t last_ticks;         /* under the lock: of the last event */
    uint64_t unreported;         /* under the lock: events dropped since the last DEFINE DROPPED */
    _Atomic uint64_t generation; /* GC_ENTERs seen: a fiber's memory is freed only in between */
    _Atomic uint32_t gc_open;    /* a GC_ENTER without its GC_EXIT so far */
    VALUE main_thread;           /* borrowed: it lives as long as the VM */
    _Atomic uint32_t users;      /* threads without the GVL that use the ring now */
    uint32_t epoch; /* one a ring; numbers of threads and fibers carry it, so those of an earlier ring are void */
    uint32_t fiber_count;
    _Atomic uint32_t thread_count;
    uint32_t span_count;
} capture_state;

extern capture_state capture;

static inline uint32_t capture_mode_now(void) { return atomic_load_explicit(&capture.mode, memory_order_relaxed); }

/* Under the lock: ticks, or those of the last event if they are later: ring order is time order. */
static inline uint64_t capture_in_order(uint64_t ticks)
{
    if (ticks < capture.last_ticks)
        ticks = capture.last_ticks;
    capture.last_ticks = ticks;
    return ticks;
}

static inline uint64_t capture_ticks(void) { return capture_in_order(clock_ticks(capture.clock_source)); }

/* Once a process. 0, or -1 with a sentence. GVL held. */
int capture_prepare(const char **why);

/* GVL held, ring in place, mode still off. from_child: hooks are there already, inherited. */
void capture_start(ring *r, bool drop, bool c_calls, bool blocks, bool from_child, const ev_clock_def clocks[2]);

/* GVL held. Mode off, hooks removed (not in a child that did not add them: CRUBY-FACTS 16), users gone. */
void capture_stop(void);
void capture_drain_users(void);

/* Child of a fork, async-signal-safe: forget what the parent's other threads held. */
void capture_forget_in_child(void);

/* Lock the ring with room for count slots, waiting or dropping when it is full. false: nothing is held, the event is
 * lost (counted) or the reader has gone. */
bool capture_begin(uint64_t count);

typedef struct capture_piece {
    const void *bytes;
    uint32_t count;
} capture_piece;

/* One DEFINE; false when it could not be sent (dropped or detached): the caller must send it again some day. */
bool capture_define(ev_define what, uint32_t number, const capture_piece *pieces, int piece_count);
ev_clock_def capture_clock(void);
/* may_wait: false from threads that must not wait for room; the next calibration makes up for one left out. */
void capture_define_clock(const ev_clock_def *def, bool may_wait);
void capture_define_process(void);
/* Read the current thread's name once more before its next event. GVL held. */
void capture_name_is_stale(void);

/* An event of the running Ruby code (span or mark), with a SWITCH if needed. GVL held. */
void capture_note(ev_kind kind, uint32_t number, uint32_t place);

#endif
