/* history/figures.h - per method, over the whole session: how often it was called, and how long that took.
 * For:     the pipeline (hands it the same spans as history_append), view/ (the selected method's figures).
 * Idea:    spans of a track come in the order of their ends, so what a call has called comes before it, one depth below:
 *
 *            depth 2      [a] [b]     [c]         child_ns[2] sums a and b until d ends: d's self time is its own less that sum,
 *            depth 1     [   d    ]  [   e   ]    and child_ns[2] starts again at 0 for e
 *
 *          It keeps sums only, so it costs some ns a span and forgets nothing when history/ lets detail go.
 * Use:     figures_new; figures_take for each run of spans; figures_of; figures_delete.
 * Memory:  32 bytes for the highest method number of each process, 8 for the deepest stack of each fiber that has frames. When
 *          memory is out, what does not fit is left out: figures_of then counts too little.
 * Threads: one at a time: the session's model lock (app/) is held by whoever calls.
 * Units:   ns.
 */
#ifndef RRTRACE_HISTORY_FIGURES_H
#define RRTRACE_HISTORY_FIGURES_H

#include "sim/catalog.h"
#include "sim/span.h"

#include <stddef.h>
#include <stdint.h>

typedef struct figures figures;

/* Of finished calls. A frame that was open at the start counts with its time, but is no call. */
typedef struct figures_method {
    uint64_t calls;
    uint64_t sum_ns;  /* of all calls, those within each other too */
    uint64_t self_ns; /* less what they called on their own stack */
    uint64_t longest_ns;
} figures_method;

_Static_assert(sizeof(figures_method) == 32, "two a cache line");

int figures_new(figures **out, const catalog *c); /* c: borrowed. 0 or -ENOMEM */
void figures_delete(figures *f);                  /* NULL is fine */

/* As history_append: one track's spans in the order of their ends. Those of GVL and GC tracks are not looked at. */
void figures_take(figures *f, uint32_t track, const sim_span *spans, size_t span_count);

/* All zero: no call of it has ended. */
figures_method figures_of(const figures *f, uint32_t process, uint32_t method);
/* Numbers below this are worth asking for. */
uint32_t figures_limit(const figures *f, uint32_t process);

#endif
