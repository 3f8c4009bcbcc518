/* sim/state.h - where a stream stands between two events: enough to replay it from there instead of from its start.
 * For:     record/ (stores it before a chunk, a seek point), report/ and view/ (start from it).
 * Idea:    all that the events after that point are measured against: the open frames of each fiber, which fiber runs, the
 *          GVL's and GC's states, the clock's line. Names are not in it: they are in the definitions before that point.
 *
 *            fibers   [ 7: 2 frames ][ 8: 3 frames ]         in the order of the catalog's lists
 *            frames   [ f f ][ f f f ]                       lowest first
 * Use:     sim_stream_state(s, stream, &state); …; stream = sim_stream_resume(other, process, clock_source, &state);
 *          sim_state_free(&state). A zeroed sim_state is an empty one; filling it again reuses its arrays.
 * Memory:  16 bytes a frame, 24 a fiber, 40 a thread.
 * Threads: both calls with the model lock held; sim_stream_state not while sim_run is at work.
 * Units:   CLOCK_MONOTONIC ns; numbers are the stream's own, not ids.
 */
#ifndef RRTRACE_SIM_STATE_H
#define RRTRACE_SIM_STATE_H

#include "base/vec.h"
#include "sim/timebase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

#define SIM_STATE_OPEN_AT_START 0x80000000u /* in sim_state_frame.method: a FRAME event */
#define SIM_STATE_CLOSED UINT32_MAX /* in gc and gvl: nothing is open */

typedef struct sim_state_frame {
    uint64_t begin_ns;
    uint32_t position;
    uint32_t method; /* with SIM_STATE_OPEN_AT_START */
} sim_state_frame;

typedef struct sim_state_fiber {
    uint64_t begin_ns, end_ns; /* as catalog_fiber */
    uint32_t number;
    uint32_t frame_count; /* of frames, after those of the fibers before it */
} sim_state_fiber;

typedef struct sim_state_thread {
    uint64_t begin_ns, end_ns; /* as catalog_thread */
    uint64_t gvl_since_ns;
    uint32_t gvl; /* sim_gvl, or SIM_STATE_CLOSED */
    uint32_t number;
    uint32_t fiber_count; /* of fibers, likewise */
    uint32_t reserved;
} sim_state_thread;

typedef struct sim_state {
    timebase clock;
    uint64_t last_ticks, last_ns; /* of the event before this point */
    uint64_t process_begin_ns, process_event_count;
    uint64_t gc_since_ns;
    uint32_t gc; /* 0: a GC runs; SIM_STATE_CLOSED: none */
    bool is_placed;
    uint32_t current_thread, current_fiber; /* where events run until the next SWITCH; of no meaning unless is_placed */
    VEC(sim_state_thread) threads;
    VEC(sim_state_fiber) fibers;
    VEC(sim_state_frame) frames;
} sim_state;

/* What the state is of, after the last sim_run. 0 or -ENOMEM. */
int sim_stream_state(const struct sim *s, uint32_t stream, sim_state *out);
/* A new stream that stands where state says; process: its id in the catalog, whose threads and fibers get the state's times.
 * Definitions of before are given to the catalog by whoever has them. SIM_STREAM_NONE: memory is out, or the state is none. */
uint32_t sim_stream_resume(struct sim *s, uint32_t process, uint32_t clock_source, const sim_state *state);

/* As somebody has it who knows of nothing before begin_ns: what was there already began then, calls as frames that were open at the
 * start; threads that had ended are gone. */
void sim_state_begin_at(sim_state *state, uint64_t begin_ns);

void sim_state_free(sim_state *state);
/* Equal in every field; for tests. */
bool sim_state_equal(const sim_state *a, const sim_state *b);

#endif
