/* record/prefix.h - a stream's beginning made up afterwards, for a recording that starts in the middle of a session.
 * For:     app/: the events that go into the file before the first real ones.
 * Idea:    what the extension sends when tracing begins in the middle of a program, made from what is known by now: the clock,
 *          all names, the frames that are open as FRAMEs, who holds the GVL. So the recording is as self-contained as any.
 * Use:     sim_stream_state(…, &state); prefix_make(&events, catalog, process, &state); record_writer_events.
 * Memory:  16 bytes an event; a name takes its bytes. The caller owns out.
 * Threads: the model lock is held.
 */
#ifndef RRTRACE_RECORD_PREFIX_H
#define RRTRACE_RECORD_PREFIX_H

#include "base/vec.h"
#include "sim/catalog.h"
#include "sim/state.h"
#include "wire/event.h"

typedef VEC(ev) prefix_events;

/* Appends to *out. 0 or -ENOMEM. Fibers that ended and have nothing open are left out. */
int prefix_make(prefix_events *out, const catalog *c, uint32_t process, const sim_state *state);

#endif
