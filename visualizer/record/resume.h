/* record/resume.h - a stream of a recording taken up at one of its chunks.
 * For:     recall.c and app/playback.c, which replay a recording from the middle.
 * Use:     number = resume_stream(…, chunk, …); then sim_run of that chunk's events and of those behind it; sim_stream_close.
 * Threads: one; lock (may be NULL: nobody else reads the catalog) guards what the simulation's catalog is.
 */
#ifndef RRTRACE_RECORD_RESUME_H
#define RRTRACE_RECORD_RESUME_H

#include "record/reader.h"
#include "sim/sim.h"

/* A new stream of s, as it stands before the chunk's first event: where the chunk's state says, or, if it has none, at its
 * beginning. process: its id in the catalog of s. SIM_STREAM_NONE: memory is out, or the state can't be read. */
uint32_t resume_stream(record_reader *r, uint32_t chunk, sim *s, uint32_t process, uint32_t clock_source,
                       void (*lock)(void *context), void (*unlock)(void *context), void *context);

#endif
