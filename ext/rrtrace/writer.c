#include "writer.h"

#include "frames.h"
#include "join.h"

#include <ruby/version.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void writer_wait(unsigned step)
{
    if (step < 64) {
        ring_pause();
    } else if (step < 96) {
        sched_yield();
    } else {
        long ns = step < 104 ? 50000 : step < 112 ? 200000 : 1000000;
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    }
}

/* A signal that came for the program waits until the hook is left. While events are still read that is soon. A reader that
 * stands still for this long (stopped, or hung) is given up then: the program's signals are its own. */
#define STUCK_NS UINT64_C(500000000)

typedef struct patience {
    uint64_t read_index, since_ns;
} patience;

static bool is_stuck(const ring *r, patience *p)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), index = atomic_load_explicit(&r->read_index, memory_order_relaxed);
    if (p->since_ns == 0 || index != p->read_index)
        *p = (patience){index, now_ns};
    if (now_ns - p->since_ns > JOIN_PATIENCE_NS)
        join_say_it_waits("to make room in the buffer; when that has ended, this program runs on");
    return now_ns - p->since_ns > STUCK_NS;
}

/* The lock is held and there is no room. true: the lock is held and there is. */
__attribute__((noinline)) static bool begin_full(stream *s, uint64_t count)
{
    ring *r = s->ring;
    if (s->options.drop) {
        atomic_store_explicit(&r->dropped, atomic_load_explicit(&r->dropped, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        s->unreported++;
        s->last_ec = NULL; /* the next event that fits proves again where it runs */
        ring_unlock(r);
        return false;
    }
    atomic_store_explicit(&r->waits, atomic_load_explicit(&r->waits, memory_order_relaxed) + 1, memory_order_relaxed);
    patience waited = {0};
    for (unsigned step = 0;; step++) {
        ring_unlock(r);
        writer_wait(step);
        /* Signals are the main thread's business; it only reads a flag, which is safe without the GVL. */
        if (step > 128 && is_stuck(r, &waited) && rb_thread_interrupted(capture.main_thread)) {
            atomic_fetch_add_explicit(&r->dropped, count, memory_order_relaxed);
            join_give_up();
        }
        if (capture_mode_now(s) != CAPTURE_ON) /* the watcher saw the reader go */
            return false;
        ring_lock(r);
        if (ring_room(r, count))
            return true;
    }
}

bool capture_begin(stream *s, uint64_t count)
{
    ring *r = s->ring;
    if (capture_mode_now(s) != CAPTURE_ON)
        return false;
    ring_lock(r);
    return RB_LIKELY(ring_room(r, count)) || begin_full(s, count);
}

uint64_t writer_put_define(stream *s, uint64_t offset, uint32_t number, const capture_piece *pieces, int piece_count)
{
    uint32_t total = 0, filled = 0;
    for (int i = 0; i < piece_count; i++)
        total += pieces[i].count;
    ring_put(s->ring, offset, ev_make(EV_DEFINE, capture_ticks(s), number, total));
    unsigned char slot[sizeof(ev)] = {0};
    uint64_t taken = 1;
    for (int i = 0; i < piece_count; i++) {
        const unsigned char *bytes = pieces[i].bytes;
        for (uint32_t left = pieces[i].count; left > 0;) {
            uint32_t part = (uint32_t)sizeof slot - filled < left ? (uint32_t)sizeof slot - filled : left;
            memcpy(slot + filled, bytes, part);
            bytes += part;
            left -= part;
            filled += part;
            if (filled == sizeof slot) {
                ev raw;
                memcpy(&raw, slot, sizeof raw);
                ring_put(s->ring, offset + taken++, raw);
                filled = 0;
            }
        }
    }
    if (filled > 0) {
        memset(slot + filled, 0, sizeof slot - filled);
        ev raw;
        memcpy(&raw, slot, sizeof raw);
        ring_put(s->ring, offset + taken++, raw);
    }
    return taken;
}

bool capture_define(stream *s, ev_define what, uint32_t number, const capture_piece *pieces, int piece_count)
{
    uint32_t total = 0;
    for (int i = 0; i < piece_count; i++)
        total += pieces[i].count;
    if (!capture_begin(s, 1 + ev_define_slots(total)))
        return false;
    writer_commit(s, writer_put_define(s, 0, ev_define_number(what, number), pieces, piece_count));
    return true;
}

ev_clock_def capture_clock(void)
{
    ev_clock_def def = {.source = capture_main.clock_source};
    clock_pair(def.source, &def.ticks, &def.monotonic_ns);
    def.realtime_ns = clock_ns(CLOCK_REALTIME);
    return def;
}

void capture_define_clock(stream *s, const ev_clock_def *def, bool may_wait)
{
    capture_piece piece = {def, sizeof *def};
    if (may_wait) {
        capture_define(s, EV_DEFINE_CLOCK, 0, &piece, 1);
        return;
    }
    ring_lock(s->ring);
    if (ring_room(s->ring, 3))
        ring_publish(s->ring, writer_put_define(s, 0, ev_define_number(EV_DEFINE_CLOCK, 0), &piece, 1));
    ring_unlock(s->ring);
}

void capture_define_process(stream *s)
{
    char *argv = s->methods.name; /* the same GVL, and no name is being built */
    const size_t room = 16 * 1024;
    size_t argv_bytes = 0;
    FILE *f = fopen("/proc/self/cmdline", "re");
    if (f) {
        argv_bytes = fread(argv, 1, room, f);
        fclose(f);
    }
    if (argv_bytes == room)
        argv[room - 1] = '\0';
    static const char *description; /* the constant's bytes live as long as the process */
    if (!description)
        description = ruby_description;
    ev_process_def def = {
        .pid = (uint32_t)getpid(),
        .ppid = (uint32_t)getppid(),
        .position_source = frames_known.positions_ok ? EV_POSITIONS_FRAME_ADDRESS : EV_POSITIONS_COUNTED,
        .ractor = s->number,
        .realtime_ns = clock_ns(CLOCK_REALTIME),
        .argv_bytes = (uint32_t)argv_bytes,
        .ruby_bytes = (uint32_t)strlen(description),
    };
    capture_piece pieces[] = {{&def, sizeof def}, {argv, def.argv_bytes}, {description, def.ruby_bytes}};
    capture_define(s, EV_DEFINE_PROCESS, 1, pieces, 3);
}
