/* app/recording.h - a session's file: begun at any moment, fed while events come, ended when it is told to.
 * For:     session.c.
 * Idea:    the simulation's thread owns the writer and does all there is to do, between two batches of events; others only say
 *          what they want, and read what has become of it.
 *
 *            window ──wanted: yes/no──> simulation: begin … events, states … end ──news──> window
 *
 *          A recording that begins with the session has all of its events. One that begins later has first, for each stream, what
 *          record/prefix.h makes up; not at once, but when the stream's next events are known, as its time must lie between
 *          the last events and those, and may be no earlier than the recording where nothing has happened for long.
 * Use:     recording_new; recording_open for one from the start; recording_attach; then on the simulation's thread
 *          recording_serve now and then, recording_stream_begins, recording_events before sim_run and recording_state after it,
 *          recording_stream_ends. Meanwhile, on the window's: recording_want, recording_status_of, recording_take_news.
 *          recording_end when the simulation's thread has ended; recording_delete.
 * Memory:  a writer's; 32 bytes a stream.
 * Threads: as said. The mutex guards what both sides see, and is never held while anything is written.
 * Errors:  a recording that can't be begun or gone on with is news, and the session goes on.
 */
#ifndef RRTRACE_APP_RECORDING_H
#define RRTRACE_APP_RECORDING_H

#include "history/history.h"
#include "sim/catalog.h"
#include "sim/sim.h"
#include "wire/event.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define RECORDING_LINE_BYTES (PATH_MAX + 512)

typedef struct recording recording;

typedef struct recording_desc {
    catalog *catalog; /* borrowed, as the next */
    sim *sim;
    void (*lock)(void *context); /* the model lock */
    void (*unlock)(void *context);
    void *context;
} recording_desc;

typedef struct recording_status {
    const char *path;    /* of the file that is written, or was last; NULL: there was none. Until the next call, as the next */
    const char *problem; /* one line: why the last one could not go on; NULL: it could */
    uint64_t bytes;      /* of that file by now */
    bool is_on;
} recording_status;

typedef enum recording_what { RECORDING_BEGUN, RECORDING_WRITTEN, RECORDING_FAILED } recording_what;

typedef struct recording_news {
    recording_what what;
    uint64_t bytes;                  /* WRITTEN: of the file */
    uint64_t waits, dropped;         /* WRITTEN: as recording_say_written, since it was begun */
    char line[RECORDING_LINE_BYTES]; /* BEGUN, WRITTEN: its path; FAILED: one line: what, why */
} recording_news;

/* A recording needs a name even when nobody gave one: rrtrace-TIME-PID.rrt in that folder, or where it can't be written, in the
 * temporary one. No file of that name is there yet. out[bytes]. */
void recording_name(char *out, size_t bytes, const char *folder, pid_t pid);

/* The line that says where it lies. waits: how often programs have waited for room in their buffers meanwhile; dropped: events
 * that they have dropped instead. */
void recording_say_written(FILE *out, const char *path, uint64_t bytes, uint64_t waits, uint64_t dropped);

int recording_new(recording **out, const recording_desc *desc); /* 0 or -ENOMEM */
void recording_delete(recording *r);                            /* NULL is fine; ends nothing */

/* Before the simulation's thread starts. From the session's start into path; goes_on: behind what is in it. 0, or -errno and one line. */
int recording_open(recording *r, const char *path, bool goes_on, char *error, size_t error_bytes);
void recording_attach(recording *r, const history *h); /* borrowed; always */
uint32_t recording_first_stream(const recording *r);   /* what the session's first stream is called in that file */

/* The simulation's thread. stream: the session's numbers, dense. */
bool recording_serve(recording *r); /* true: a recording has ended */
/* number: of the simulation, SIM_STREAM_NONE: it has none; process: in the catalog. */
void recording_stream_begins(recording *r, uint32_t stream, uint32_t number, uint32_t process, uint32_t pid, uint32_t clock_source);
/* count 0: the stream is about to end. Before the simulation knows of either. */
void recording_events(recording *r, uint32_t stream, const ev *events, uint32_t count);
void recording_state(recording *r, uint32_t stream); /* after sim_run of just these */
void recording_stream_ends(recording *r, uint32_t stream, const char *problem, bool is_last); /* is_last: none is open now */
void recording_end(recording *r); /* if one is going on */

/* Any thread; path: begin one there, if none is going on; NULL: end it. Done by and by: recording_take_news. */
void recording_want(recording *r, const char *path);
void recording_wait_for_end(recording *r); /* after recording_want(r, NULL): until it is written */
recording_status recording_status_of(recording *r); /* one thread, as the next */
bool recording_take_news(recording *r, recording_news *out); /* the oldest that was not taken; false: there is none */

#endif
