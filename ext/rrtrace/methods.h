/* methods.h - (defined class, method id) -> method number, and the names.
 * For:     capture.c (every CALL), frames.c (frames that were open before).
 * Idea:    a two-way front cache answers nearly every CALL; behind it a table keyed by content (name, kind, file,
 *          line) gives dense numbers, and sends the DEFINE when a number is new.
 * Memory:  the front cache is fixed. One T_DATA marks and pins the classes that sit in it, so an address in it can not
 *          come to mean another class; overwritten, they may die. The table is malloc'ed, some 100 bytes a method.
 *          Every stream has a cache and tables of its own, so Ractors share nothing here.
 * Threads: GVL of the stream's Ractor held. Nothing here runs user code, allocates a Ruby object or raises.
 */
#ifndef RRTRACE_EXT_METHODS_H
#define RRTRACE_EXT_METHODS_H

#include "vm.h"
#include "wire/event.h"

#include <stdbool.h>

#define METHODS_CACHE_BITS 13
#define METHODS_CACHE_SIZE (1u << METHODS_CACHE_BITS)

/* In place of an id, of which none is 1: what stands for the class is an address of the VM's own that names the method
 * alone, a method entry (Ruby methods) or an instruction sequence (blocks). Saves the VM's lookup at each call. */
#define METHODS_BY_ADDRESS ((ID)1)

typedef struct methods_entry {
    VALUE klass; /* pinned; 0: empty */
    ID id;       /* as CRuby gives it; complemented while the class's name may still change */
    VALUE iseq;  /* compared only: the same method defined anew has another; 0 for C methods */
    uint32_t number; /* 0: left out */
    uint32_t kind;
} methods_entry;

/* Contents by number; see methods.c. */
typedef struct methods_table {
    struct content **slots; /* owned, and what they point to; open addressing */
    uint32_t *numbers;
    uint32_t slot_count, used;
    uint32_t nameless; /* of used: methods of anonymous classes and modules */
    uint32_t numbered; /* the last number given */
} methods_table;

/* Of a method that has no number: was it left out (select.h), and may that change? */
typedef enum methods_verdict {
    METHODS_WANTED = 0,      /* or it could not be defined now */
    METHODS_LEFT_OUT,
    METHODS_LEFT_OUT_SO_FAR, /* its class may get another name, or the same code be the method of another kind that is wanted */
} methods_verdict;

/* One a stream. */
typedef struct methods_state {
    _Alignas(64) methods_entry cache[METHODS_CACHE_SIZE]; /* pairs, the newer one first */
    VALUE class_names[METHODS_CACHE_SIZE]; /* that the complemented entries were made with: compared only */
    methods_table methods, strings;
    methods_verdict verdict; /* of the last methods_find */
    char name[EV_NAME_BYTES_MAX + 1]; /* the one that is being built; GVL held, and nothing in here lets it go */
} methods_state;

struct stream;

/* The first of the two entries, of one cache line, that may hold it. */
static inline methods_entry *methods_pair(methods_state *m, VALUE klass, ID id)
{
    /* Fibonacci hashing. Classes are 8-byte aligned; ids differ from bit 4 up. */
    uint64_t mixed = ((uint64_t)klass ^ ((uint64_t)id << 17)) * UINT64_C(0x9E3779B97F4A7C15);
    return &m->cache[(mixed >> (64 - METHODS_CACHE_BITS)) & ~UINT64_C(1)];
}

static inline bool methods_is(const methods_entry *entry, VALUE klass, ID id, VALUE iseq, uint32_t kind)
{
    return entry->klass == klass && entry->id == id && entry->iseq == iseq && entry->kind == kind;
}

/* The front cache's entry for it, of its pair, or NULL. */
static inline const methods_entry *methods_known_in(const methods_entry *pair, VALUE klass, ID id, VALUE iseq, uint32_t kind)
{
    if (__builtin_expect(methods_is(&pair[0], klass, id, iseq, kind), 1))
        return &pair[0];
    return methods_is(&pair[1], klass, id, iseq, kind) ? &pair[1] : NULL;
}

static inline const methods_entry *methods_known(methods_state *m, VALUE klass, ID id, VALUE iseq, uint32_t kind)
{
    return methods_known_in(methods_pair(m, klass, id), klass, id, iseq, kind);
}

/* Have methods_find look at it anew. */
static inline void methods_forget(methods_state *m, VALUE klass, ID id)
{
    methods_entry *pair = methods_pair(m, klass, id);
    for (int i = 0; i < 2; i++)
        if (pair[i].klass == klass)
            pair[i].klass = 0;
}

void methods_prepare(void); /* once a process, GVL held: the T_DATA */
void methods_reset(methods_state *m); /* numbers start anew: a new ring */

/* The slow path: a number, or 0 when it is left out or could not be defined now (dropped, detached, no memory). kind: EV_METHOD_…
 * klass and id as CRuby gives them, 0 when there is none (blocks at top level), or METHODS_BY_ADDRESS. arg tells the rest.
 */
uint32_t methods_find(struct stream *s, rb_trace_arg_t *arg, VALUE klass, ID id, VALUE iseq, uint32_t kind);

/* True for Thread#name=, whose effect the reader must hear of. */
bool methods_is_thread_name(VALUE klass, ID id);

/* A string's number; its DEFINE is sent when it is new. 0 when it could not be. */
uint32_t methods_string(struct stream *s, const char *bytes, size_t count);

#endif
