/* history/notes.h - what the program itself has marked: Rrtrace.mark and Rrtrace.span.
 * For:     the pipeline (hands in sim_notes), view/ (flags and bars), reports that want them.
 * Idea:    there are few of them, so they are kept as they come, newest NOTES_MAX of each; a span is one from its begin on.
 * Use:     notes_new; notes_take as sim_desc.note; notes_marks, notes_spans; notes_delete.
 * Memory:  at most NOTES_MAX marks of 24 and spans of 32 bytes; more push the oldest out.
 * Threads: one at a time: the session's model lock (app/) is held by whoever calls.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_HISTORY_NOTES_H
#define RRTRACE_HISTORY_NOTES_H

#include "sim/span.h"

#include <stddef.h>
#include <stdint.h>

#define NOTES_MAX 8192u

typedef struct notes notes;

typedef struct notes_mark {
    uint64_t at_ns;
    uint32_t process, thread; /* ids; thread SIM_TRACK_NONE: not known */
    uint32_t string;          /* for catalog_string_of */
} notes_mark;

typedef struct notes_span {
    uint64_t begin_ns, end_ns; /* end_ns UINT64_MAX: open */
    uint32_t process, thread;
    uint32_t string, id;
} notes_span;

int notes_new(notes **out); /* 0 or -ENOMEM */
void notes_delete(notes *n); /* NULL is fine */

void notes_take(notes *n, const sim_note *note); /* what does not fit into memory is left out */
/* The process is over: its open spans end. */
void notes_end_process(notes *n, uint32_t process, uint64_t now_ns);

/* In order of time; spans of their begins, at least within a process. Valid until the next notes_take. */
const notes_mark *notes_marks(const notes *n, size_t *count);
const notes_span *notes_spans(const notes *n, size_t *count);

#endif
