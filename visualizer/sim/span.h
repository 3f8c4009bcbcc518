/* sim/span.h - what the simulation gives out: finished spans, grouped by track.
 * For:     history/ (keeps them), record/ and report/ (count them), view/ (draws open frames).
 * Idea:    a track is one stack over time: a fiber's calls, a thread's GVL states, or a process's GC pauses. Every span
 *          says on which row (depth) of its track it lies; the spans of one row never overlap and come in time order.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_SIM_SPAN_H
#define RRTRACE_SIM_SPAN_H

#include <stdint.h>

#define SIM_TRACK_NONE UINT32_MAX

typedef enum sim_closed { SIM_CLOSED_RETURN = 0, SIM_CLOSED_UNWOUND, SIM_CLOSED_END, SIM_OPEN } sim_closed;

typedef struct sim_span {
    uint64_t begin_ns, end_ns; /* begin_ns <= end_ns */
    uint32_t value;            /* calls: method number of the track's process; GVL: sim_gvl; GC: 0 */
    uint32_t depth;            /* row: frames below it on its stack; 0 is the bottom */
    uint8_t closed;            /* sim_closed */
    uint8_t open_at_start;     /* 1: it was open before tracing began, begin_ns is the start of tracing */
    uint8_t reserved[6];
} sim_span;

_Static_assert(sizeof(sim_span) == 32, "half a cache line");

/* What a program has marked itself: not of any stack. */
typedef struct sim_note {
    uint64_t at_ns;
    uint32_t kind;            /* EV_MARK, EV_SPAN_BEGIN or EV_SPAN_END */
    uint32_t process, thread; /* ids of the catalog; thread SIM_TRACK_NONE: no SWITCH has told it */
    uint32_t string, span;    /* numbers of the process; span: 0 for marks */
    uint32_t reserved;        /* 0 */
} sim_note;

/* value of a thread's GVL spans, all at depth 0. */
typedef enum sim_gvl { SIM_GVL_RUNNING = 0, SIM_GVL_WAITING, SIM_GVL_BLOCKED } sim_gvl;

#endif
