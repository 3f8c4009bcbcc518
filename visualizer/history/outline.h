/* history/outline.h - what a row looks like from afar, kept as nodes: what stands in where a history has no spans yet.
 * For:     record/overview.h and app/playback.h (fill it from a file); history_query answers from it behind a row's last span.
 * Idea:    a recording is read into a history from its begin; until that has come past, what an overview says of the rest is
 *          shown. Row by row the border is the end of the last span that the history has:
 *
 *            |||| || |||||||  history: spans   | [  node ][ node ]   [    node    ]  outline
 *                                              ^ last end
 *
 *          A node is the exact sum of the spans that it stands for, as in history.h; one that lies across the border is cut.
 * Use:     outline_new; outline_add row by row, in time's order; history_set_outline; outline_delete after it was set to NULL.
 * Memory:  64 bytes a node.
 * Threads: one at a time, as history.h.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_HISTORY_OUTLINE_H
#define RRTRACE_HISTORY_OUTLINE_H

#include "history/history.h"

typedef struct outline outline;

int outline_new(outline **out);  /* 0 or -ENOMEM */
void outline_delete(outline *o); /* NULL is fine */

/* The next node of a row: behind those that it has, else it is left out. 0 or -ENOMEM. */
int outline_add(outline *o, uint32_t track, uint32_t depth, const history_node *n);

uint32_t outline_rows(const outline *o, uint32_t track);
size_t outline_bytes(const outline *o);
/* As history_query or, by_cells, history_query_cells, but nothing before from_ns. */
size_t outline_query(const outline *o, uint32_t track, uint32_t depth, uint64_t from_ns, uint64_t begin_ns, uint64_t end_ns,
                     uint64_t resolution_ns, bool by_cells, history_node *out, size_t max);

/* Answer from it, too. o: borrowed until the next call; NULL: no more. */
void history_set_outline(history *h, const outline *o);

#endif
