/* sim/catalog.h - what the numbers in a session mean: processes, threads, fibers, methods, strings.
 * For:     sim/ fills it from DEFINE events; view/, report/ and export/ read names from it.
 * Idea:    flat arrays addressed by dense ids over the whole session; numbers of a stream are mapped to them per process.
 *          Method numbers are per process, so that a span needs no mapping: catalog_method(c, process, number).
 * Use:     catalog_new; catalog_define for every DEFINE of a stream; the getters; catalog_delete.
 * Memory:  owns all it holds; strings are copied, ended by NUL besides their length. Nothing is removed before the end.
 * Threads: one at a time: the session's model lock (app/) is held by whoever calls. Returned pointers stay valid until
 *          catalog_delete, but the fields of processes, threads and fibers change under the lock.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_SIM_CATALOG_H
#define RRTRACE_SIM_CATALOG_H

#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CATALOG_NONE UINT32_MAX

typedef struct catalog catalog;

typedef struct catalog_method {
    const char *name; /* qualified, "Mod::Klass#meth"; any bytes, name_bytes of them, NUL behind */
    const char *path; /* "" when unknown */
    uint32_t name_bytes, path_bytes;
    uint32_t line; /* 0: unknown */
    uint32_t kind; /* EV_METHOD_… */
    uint32_t hash; /* of the name with digits left out: the same method has the same colour in every process */
} catalog_method;

typedef struct catalog_process {
    uint32_t pid, ppid;   /* as the program sees them */
    uint32_t ractor;      /* 1: the main one; others are streams of their own in the same process */
    const char *command;  /* argv joined by spaces */
    const char *ruby;     /* RUBY_DESCRIPTION */
    uint32_t position_source;
    uint32_t gc_track;    /* depth 0: GC pauses */
    uint32_t first_thread;   /* id of its first thread, CATALOG_NONE: none; then catalog_thread.next */
    uint64_t begin_ns, end_ns; /* end_ns 0: still running */
    uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when it began */
    uint64_t event_count, dropped;
    uint64_t waited; /* times that it found its ring full */
} catalog_process;

typedef struct catalog_thread {
    uint32_t process;     /* id */
    uint32_t number;      /* in its process, from 1 */
    uint32_t ractor, native_tid;
    bool is_main;
    const char *name;     /* "" when it has none */
    uint32_t gvl_track;   /* depth 0: sim_gvl spans */
    uint32_t first_fiber; /* id, CATALOG_NONE: none; then catalog_fiber.next */
    uint32_t next;        /* id of the next thread of the process in order of appearance, or CATALOG_NONE */
    uint64_t begin_ns, end_ns; /* first sign of life; EXITED, 0: alive */
} catalog_thread;

typedef struct catalog_fiber {
    uint32_t thread;  /* id */
    uint32_t number;  /* in its process, from 1 */
    uint32_t track;   /* its calls */
    uint32_t next;    /* id of the next fiber of the thread, or CATALOG_NONE */
    uint64_t begin_ns, end_ns; /* first and last event seen */
} catalog_fiber;

int catalog_new(catalog **out); /* 0 or -ENOMEM */
void catalog_delete(catalog *c); /* NULL is fine */

/* Tracks are numbered over the session: 0, 1, 2, … */
uint32_t catalog_track_count(const catalog *c);

uint32_t catalog_process_count(const catalog *c);
uint64_t catalog_event_count(const catalog *c); /* of all processes; a definition is one, however many slots it takes */
uint64_t catalog_dropped(const catalog *c);     /* events that they have dropped, as far as they have told; likewise waits */
uint64_t catalog_waited(const catalog *c);
uint32_t catalog_thread_count(const catalog *c);
uint32_t catalog_fiber_count(const catalog *c);
catalog_process *catalog_process_at(const catalog *c, uint32_t id); /* id < count */
catalog_thread *catalog_thread_at(const catalog *c, uint32_t id);
catalog_fiber *catalog_fiber_at(const catalog *c, uint32_t id);

/* A new process: one per stream. Its id, or CATALOG_NONE when memory is out; likewise below. */
uint32_t catalog_process_add(catalog *c, uint32_t pid, uint64_t begin_ns);
/* The thread or fiber of that number, made if it is new. thread: an id. */
uint32_t catalog_thread_of(catalog *c, uint32_t process, uint32_t number, uint64_t now_ns);
uint32_t catalog_fiber_of(catalog *c, uint32_t process, uint32_t number, uint32_t thread, uint64_t now_ns);

/* As they are: CATALOG_NONE when there is none such. */
uint32_t catalog_find_thread(const catalog *c, uint32_t process, uint32_t number);
uint32_t catalog_find_fiber(const catalog *c, uint32_t process, uint32_t number);

/* What people call it: its name, or "main", "ractor 2", "thread 5". Long names are cut. */
#define CATALOG_TITLE_BYTES 96
void catalog_thread_title(const catalog *c, uint32_t thread, char out[CATALOG_TITLE_BYTES]);

/* Take over one DEFINE: head, and its payload of head.place bytes. Unknown kinds and malformed payloads are ignored:
 * false says so. now_ns: the head's time. CLOCK definitions are the simulation's own business (true, nothing done). */
bool catalog_define(catalog *c, uint32_t process, ev head, const void *payload, uint64_t now_ns);

/* The method of that number in a process; never NULL: an undefined number gives a method named "(unknown method N)". */
const catalog_method *catalog_method_of(const catalog *c, uint32_t process, uint32_t number);
/* The same, but NULL for an undefined number. */
const catalog_method *catalog_method_known(const catalog *c, uint32_t process, uint32_t number);
/* Numbers below this are worth asking for. */
uint32_t catalog_method_limit(const catalog *c, uint32_t process);
uint32_t catalog_string_limit(const catalog *c, uint32_t process);
/* The string of that number ("" when undefined). */
const char *catalog_string_of(const catalog *c, uint32_t process, uint32_t number);

#endif
