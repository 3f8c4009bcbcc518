/* wire/ring.h - one shared-memory spinlock ring buffer of events, between a traced program and the visualizer.
 * For:     ext/ (many writing threads, one lock), intake/ (one reader).
 * Idea:    indices count events ever written and read and never wrap; index & mask is the slot.
 *
 *     0          128            256           4096
 *     | identity | writers' line | reader's line | … | slot 0 | slot 1 | … | slot (slot_count - 1) |
 *
 *          read_index <= write_index <= read_index + slot_count at all times; the slots in between are the reader's.
 * Use:     writer: ring_init once; ring_lock, ring_room, ring_put…, ring_publish, ring_unlock; for a single event ring_push.
 *          reader: ring_reader_open once; ring_read in a loop.
 * Memory:  ring_bytes(slot_count) bytes of shared memory, mapped by both. Nothing is allocated here.
 * Threads: writers take the lock word in shared memory; exactly one reader. Neither side waits inside these functions but
 *          for the lock, which is held for some tens of nanoseconds and never across a wait for room.
 * Source:  DESIGN §4; the two cached indices follow Concurrency Kit's and FastForward's single-consumer rings.
 */
#ifndef RRTRACE_WIRE_RING_H
#define RRTRACE_WIRE_RING_H

#include "event.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define RING_MAGIC UINT64_C(0x31474e4952525252) /* "RRRRING1" */
#define RING_VERSION 1u
#define RING_HEADER_BYTES 4096u /* a page: the slots start page-aligned */
#define RING_SLOTS_MIN (UINT64_C(1) << 13) /* the longest DEFINE (5,121 slots) fits */
#define RING_SLOTS_DEFAULT (UINT64_C(1) << 20) /* 16 MiB */
#define RING_AHEAD 32 /* slots, eight lines: how far before the writing their memory is asked for */
#define RING_SLOTS_MAX (UINT64_C(1) << 28) /* 4 GiB */

_Static_assert(EV_DEFINE_BYTES_MAX / 16 + 1 <= RING_SLOTS_MIN, "one DEFINE fits the smallest ring");

typedef struct ring {
    /* Identity: written once by ring_init before the reader maps it, constant after. */
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t slot_count;   /* a power of two */
    uint32_t clock_source; /* wire/clock.h */
    uint32_t pid;          /* of the writer, as the writer sees it */

    /* Writers' line. */
    _Alignas(128) _Atomic uint32_t lock; /* 0 free, 1 held; see ring_lock */
    uint32_t reserved;
    _Atomic uint64_t write_index; /* events ever published; stored under the lock, loaded by the reader */
    uint64_t cached_read_index;   /* a past read_index; under the lock */
    _Atomic uint64_t dropped;     /* events thrown away (--on-full=drop); stored under the lock, loaded by the reader */
    _Atomic uint64_t waits;       /* times a writer found the ring full and waited; likewise */
    _Atomic uint32_t closed;      /* 1: the writers have stopped for good; any writer, once */

    /* Reader's line. */
    _Alignas(128) _Atomic uint64_t read_index; /* events ever consumed; stored by the reader, loaded by writers */
} ring;

_Static_assert(offsetof(ring, lock) == 128 && offsetof(ring, read_index) == 256, "one line a side");
_Static_assert(sizeof(ring) <= RING_HEADER_BYTES, "the header fits its page");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics that cross processes are lock-free");

static inline bool ring_slots_ok(uint64_t slot_count)
{
    return slot_count >= RING_SLOTS_MIN && slot_count <= RING_SLOTS_MAX && (slot_count & (slot_count - 1)) == 0;
}

/* slot_count must satisfy ring_slots_ok. */
static inline size_t ring_bytes(uint64_t slot_count) { return RING_HEADER_BYTES + (size_t)slot_count * sizeof(ev); }

static inline ev *ring_slots(ring *r) { return (ev *)(void *)((unsigned char *)r + RING_HEADER_BYTES); }

/* memory: ring_bytes(slot_count) zeroed bytes, page aligned. */
static inline ring *ring_init(void *memory, uint64_t slot_count, uint32_t clock_source, uint32_t pid)
{
    ring *r = (ring *)memory;
    r->magic = RING_MAGIC;
    r->version = RING_VERSION;
    r->header_bytes = RING_HEADER_BYTES;
    r->slot_count = slot_count;
    r->clock_source = clock_source;
    r->pid = pid;
    return r;
}

static inline void ring_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Acquire pairs with the release in ring_unlock: what the last writer wrote is seen. Waits on plain loads, so that
 * waiting does not move the line about; yields after a while, as the holder may have lost its core. */
static inline void ring_lock(ring *r)
{
    unsigned spins = 0;
    while (__builtin_expect(atomic_exchange_explicit(&r->lock, 1, memory_order_acquire) != 0, 0)) {
        while (atomic_load_explicit(&r->lock, memory_order_relaxed) != 0) {
            if (++spins % 128 == 0)
                sched_yield();
            else
                ring_pause();
        }
    }
}

/* The same without waiting: false when somebody else holds the lock. */
static inline bool ring_try_lock(ring *r)
{
    return __builtin_expect(atomic_exchange_explicit(&r->lock, 1, memory_order_acquire) == 0, 1);
}

static inline void ring_unlock(ring *r) { atomic_store_explicit(&r->lock, 0, memory_order_release); }

/* Under the lock: are there count free slots? Looks at the reader's line only when the cached index says no. */
static inline bool ring_room(ring *r, uint64_t count)
{
    uint64_t index = atomic_load_explicit(&r->write_index, memory_order_relaxed); /* only lock holders store it */
    if (__builtin_expect(index + count - r->cached_read_index <= r->slot_count, 1))
        return true;
    /* Acquire pairs with the release in ring_read: the reader has copied the slots that we are about to overwrite. */
    r->cached_read_index = atomic_load_explicit(&r->read_index, memory_order_acquire);
    return index + count - r->cached_read_index <= r->slot_count;
}

/* Under the lock, after ring_room: write slot number offset of the batch that ring_publish will hand over. */
static inline void ring_put(ring *r, uint64_t offset, ev e)
{
    uint64_t index = atomic_load_explicit(&r->write_index, memory_order_relaxed) + offset;
    ring_slots(r)[index & (r->slot_count - 1)] = e;
}

/* Under the lock: hand the count slots written since the last call to the reader, all at once.
 * Release pairs with the acquire in ring_read: who sees this index sees the slots written before it. */
static inline void ring_publish(ring *r, uint64_t count)
{
    uint64_t index = atomic_load_explicit(&r->write_index, memory_order_relaxed);
    atomic_store_explicit(&r->write_index, index + count, memory_order_release);
}

/* Ask for memory that will be written to. Beyond the ring's end that is no harm. */
static inline void ring_prefetch(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at)); /* the compiler's own would ask for it to be read */
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Under the lock: ring_room, ring_put and ring_publish of one event, with one look at the index. False: there is no room. */
static inline bool ring_push(ring *r, ev e)
{
    uint64_t index = atomic_load_explicit(&r->write_index, memory_order_relaxed), slot_count = r->slot_count;
    if (__builtin_expect(index - r->cached_read_index >= slot_count, 0) && !ring_room(r, 1))
        return false;
    ev *slot = &ring_slots(r)[index & (slot_count - 1)];
    *slot = e;
    ring_prefetch(slot + RING_AHEAD);
    atomic_store_explicit(&r->write_index, index + 1, memory_order_release);
    return true;
}

/* The reader's own side. Everything in the mapping is hostile: what matters is copied here and checked at open. What can't be
 * guarded against is a writer that truncates the shared memory afterwards: it runs as the same user, who could as well kill. */
typedef struct ring_reader {
    ring *shared;        /* borrowed from the mapping's owner */
    uint64_t slot_count; /* checked */
    uint64_t read_index; /* ours; shared->read_index only tells the writers */
} ring_reader;

/* mapped_bytes: size of the mapping. NULL when the ring is sound, else what is wrong with it in a few words. */
static inline const char *ring_reader_open(ring_reader *reader, void *mapping, size_t mapped_bytes)
{
    ring *r = (ring *)mapping;
    *reader = (ring_reader){0};
    if (mapped_bytes < RING_HEADER_BYTES)
        return "the shared memory is smaller than a ring's header";
    if (r->magic != RING_MAGIC)
        return "the shared memory holds no ring";
    if (r->version != RING_VERSION || r->header_bytes != RING_HEADER_BYTES)
        return "the ring has another version";
    uint64_t slot_count = r->slot_count;
    if (!ring_slots_ok(slot_count) || ring_bytes(slot_count) > mapped_bytes)
        return "the ring's size is not a power of two that fits its shared memory";
    *reader = (ring_reader){.shared = r, .slot_count = slot_count};
    return NULL;
}

/* Events waiting, at most slot_count; a lying index reads as a full ring. */
static inline uint64_t ring_backlog(const ring_reader *reader)
{
    uint64_t count = atomic_load_explicit(&reader->shared->write_index, memory_order_acquire) - reader->read_index;
    return count <= reader->slot_count ? count : reader->slot_count;
}

/* Copy up to max waiting events, oldest first, without consuming them; returns how many. ring_consume follows.
 * The acquire in ring_backlog pairs with the release in ring_publish. */
static inline uint64_t ring_peek(const ring_reader *reader, ev *out, uint64_t max)
{
    uint64_t count = ring_backlog(reader);
    if (count > max)
        count = max;
    uint64_t slot = reader->read_index & (reader->slot_count - 1), first = reader->slot_count - slot;
    if (first > count)
        first = count;
    const ev *slots = ring_slots(reader->shared);
    memcpy(out, slots + slot, (size_t)first * sizeof(ev));
    memcpy(out + first, slots, (size_t)(count - first) * sizeof(ev));
    return count;
}

/* Give count slots back to the writers. Release pairs with the acquire in ring_room: they overwrite only what is copied. */
static inline void ring_consume(ring_reader *reader, uint64_t count)
{
    reader->read_index += count;
    atomic_store_explicit(&reader->shared->read_index, reader->read_index, memory_order_release);
}

static inline uint64_t ring_read(ring_reader *reader, ev *out, uint64_t max)
{
    uint64_t count = ring_peek(reader, out, max);
    ring_consume(reader, count);
    return count;
}

#endif
