/* wire/event.h - the 16-byte event: the one thing that the traced program and the visualizer must agree on bit by bit.
 * For:     ext/ (writes events), intake/ and sim/ (read them), record/ (stores them).
 * Idea:    everything is one ordered stream of equal slots: calls, returns, GC, threads, and the definitions of names.
 *
 *            63    60 59                                  0
 *           +--------+-------------------------------------+
 *     head  |  kind  |                ticks                |   ev_ticks_of: raw clock, see wire/clock.h
 *           +--------+------------------+------------------+
 *           |  number (u32)             |  place (u32)     |
 *           +---------------------------+------------------+
 *
 *            A DEFINE is a head slot followed by ev_define_slots(place) raw payload slots, which are not events.
 * Use:     ev_make(kind, ticks, number, place); ev_kind_of(e); ev_ticks_of(e); ev_depth_key(e.place).
 * Memory:  none.
 * Threads: values only.
 * Units:   ticks are those of the clock that the ring's header names.
 */
#ifndef RRTRACE_WIRE_EVENT_H
#define RRTRACE_WIRE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ev {
    uint64_t head;   /* kind << 60 | ticks */
    uint32_t number; /* method, thread, fiber or string, by kind */
    uint32_t place;  /* position, thread number, span id or payload bytes, by kind */
} ev;

_Static_assert(sizeof(ev) == 16, "an event is one 16-byte slot");
_Static_assert(offsetof(ev, number) == 8 && offsetof(ev, place) == 12, "fixed layout");

typedef enum ev_kind {
    EV_CALL = 0,       /* number: method; place: position */
    EV_RETURN,         /* number: 0, or the C method when CRuby may be unwinding it (ev_depth_key); place: position */
    EV_GC_ENTER,       /* - */
    EV_GC_EXIT,        /* - */
    EV_THREAD_STARTED, /* number: thread; the next four too */
    EV_THREAD_READY,   /* waits for the GVL from here */
    EV_THREAD_SUSPENDED, /* has let the GVL go */
    EV_THREAD_RESUMED,   /* has the GVL */
    EV_THREAD_EXITED,
    EV_SWITCH,         /* what follows runs here; number: fiber, place: thread */
    EV_DEFINE,         /* number: what << 28 | its number; place: payload bytes */
    EV_SPAN_BEGIN,     /* number: string; place: span id */
    EV_SPAN_END,       /* number: string; place: span id */
    EV_MARK,           /* number: string; place: 0 */
    EV_CUT,            /* every frame at or deeper than place is gone */
    EV_FRAME,          /* already open when tracing began; number: method, place: position */
    EV_KIND_COUNT
} ev_kind;

_Static_assert(EV_KIND_COUNT == 16, "kinds fill the four bits");

#define EV_TICKS_BITS 60
#define EV_TICKS_MASK ((UINT64_C(1) << EV_TICKS_BITS) - 1)

/* ticks is cut to 60 bits: a 4 GHz counter wraps after nine years. */
static inline ev ev_make(ev_kind kind, uint64_t ticks, uint32_t number, uint32_t place)
{
    return (ev){(uint64_t)kind << EV_TICKS_BITS | (ticks & EV_TICKS_MASK), number, place};
}

static inline ev_kind ev_kind_of(ev e) { return (ev_kind)(e.head >> EV_TICKS_BITS); }
static inline uint64_t ev_ticks_of(ev e) { return e.head & EV_TICKS_MASK; }

/* Positions. A frame's position is the low 32 bits of its control frame's address, whose low three bits are free. A C
 * method has no frame that its events can see: they carry the caller's, with the low two bits set. A block's frame
 * (--blocks) has bit 1 set, as the frame of a method made by define_method is also its block's. */
#define EV_POSITION_METHOD 0u
#define EV_POSITION_BLOCK 2u
#define EV_POSITION_C 3u /* bit 0 set: a C method */

static inline bool ev_position_is_c(uint32_t position) { return position & 1u; }

/* Depth order of positions: a deeper frame has the greater key. The VM's stack grows down, so the address is negated;
 * a C method sorts just below its caller. Compare with ev_is_deeper only: a stack may lie across a 4 GiB border. */
static inline uint32_t ev_depth_key(uint32_t position)
{
    return (0u - (position & ~3u)) + (position & 3u);
}

/* Is key a strictly deeper than key b? True as long as one fiber's stack is smaller than 2 GiB. */
static inline bool ev_is_deeper(uint32_t a, uint32_t b) { return (int32_t)(a - b) > 0; }

/* How stacks follow from positions (k = ev_depth_key(place); the rules of CRuby's own behaviour, found by trial):
 *   CALL, FRAME  pop while top >= k, then push k
 *   RETURN, number 0   pop while top > k; if top == k it has returned; if not, it was open before the start
 *   RETURN, number m   (a C method that may be unwound by an exception: CRuby then reports the C method's own frame, one
 *                deeper than at its CALL) pop while top > k; if the top is a C method with number m it has returned
 *   CUT          pop while top >= k
 * Frames popped without a return of their own are 'unwound'. */

/* Definitions. */
typedef enum ev_define {
    EV_DEFINE_METHOD = 1, /* ev_method_def, name, path */
    EV_DEFINE_THREAD,     /* ev_thread_def, name; sent again when the name changes */
    EV_DEFINE_FIBER,      /* ev_fiber_def */
    EV_DEFINE_PROCESS,    /* ev_process_def, argv joined by NUL, Ruby's description */
    EV_DEFINE_STRING,     /* the bytes, of spans and marks */
    EV_DEFINE_CLOCK,      /* ev_clock_def: one calibration */
    EV_DEFINE_DROPPED,    /* ev_dropped_def: events lost since the last one, --on-full=drop only */
    EV_DEFINE_WAITED,     /* ev_waited_def: the ring was full so often since the last one; the visualizer puts it in */
} ev_define;

#define EV_DEFINE_NUMBER_BITS 28
#define EV_NUMBER_MAX ((1u << EV_DEFINE_NUMBER_BITS) - 1) /* of methods, threads, fibers and strings; 0 means none */
#define EV_DEFINE_BYTES_MAX (80u * 1024)  /* a name of 64 KiB, a path, and the fixed part */
#define EV_NAME_BYTES_MAX (64u * 1024)    /* longer names are cut and end in EV_NAME_CUT_MARK */
#define EV_PATH_BYTES_MAX (8u * 1024)
#define EV_NAME_CUT_MARK "\xE2\x80\xA6"   /* … */

static inline uint32_t ev_define_number(ev_define what, uint32_t number)
{
    return (uint32_t)what << EV_DEFINE_NUMBER_BITS | (number & EV_NUMBER_MAX);
}
static inline ev_define ev_define_what(ev e) { return (ev_define)(e.number >> EV_DEFINE_NUMBER_BITS); }
static inline uint32_t ev_define_of(ev e) { return e.number & EV_NUMBER_MAX; }
static inline uint32_t ev_define_slots(uint32_t payload_bytes) { return (payload_bytes + 15u) / 16u; }
/* Of an event with what belongs to it: how far on the next one is. */
static inline uint32_t ev_slots(ev e) { return ev_kind_of(e) == EV_DEFINE ? 1 + ev_define_slots(e.place) : 1; }

/* Method kinds, as users read them in reports. */
enum { EV_METHOD_RUBY = 0, EV_METHOD_C = 1, EV_METHOD_BLOCK = 2 };

typedef struct ev_method_def {
    uint32_t kind;       /* EV_METHOD_… */
    uint32_t line;       /* first line, 0: unknown */
    uint32_t name_bytes; /* qualified name follows this struct, not terminated */
    uint32_t path_bytes; /* path follows the name; 0: none */
} ev_method_def;

typedef struct ev_thread_def {
    uint32_t ractor;     /* 1: the main one */
    uint32_t native_tid; /* 0: unknown */
    uint32_t flags;      /* EV_THREAD_MAIN */
    uint32_t name_bytes; /* follows; 0: the thread has no name */
} ev_thread_def;
enum { EV_THREAD_MAIN = 1 };

typedef struct ev_fiber_def {
    uint32_t thread;
    uint32_t flags; /* 0 */
} ev_fiber_def;

typedef struct ev_process_def {
    uint32_t pid, ppid;
    uint32_t position_source; /* EV_POSITIONS_… */
    uint32_t ractor;          /* whose ring this is; 1: the main one */
    uint64_t realtime_ns;     /* CLOCK_REALTIME when the ring was made */
    uint32_t argv_bytes;      /* follow this struct: arguments, each ended by NUL */
    uint32_t ruby_bytes;      /* follow argv: RUBY_DESCRIPTION */
} ev_process_def;
enum { EV_POSITIONS_FRAME_ADDRESS = 1, EV_POSITIONS_COUNTED = 2 };

typedef struct ev_clock_def {
    uint64_t ticks;
    uint64_t monotonic_ns; /* CLOCK_MONOTONIC at the same moment */
    uint64_t realtime_ns;  /* CLOCK_REALTIME likewise */
    uint32_t source;       /* wire/clock.h: CLOCK_SOURCE_… */
    uint32_t reserved;
} ev_clock_def;

typedef struct ev_dropped_def {
    uint64_t count;
} ev_dropped_def;

typedef struct ev_waited_def {
    uint64_t count; /* times that a writer waited for room */
} ev_waited_def;

_Static_assert(sizeof(ev_method_def) == 16 && sizeof(ev_thread_def) == 16 && sizeof(ev_fiber_def) == 8, "fixed layout");
_Static_assert(sizeof(ev_process_def) == 32 && sizeof(ev_clock_def) == 32 && sizeof(ev_dropped_def) == 8 &&
                   sizeof(ev_waited_def) == 8, "fixed layout");
_Static_assert(sizeof(ev_method_def) + EV_NAME_BYTES_MAX + EV_PATH_BYTES_MAX <= EV_DEFINE_BYTES_MAX, "a method fits");

#endif
