/* sim/reference.h - the simulation as anyone would write it: one event after another. The parallel scan must equal it.
 * For:     tests; and whoever wants to read what the rules of wire/event.h mean.
 * Idea:    an array of frames for each fiber, popped and pushed event by event. No blocks, no summaries, no threads.
 * Use:     reference_new; reference_stream_open; reference_run; reference_stream_close; reference_delete.
 * Memory:  owns its stacks; whole stacks stay in memory.
 * Units:   as sim/sim.h, whose sink and catalog it shares.
 */
#ifndef RRTRACE_SIM_REFERENCE_H
#define RRTRACE_SIM_REFERENCE_H

#include "sim/sim.h"

typedef struct reference reference;

int reference_new(reference **out, const sim_desc *desc); /* workers, lock and unlock are not used */
void reference_delete(reference *r);
uint32_t reference_stream_open(reference *r, uint32_t process);
int reference_run(reference *r, uint32_t stream, const ev *events, size_t event_count);
int reference_stream_close(reference *r, uint32_t stream);
size_t reference_open_frames(const reference *r, uint32_t track, sim_span *out, size_t max);

#endif
