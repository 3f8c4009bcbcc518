/* report/report.h - what a recording adds up to: methods, who called whom, threads, GC, the longest calls, what programs have named themselves.
 * For:     app/command_report.c fills it from a file; report/text.h, json.h and csv.h write it.
 * Idea:    sim/walk.h tells of every call with what lies below it, so all times are sums of measured ones:
 *            self   a call's time less the time of the calls it made on its own stack
 *            total  a call's time; of calls of one method within each other on one stack the outermost only
 *            arc    the same two for the calls of a method from one caller; of a recursive arc the outermost only
 *          A method is what users see as one: name, kind, path and line, over all processes.
 * Use:     report_new; if report_needs_names, report_look_at_name for all definitions; report_stream_open, report_run,
 *          report_stream_close; report_finish; then read report_model_of; report_delete.
 * Memory:  owns all; some 100 bytes a method, an arc and a thread, and the open stacks. Nothing grows with the calls.
 * Threads: one at a time.
 * Units:   CLOCK_MONOTONIC ns; durations in ns.
 *
 * What is counted. Times exclude nothing: a call that waits goes on. calls are CALL events; frames that were open when
 * tracing began count with their time, but are no calls. What is open at a stream's end counts up to there. min and max are
 * over all activations, as far as they were seen.
 * Filters combine: process, thread and time choose what is measured (a call that lies across from_ns or to_ns counts with
 * the part inside, and is counted as a call where it began); method chooses, at the end, what is shown: methods, arcs
 * from or to one, and long calls. It changes no figure.
 */
#ifndef RRTRACE_REPORT_REPORT_H
#define RRTRACE_REPORT_REPORT_H

#include "report/own.h"
#include "sim/catalog.h"
#include "sim/span.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_NONE UINT32_MAX

typedef struct report report;

typedef struct report_desc {
    uint64_t origin_ns;      /* when the recording begins; 0: with the first event */
    uint64_t from_ns, to_ns; /* measure [from_ns, to_ns) only; to_ns 0: no end */
    uint32_t pid;            /* this process alone; 0: all */
    const char *thread;      /* threads with this number, else with this in a name they had; NULL: all. Borrowed, as method */
    const char *method;      /* base/pattern.h; NULL: all */
    size_t longest_count;    /* how many of the longest calls to keep */
} report_desc;

typedef struct report_method {
    const catalog_method *is; /* name, kind, path, line */
    bool is_shown;            /* the method filter */
    uint64_t calls, activations; /* activations: calls, and frames open at the start */
    uint64_t total_ns, self_ns, min_ns, max_ns;
    uint64_t sum_ns; /* of all activations, those within each other too: what a mean is made of */
} report_method;

typedef struct report_arc {
    uint32_t caller, callee; /* methods; caller REPORT_NONE: at the bottom of its stack */
    uint64_t calls, activations, total_ns, self_ns;
} report_arc;

typedef struct report_thread {
    uint32_t process; /* of report_model.processes */
    uint32_t id;      /* the catalog's: name, number, ractor */
    bool is_seen;     /* it ran: some event of its own came */
    bool is_counted;  /* the filters */
    uint64_t gvl_ns[3]; /* by sim_gvl */
    uint64_t calls;
    uint32_t max_depth; /* frames open at once on one stack */
} report_thread;

typedef struct report_process {
    uint32_t id; /* the catalog's: pid, ppid, command */
    bool is_shown;
    uint64_t begin_ns, end_ns; /* first and last event; 0: none */
    uint64_t gc_count, gc_total_ns, gc_longest_ns;
} report_process;

typedef struct report_long_call {
    uint64_t begin_ns, duration_ns; /* as far as they lie in the time measured */
    uint32_t method, thread, depth; /* thread: the catalog's id */
    bool is_open; /* it had not ended */
} report_long_call;

typedef struct report_model {
    const catalog *catalog;
    const report_method *methods;
    const report_arc *arcs;
    const report_thread *threads;     /* seen and counted; by process, in order of appearance */
    const report_process *processes;  /* those shown, in order of appearance */
    const report_long_call *longest;  /* longest first */
    const own_name *own;              /* the programs' own spans and marks, in order of appearance */
    size_t method_count, arc_count, thread_count, process_count, longest_count, own_count;
    uint64_t begin_ns, end_ns; /* what was measured: from the origin to the last event, inside the filter */
    uint64_t origin_ns;        /* when the recording begins */
    uint64_t event_count;      /* of that time; of all processes and threads, as the next two, which are of all time */
    uint64_t dropped;
    uint64_t waited; /* times that programs waited for room in their buffers */
} report_model;

/* 0, or -EINVAL or -ENOMEM with one line in error. */
int report_new(report **out, const report_desc *desc, char *error, size_t error_bytes);
void report_delete(report *r); /* NULL is fine */

/* A thread may get its name late: when they are chosen by name, look at all definitions before the first stream is opened.
 * Streams are numbered in the order in which they will be opened. payload: head.place bytes. */
bool report_needs_names(const report *r);
int report_look_at_name(report *r, uint32_t stream, ev head, const void *payload); /* 0 or -ENOMEM */

uint32_t report_stream_open(report *r, uint32_t pid); /* REPORT_NONE: memory is out */
int report_run(report *r, uint32_t stream, const ev *events, size_t event_count); /* 0 or -ENOMEM */
int report_stream_close(report *r, uint32_t stream, bool has_ended); /* has_ended: the program has, not the recording alone */

int report_finish(report *r); /* 0 or -ENOMEM */
report_model report_model_of(const report *r); /* after report_finish; borrowed until report_delete */

#endif
