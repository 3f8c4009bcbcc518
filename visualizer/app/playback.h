/* app/playback.h - a recording put into a session's model: who was there at once, how it looked next, every span by and by.
 * For:     session.c, for `rrtrace view`.
 * Idea:    nothing waits for a replay from the start. What the window needs comes in the order of its cost:
 *            at once       processes, and from the index how many events each chunk of time has
 *            then          names, threads and fibers with their lives: definitions, and each stream's last state played on to
 *                          its end
 *            then          the recorder's overview of all rows, as an outline (history/outline.h); a recording without one, as
 *                          a killed recorder leaves it, has the calls that were open at its end
 *            by and by     all of it from the begin, through the parallel scan into the history, which takes the outline's
 *                          place row by row, into the methods' figures and into the program's own marks; recall.h meanwhile
 *                          brings what is looked at
 * Use:     playback_new with the lock free; playback_go_on when there is a first picture; playback_status_of; playback_delete
 *          before what it was given goes.
 * Memory:  a chunk's events, stacks, a catalog's copy of the replay's names, the outline (outline_bytes_max).
 * Threads: one of its own and its workers, all less important than the window's; they take the model lock for what they write.
 *          playback_go_on and playback_status_of from any.
 * Errors:  damaged chunks are left out; record_info.problem says so. Out of memory: what is there stays.
 */
#ifndef RRTRACE_APP_PLAYBACK_H
#define RRTRACE_APP_PLAYBACK_H

#include "history/activity.h"
#include "history/figures.h"
#include "history/history.h"
#include "history/notes.h"
#include "record/reader.h"
#include "sim/catalog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct playback playback;

typedef struct playback_desc { /* all borrowed until playback_delete */
    record_reader *reader;
    catalog *catalog;  /* empty; its process ids are the streams' places in the file */
    history *history;  /* empty */
    activity *activity;/* empty, or NULL, as the next two */
    figures *figures;
    notes *notes;
    unsigned worker_count;
    size_t outline_bytes_max;
    void (*lock)(void *context); /* the model lock */
    void (*unlock)(void *context);
    void *context;
} playback_desc;

typedef struct playback_status {
    bool is_outlined;   /* names and outline are there */
    double share;       /* of the recording that is in the history: 1 when all is done */
    uint64_t done_ns;   /* all that ended before this is */
    uint64_t dropped;   /* events that programs have dropped, all told once it is outlined */
    int error;          /* 0, or -ENOMEM: it stopped there */
} playback_status;

int playback_new(playback **out, const playback_desc *desc); /* 0 or -errno */
void playback_delete(playback *p);                           /* NULL is fine */
/* The last and longest step waits for this, or a few seconds: the first picture comes before it. */
void playback_go_on(playback *p);
playback_status playback_status_of(const playback *p);

#endif
