/* sim/walk.h - goes through streams event by event and tells a listener what opens and what closes.
 * For:     report/ and export/: whoever needs a call together with all that lies below it on its stack.
 * Idea:    the rules of wire/event.h on plain arrays of frames, one for each fiber, as sim/reference.h has them; sim/sim.h is
 *          faster on many cores and gives out finished spans only. All three agree on what they tell.
 *
 *            events ──> opened(fiber) … opened … closed(fiber, frame) … closed      frames.items[0 … count) lie below
 * Use:     walk_new; stream = walk_stream_open(process of the catalog); walk_run any number of times; walk_stream_close;
 *          walk_delete.
 * Memory:  owns the stacks, 32 bytes an open frame; those of fibers that have ended are given back.
 * Threads: one at a time.
 * Units:   ticks in, CLOCK_MONOTONIC ns out. Ids are the catalog's.
 */
#ifndef RRTRACE_SIM_WALK_H
#define RRTRACE_SIM_WALK_H

#include "base/vec.h"
#include "sim/catalog.h"
#include "sim/span.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_OPEN_AT_START 0x80000000u /* in method: from a FRAME event, which is no call */

typedef struct walk_frame {
    uint64_t begin_ns;
    uint64_t below_ns; /* the listener's; 0 when the frame opens */
    uint32_t key;      /* ev_depth_key */
    uint32_t method;   /* number of its process, with WALK_OPEN_AT_START */
    uint32_t mark[2];  /* the listener's */
} walk_frame;

_Static_assert(sizeof(walk_frame) == 32, "half a cache line");

typedef struct walk_fiber {
    VEC(walk_frame) frames; /* bottom first */
    uint32_t id, thread, process;
    bool is_known; /* false: no event of it yet */
} walk_fiber;

/* Any of them may be NULL. Those that return int: 0, or -errno, which walk_run then returns. */
typedef struct walk_listener {
    /* A frame was pushed: the last of fiber->frames. */
    int (*opened)(void *context, walk_fiber *fiber);
    /* A frame was popped; fiber->frames are those below it. end_ns >= frame->begin_ns. */
    int (*closed)(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed closed);
    /* A state of a thread, or a GC pause, is over. States without length are left out, pauses are not. */
    void (*gvl)(void *context, uint32_t thread, sim_gvl state, uint64_t begin_ns, uint64_t end_ns);
    void (*gc)(void *context, uint32_t process, uint64_t begin_ns, uint64_t end_ns);
    /* A thread event, or EV_SWITCH: what follows runs there. Comes before what it brings about. */
    int (*thread)(void *context, uint32_t thread, ev_kind kind);
    /* The program has marked something itself. */
    int (*note)(void *context, const sim_note *note);
    /* The catalog has taken a definition over. */
    void (*defined)(void *context, uint32_t process, ev head);
    void *context;
} walk_listener;

typedef struct walk walk;

int walk_new(walk **out, catalog *c, const walk_listener *listener); /* both borrowed until walk_delete. 0 or -ENOMEM */
void walk_delete(walk *w);                                           /* NULL is fine */

#define WALK_STREAM_NONE UINT32_MAX
uint32_t walk_stream_open(walk *w, uint32_t process); /* WALK_STREAM_NONE: memory is out */
/* Consecutive events; a DEFINE whose payload is not all there is left out. 0, -ENOMEM, or what the listener said. */
int walk_run(walk *w, uint32_t stream, const ev *events, size_t event_count);
/* What is open closes at the stream's last time: SIM_CLOSED_END when the program has ended, SIM_OPEN when that is not known. */
int walk_stream_close(walk *w, uint32_t stream, sim_closed closed);

typedef struct walk_stream_info {
    uint64_t begin_ns, end_ns; /* of the first and last event that is no definition; 0: there was none */
    uint64_t event_count;      /* payload not counted; those in walk_count's time */
} walk_stream_info;
walk_stream_info walk_stream_info_of(const walk *w, uint32_t stream);
/* Count only events of [from_ns, to_ns). Before walk_run. */
void walk_count(walk *w, uint64_t from_ns, uint64_t to_ns);

#endif
