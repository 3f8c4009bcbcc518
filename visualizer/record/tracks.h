/* record/tracks.h - which track of the session is a track of a replay.
 * For:     recall.c and app/playback.c, which replay a recording with a catalog of their own.
 * Idea:    both catalogs number their processes alike; threads and fibers are found by their numbers in the process.
 * Use:     tracks_init; tracks_of for each track that spans come on; tracks_free.
 * Memory:  4 bytes a track.
 * Threads: one; lock (may be NULL: it is held already) guards the session's catalog.
 */
#ifndef RRTRACE_RECORD_TRACKS_H
#define RRTRACE_RECORD_TRACKS_H

#include "base/vec.h"
#include "sim/catalog.h"
#include "sim/span.h"

typedef struct tracks {
    const catalog *own, *session; /* borrowed */
    void (*lock)(void *context);
    void (*unlock)(void *context);
    void *context;
    VEC(uint32_t) ids; /* of the replay -> of the session; SIM_TRACK_NONE: the session has none such */
    uint32_t known_threads, known_fibers, known_processes;
} tracks;

void tracks_init(tracks *t, const catalog *own, const catalog *session, void (*lock)(void *), void (*unlock)(void *), void *context);
void tracks_free(tracks *t);
/* false: memory is out. *id: SIM_TRACK_NONE when the session has no such thread or fiber. */
bool tracks_of(tracks *t, uint32_t own_track, uint32_t *id);

#endif
