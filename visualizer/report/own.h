/* report/own.h - what a program has named itself: the sums of its spans and marks (Rrtrace.span, Rrtrace.mark), by name.
 * For:     report.c, which says what of them lies in the time and the threads that are measured.
 * Idea:    a name is one over all processes, once for spans and once for marks. A span waits in a list until its end comes; they
 *          are few, and most end in the reverse order of their begins.
 * Use:     own_begin, own_end, own_mark in the order of a stream's events; own_end_process; then read names; own_free.
 * Memory:  48 bytes a name and 40 a span that is open; names' texts are borrowed from the catalog.
 * Threads: one at a time.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_REPORT_OWN_H
#define RRTRACE_REPORT_OWN_H

#include "base/map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct own_name {
    const char *text; /* any bytes, ended by NUL */
    bool is_mark, some_open;
    uint64_t count;       /* begun, or marked, in the time that is measured */
    uint64_t part_count;  /* spans: those that had some of their time in it */
    uint64_t total_ns, min_ns, max_ns;
} own_name;

typedef struct own_span {
    uint64_t begin_ns;
    uint32_t process, id;
    const char *text;
} own_span;

typedef struct own_sums { /* zeroed: empty */
    VEC(own_name) names;
    VEC(own_span) open;
    map ids; /* of a text -> index of names */
    uint64_t from_ns, to_ns; /* measured: [from_ns, to_ns) */
} own_sums;

void own_free(own_sums *o);

/* 0 or -ENOMEM, as the next two. id: a span's number in its process. */
int own_begin(own_sums *o, uint32_t process, uint32_t id, const char *text, uint64_t at_ns);
int own_end(own_sums *o, uint32_t process, uint32_t id, uint64_t at_ns); /* of one that has not begun: nothing */
int own_mark(own_sums *o, const char *text, uint64_t at_ns);
int own_end_process(own_sums *o, uint32_t process, uint64_t at_ns); /* what is open had not ended */

#endif
