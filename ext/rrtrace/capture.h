/* capture.h - the hooks: VM event in, 16-byte event in the ring out.
 * For:     join.c (switches them on and off), methods.c, frames.c and place.c (push definitions), ractors.c, rrtrace.c (spans
 *          and marks).
 * Idea:    every Ractor has a stream: a ring, and everything that a hook needs to write into it, in one struct. A hook finds it
 *          in its own data argument, so Ractors share nothing on the fast path, which is: look up, lock, compare the
 *          execution context, read the clock, store, unlock. Whatever is unusual leaves it for a slow path that starts over.
 * Use:     capture_start once a ring is there; capture_stop before it goes.
 * Memory:  capture_main is the main Ractor's stream; ractors.c has the others, and never frees one. The rings belong to join.c.
 *          No hook allocates outside the slow paths that hold the GVL.
 * Threads: CALL and RETURN hooks hold the GVL of the stream's Ractor. Thread hooks and the watcher do not: they count
 *          themselves in `users` while they use the ring, and capture_drain_users waits for them.
 */
#ifndef RRTRACE_EXT_CAPTURE_H
#define RRTRACE_EXT_CAPTURE_H

#include "methods.h"
#include "place.h"
#include "vm.h"
#include "wire/clock.h"
#include "wire/ring.h"

#include <ruby/thread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

typedef enum capture_mode {
    CAPTURE_OFF = 0,
    CAPTURE_ON,
    CAPTURE_MUST_JOIN, /* a forked child, or a Ractor that has no ring yet: the next event makes one first */
} capture_mode;

typedef struct capture_options {
    bool drop; /* full ring: count and go on, instead of wait */
    bool c_calls, blocks;
} capture_options;

/* The program may close descriptors that are not its own, as daemons do, and reuse their numbers: the inode tells. */
typedef struct join_socket {
    int fd; /* -1: none */
    ino_t inode;
} join_socket;

typedef struct stream {
    _Atomic uint32_t mode; /* capture_mode; stored by join.c, its watcher and the fork handler; loaded by every hook */
    uint32_t clock_source;
    ring *ring;             /* mapped by join.c; set while mode is CAPTURE_ON */
    const void *last_ec;    /* under the ring's lock: whose events the reader takes the next ones for; NULL: nobody's */
    uint32_t last_thread;   /* under the lock: the thread of the last SWITCH; 0 after it let the GVL go */
    capture_options options;
    uint64_t last_ticks;    /* under the lock: of the last event */
    uint64_t unreported;    /* under the lock: events dropped since the last DEFINE DROPPED */
    _Atomic uint32_t users; /* threads without the GVL that use the ring now */
    uint32_t epoch; /* one a ring; numbers of threads and fibers carry it, so those of an earlier ring are void */
    uint32_t number;        /* of the Ractor, as Ruby shows it; 1: the main one */

    /* join.c: the connection. */
    join_socket socket; /* the session's */
    size_t ring_bytes;
    bool is_joined; /* under join.c's lock: a further Ractor's connection stands; who takes this away closes it */

    /* ractors.c, for all but the main one. */
    struct stream *next;         /* in the list of all; set before the stream is in it */
    _Atomic(vm_ractor *) ractor; /* borrowed until its main thread ends: whose stream this is; NULL: nobody's */
    VALUE main_thread;           /* borrowed as long: the Ractor's */
    vm_hook *hooks[2];           /* in the Ractor's list; NULL: not put there by hand */

    uint32_t *depths; /* owned; [0, depth_count): of each fiber by number, where positions must be counted */
    uint32_t depth_count;
    place_state place;
    methods_state methods;
} stream;

/* What all streams of the process share; touched on slow paths only. */
typedef struct capture_shared {
    capture_options options;      /* of the session; set before its first event */
    bool by_target;               /* of the session: hooks are in chosen code alone; set before its first event */
    VALUE main_thread;            /* borrowed: it lives as long as the VM */
    _Atomic uint64_t generation;  /* GC_ENTERs seen: a fiber's memory is freed only in between */
    _Atomic(stream *) gc_open_in; /* the stream with a GC_ENTER that has no GC_EXIT so far; NULL: none */
    _Atomic uint32_t epoch;       /* the last one given */
    _Atomic uint32_t thread_count, fiber_count, span_count; /* the last numbers given: they are unique in the process */
} capture_shared;

extern capture_shared capture;
extern stream capture_main;

static inline uint32_t capture_mode_now(const stream *s) { return atomic_load_explicit(&s->mode, memory_order_relaxed); }

/* Under the lock: ticks, or those of the last event if they are later: ring order is time order. */
static inline uint64_t capture_in_order(stream *s, uint64_t ticks)
{
    if (ticks < s->last_ticks)
        ticks = s->last_ticks;
    s->last_ticks = ticks;
    return ticks;
}

static inline uint64_t capture_ticks(stream *s) { return capture_in_order(s, clock_ticks(s->clock_source)); }

/* Once a process. 0, or -1 with a sentence. GVL held. */
int capture_prepare(const char **why);

/* GVL held, ring in place, mode still off: write what a ring begins with, and switch on. capture_start is for the first ring of
 * a process, capture_open for the further ones. */
void capture_start(stream *s, capture_options options, const ev_clock_def clocks[2]);
void capture_open(stream *s, const ev_clock_def clocks[2]);
void capture_add_hooks(stream *s); /* to the current Ractor; the thread hook to the process */

/* GVL held, in the Ractor of s. Mode off, hooks removed (the thread hook only by the process that added it), users gone. */
void capture_stop(stream *s);
void capture_drain_users(stream *s);

/* Around what a thread without the GVL does with the stream's ring: false when the stream is off, else the ring stays mapped
 * until capture_leave. */
static inline bool capture_enter(stream *s)
{
    /* Both orders are sequential: either capture_drain_users sees this thread, or this thread sees the mode go off. */
    atomic_fetch_add(&s->users, 1);
    if (atomic_load(&s->mode) == CAPTURE_ON)
        return true;
    atomic_fetch_sub(&s->users, 1);
    return false;
}

static inline void capture_leave(stream *s) { atomic_fetch_sub(&s->users, 1); }

/* Child of a fork, async-signal-safe: forget what the parent's other threads held. */
void capture_forget_in_child(void);

/* Lock the ring with room for count slots, waiting or dropping when it is full. false: nothing is held, the event is
 * lost (counted) or the reader has gone. */
bool capture_begin(stream *s, uint64_t count);

/* One event as it is; see capture_begin for what may become of it. */
void capture_push(stream *s, ev_kind kind, uint32_t number, uint32_t place);

typedef struct capture_piece {
    const void *bytes;
    uint32_t count;
} capture_piece;

/* One DEFINE; false when it could not be sent (dropped or detached): the caller must send it again some day. */
bool capture_define(stream *s, ev_define what, uint32_t number, const capture_piece *pieces, int piece_count);
ev_clock_def capture_clock(void);
/* may_wait: false from threads that must not wait for room; the next calibration makes up for one left out. */
void capture_define_clock(stream *s, const ev_clock_def *def, bool may_wait);
void capture_define_process(stream *s);

/* An event of the running Ruby code (span or mark), with a SWITCH if needed. GVL held. */
void capture_note(stream *s, ev_kind kind, uint32_t number, uint32_t place);

/* An event that another hook has heard: as if it had come to ours. For target.c. */
void capture_event(stream *s, const rb_trace_arg_t *arg);

/* The raw hooks, for ractors.c. Two: CRuby takes no hook for its own events and a program's together. */
#define CAPTURE_HOOKS 2
typedef struct capture_hook {
    rb_event_hook_func_t function;
    rb_event_flag_t events;
} capture_hook;
#define CAPTURE_HOOK_FLAGS (RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG)
void capture_hooks(capture_hook hooks[CAPTURE_HOOKS]); /* by the options, and by what is known of the VM's memory */
void capture_add_event_hooks(stream *s);               /* to the current Ractor */

/* A stream as a hook's data argument: to the GC it looks like a Fixnum. */
static inline VALUE capture_as_data(const stream *s) { return (VALUE)(uintptr_t)s | 1; }
static inline stream *capture_of_data(VALUE data) { return (stream *)(uintptr_t)(data - 1); }

#endif
