/* The ring: what goes in comes out once, in order, whatever the sizes; a lying header is refused. */
#include "wire/clock.h"
#include "wire/ring.h"

#include "test.h"

#include <pthread.h>

#define SLOTS RING_SLOTS_MIN

static ring *new_ring(void)
{
    void *memory = aligned_alloc(4096, ring_bytes(SLOTS));
    CHECK(memory);
    memset(memory, 0, ring_bytes(SLOTS));
    return ring_init(memory, SLOTS, CLOCK_SOURCE_MONOTONIC, 1);
}

/* A single event goes the way of single events. */
static bool push(ring *r, uint64_t first, uint64_t count)
{
    ring_lock(r);
    CHECK(!ring_try_lock(r));
    if (count == 1) {
        bool is_written = ring_push(r, ev_make(EV_CALL, first, (uint32_t)first, 7));
        ring_unlock(r);
        return is_written;
    }
    bool room = ring_room(r, count);
    for (uint64_t i = 0; room && i < count; i++)
        ring_put(r, i, ev_make(EV_CALL, first + i, (uint32_t)(first + i), 7));
    if (room)
        ring_publish(r, count);
    ring_unlock(r);
    return room;
}

TEST(an_event_keeps_kind_ticks_number_and_place)
{
    ev e = ev_make(EV_FRAME, UINT64_MAX, 5, 9);
    CHECK_EQ(ev_kind_of(e), EV_FRAME);
    CHECK_EQ(ev_ticks_of(e), EV_TICKS_MASK);
    CHECK_EQ(e.number, 5);
    CHECK_EQ(e.place, 9);
}

TEST(deeper_positions_have_greater_keys_also_across_the_4_gib_border)
{
    uint32_t caller = 0x00000010, callee = caller - 56; /* wraps */
    CHECK(ev_is_deeper(ev_depth_key(callee), ev_depth_key(caller)));
    CHECK(!ev_is_deeper(ev_depth_key(caller), ev_depth_key(callee)));
    CHECK(ev_is_deeper(ev_depth_key(caller | EV_POSITION_C), ev_depth_key(caller)));
    CHECK(ev_is_deeper(ev_depth_key(caller | EV_POSITION_C), ev_depth_key(caller | EV_POSITION_BLOCK)));
    CHECK(ev_is_deeper(ev_depth_key(callee), ev_depth_key(caller | EV_POSITION_C)));
    CHECK(!ev_is_deeper(ev_depth_key(caller), ev_depth_key(caller)));
}

TEST(what_goes_in_comes_out_once_in_order_at_any_batch_size)
{
    uint64_t seed = test_seed(3), state = seed;
    ring *r = new_ring();
    ring_reader reader;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) == NULL);
    static ev out[SLOTS];
    uint64_t written = 0, read = 0;
    while (read < 400000) {
        uint64_t count = test_random_below(&state, 2) ? 1 : 1 + test_random_below(&state, SLOTS);
        if (push(r, written, count))
            written += count;
        else
            CHECK(written + count - read > SLOTS); /* refused only when there is no room */
        uint64_t got = ring_read(&reader, out, 1 + test_random_below(&state, SLOTS));
        for (uint64_t i = 0; i < got; i++)
            if (ev_ticks_of(out[i]) != read + i)
                TEST_FAILED("seed %" PRIu64 ": event %" PRIu64 " out of order", seed, read + i);
        read += got;
        CHECK_EQ(ring_backlog(&reader), written - read);
    }
    free(r);
}

TEST(a_full_ring_says_so_and_overwrites_nothing)
{
    ring *r = new_ring();
    ring_reader reader;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) == NULL);
    CHECK(push(r, 0, SLOTS));
    CHECK(!push(r, SLOTS, 1));
    CHECK(!push(r, SLOTS, 2));
    ev out[2];
    CHECK_EQ(ring_read(&reader, out, 2), 2);
    CHECK_EQ(ev_ticks_of(out[0]), 0);
    CHECK(push(r, SLOTS, 2));
    CHECK(!push(r, SLOTS + 2, 1));
    CHECK_EQ(ring_read(&reader, out, 1), 1);
    CHECK_EQ(ev_ticks_of(out[0]), 2);
    CHECK(push(r, SLOTS + 2, 1));
    CHECK(!push(r, SLOTS + 3, 1));
    free(r);
}

TEST(a_lock_that_is_free_is_taken_without_waiting)
{
    ring *r = new_ring();
    CHECK(ring_try_lock(r));
    CHECK(!ring_try_lock(r));
    ring_unlock(r);
    CHECK(ring_try_lock(r));
    free(r);
}

typedef struct race {
    ring *r;
    uint64_t count;
    uint32_t writer;
} race;

static void *write_many(void *argument)
{
    race *w = argument;
    for (uint64_t i = 0; i < w->count;) {
        ring_lock(w->r);
        bool room = ring_room(w->r, 2);
        if (room) { /* two slots that must stay together */
            ring_put(w->r, 0, ev_make(EV_SWITCH, i, w->writer, 0));
            ring_put(w->r, 1, ev_make(EV_CALL, i, w->writer, 0));
            ring_publish(w->r, 2);
        }
        ring_unlock(w->r);
        if (room)
            i++;
        else
            sched_yield();
    }
    return NULL;
}

TEST(two_writers_and_a_reader_at_once_keep_order_and_pairs)
{
    ring *r = new_ring();
    ring_reader reader;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) == NULL);
    race writers[2] = {{r, 60000, 0}, {r, 60000, 1}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    static ev out[SLOTS];
    uint64_t next[2] = {0, 0}, total = 0, held = 0;
    while (total < 240000) {
        uint64_t got = ring_read(&reader, out + held, SLOTS - held) + held;
        for (uint64_t i = 0; i + 1 < got; i += 2) {
            CHECK_EQ(ev_kind_of(out[i]), EV_SWITCH);
            CHECK_EQ(ev_kind_of(out[i + 1]), EV_CALL);
            CHECK_EQ(out[i].number, out[i + 1].number);
            CHECK_EQ(ev_ticks_of(out[i]), next[out[i].number]++);
        }
        held = got & 1;
        if (held)
            out[0] = out[got - 1];
        total += got - held;
        if (got == held)
            sched_yield();
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(r);
}

TEST(a_lying_header_is_refused)
{
    ring *r = new_ring();
    ring_reader reader;
    CHECK(ring_reader_open(&reader, r, 100) != NULL);
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS) - 1) != NULL);
    r->slot_count = SLOTS - 1;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) != NULL);
    r->slot_count = UINT64_C(1) << 63;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) != NULL);
    r->slot_count = SLOTS;
    r->version++;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) != NULL);
    r->version--;
    r->magic++;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) != NULL);
    free(r);
}

TEST(indices_that_lie_after_opening_never_read_beyond_the_ring)
{
    ring *r = new_ring();
    ring_reader reader;
    CHECK(ring_reader_open(&reader, r, ring_bytes(SLOTS)) == NULL);
    r->slot_count = 1; /* too late: the reader has its own */
    atomic_store(&r->write_index, UINT64_MAX);
    static ev out[SLOTS];
    CHECK_EQ(ring_read(&reader, out, SLOTS), SLOTS); /* asan watches */
    free(r);
}

TEST(the_clock_runs_forward_and_pairs_are_tight)
{
    uint32_t source = clock_source_detect();
    uint64_t last = clock_ticks(source);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_ticks(source);
        CHECK(now >= last);
        last = now;
    }
    uint64_t ticks1 = 0, ns1 = 0, ticks2 = 0, ns2 = 0;
    clock_pair(source, &ticks1, &ns1);
    clock_pair(source, &ticks2, &ns2);
    CHECK(ticks2 > ticks1 && ns2 > ns1);
}
