/* history/history.h - every span of the session, in rows, with summaries: "what is in [t0, t1) at n pixels?"
 * For:     the pipeline (appends), view/ (queries each frame), record/overview.c (asks once).
 * Idea:    a row is one depth of one track: an append-only column of spans that do not overlap, and over it an implicit
 *          tree whose lowest nodes sum 16 spans and whose others sum 4 nodes. A query walks down only where a node is wider
 *          than the asked resolution, so its cost depends on the pixels, not on the spans below.
 *
 *     level 2                 [      node      ] …            busy time, longest span, dominant value
 *     level 1     [ node ][ node ] … 4                          of the children
 *     spans       ||||||||||||||||                             begin, duration, value
 *
 *          A fan-out of 4 rather than 16 above the first level costs 6 % of memory more, and keeps a query within four or so
 *          nodes a pixel where it would otherwise be between one and sixteen, by chance of the zoom.
 * Use:     history_new; history_append for each run of spans; history_rows; history_query; history_delete.
 * Memory:  at most budget_bytes, all told: when it is used up, the oldest spans of the session go first, chunk by chunk, and
 *          their summary nodes stay (history_query then answers with merged nodes where the detail is gone). Once summaries
 *          take more than their share, the oldest low levels of them go in turn, so that older means coarser.
 *          Only when rows themselves fill half of it (hundreds of thousands of short threads) the track that ended first
 *          loses its rows altogether, and is as new.
 *          About 16 bytes a span; 12 more where spans or the pauses between them take more than four seconds.
 * Threads: one at a time: the session's model lock (app/) is held by whoever calls.
 * Units:   CLOCK_MONOTONIC ns.
 * Source:  DESIGN §5; the tree is a B-tree-like implicit aggregation as in mipmaps.
 */
#ifndef RRTRACE_HISTORY_HISTORY_H
#define RRTRACE_HISTORY_HISTORY_H

#include "sim/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct history history;

/* One answer of a query: a single span (span_count == 1) or several that follow one another. */
typedef struct history_node {
    uint64_t begin_ns, end_ns; /* of the first and last span in it */
    uint64_t busy_ns;          /* sum of the spans' durations, exact */
    uint64_t longest_ns;       /* the longest single span */
    uint64_t span_count;
    uint32_t value;            /* the span's value, or the one that takes the most time (by children's dominants) */
    uint32_t flags;            /* HISTORY_… */
    uint64_t of_ns[2];         /* what values 0 and 1 take of busy_ns, to a ten-thousandth of it; of a row that has greater values
                                * than HISTORY_STATE_MAX perhaps less. So of a thread's states (sim_gvl) all shares are known */
} history_node;

#define HISTORY_STATE_MAX 2u /* as sim_gvl has them */

enum {
    HISTORY_UNWOUND = 1,       /* single span: an exception or throw ended it */
    HISTORY_OPEN_AT_START = 2, /* single span: open before tracing began */
    HISTORY_NOT_ENDED = 4,     /* single span: its program ended, or what is known of it, and it had not */
    HISTORY_EVICTED = 8,       /* some of the spans below are no longer in memory (record/ may still have them) */
};

/* How much of its time is busy; of no time: all. */
static inline float history_busy_share(const history_node *n)
{
    return n->end_ns > n->begin_ns ? (float)((double)n->busy_ns / (double)(n->end_ns - n->begin_ns)) : 1;
}

typedef struct history_stats {
    uint64_t span_count;    /* ever appended */
    uint64_t evicted_count; /* spans whose detail is gone, or that were never taken in (memory, insane depth) */
    uint64_t evicted_end_ns; /* detail older than this may be missing; 0: none is */
    size_t used_bytes, budget_bytes;
    uint32_t row_count;     /* in memory, all tracks together */
} history_stats;

/* budget_bytes: at least HISTORY_BUDGET_MIN. 0, -EINVAL or -ENOMEM. */
#define HISTORY_BUDGET_MIN ((size_t)1 << 20)
int history_new(history **out, size_t budget_bytes);
void history_delete(history *h); /* NULL is fine */

/* Append spans of one track: any depths mixed; within a depth in time order and not overlapping (a begin before the
 * row's last end is moved up to it, a span that would be negative becomes empty). track: any number below 2^32 - 1,
 * dense. Depths of 2^20 and more are counted as evicted. 0 or -ENOMEM, when the spans that did not fit are counted as
 * evicted, too. Amortised O(1) a span. */
int history_append(history *h, uint32_t track, const sim_span *spans, size_t span_count);

/* Rows of a track: depths [0, n). */
uint32_t history_rows(const history *h, uint32_t track);

/* What of the row lies in [begin_ns, end_ns), at a resolution (ns; 0: each span by itself): nodes in time order, not overlapping,
 * each the exact sum of spans that follow one another. Together they are all spans with begin < end_ns and end > begin_ns, whole.
 *
 *     spans    |--------| |-| ||| |          |-|   |-------|
 *     answer   [ single ] [ merged]       [single] [ single]       resolution  |<----->|
 *
 * Spans longer than resolution_ns come out single. Shorter ones are merged as long as the whole node, pauses included, is
 * not longer than resolution_ns; so two neighbours together always are longer, and there are at most two nodes a pixel
 * and a few more. Where detail is gone (HISTORY_EVICTED) nodes may be longer, and the first and last may hold spans
 * outside the window.
 * Writes at most max nodes and returns how many; a return of max means that there may be more: ask again from the last
 * node's end (empty spans exactly there are then left out). Looks at about four nodes a pixel where spans are dense, at most
 * 4 * levels + 16 where they are not, whatever number lies below. */
size_t history_query(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                     uint64_t resolution_ns, history_node *out, size_t max);

/* The same for pictures that move: the answer does not depend on where the window begins and ends, so nothing flickers while
 * it slides. Time is cut into cells of resolution_ns, counted from 0, and only what begins in the same cell is merged; at most
 * two merged nodes begin in a cell. When begin_ns and end_ns are multiples of resolution_ns, all that begins a cell after
 * begin_ns or later is answered as for any other such window, unless spans have come or gone in between. The last answer may hold spans that begin
 * after end_ns, by less than a cell. Looks at fewer nodes, as it does not search for the window's exact end. */
size_t history_query_cells(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                           uint64_t resolution_ns, history_node *out, size_t max);

/* Is there a span with begin < end_ns and end > begin_ns (or the outline of one that is gone)? */
bool history_has_spans(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns);

/* First begin and last end over all rows of a track; false: it has no spans. */
bool history_extent(const history *h, uint32_t track, uint64_t *begin_ns, uint64_t *end_ns);

history_stats history_stats_of(const history *h);

#endif
