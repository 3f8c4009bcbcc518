/* test/c/sim_stream.h - makes random event streams as CRuby would send them, and as it never would.
 * Use: stream_make(&events, &seed, how); vec_free(&events) after.
 */
#ifndef RRTRACE_TEST_SIM_STREAM_H
#define RRTRACE_TEST_SIM_STREAM_H

#include "base/mem.h"
#include "base/vec.h"
#include "test.h"
#include "wire/event.h"

typedef VEC(ev) event_vec;

typedef struct stream_how {
    uint32_t event_count, thread_count, fibers_per_thread, method_count, depth_max;
    uint32_t oddity_per_mille; /* events that CRuby should not send here: any kind, any position, time running back */
    uint32_t switch_per_mille, gc_per_mille, thread_per_mille, unwind_per_mille, define_per_mille, note_per_mille;
} stream_how;

typedef struct stream_fiber {
    uint32_t thread, base;
    uint32_t depth;
    uint32_t positions[512];
    uint32_t methods[512];
} stream_fiber;

static void stream_add(event_vec *v, ev e)
{
    ev *place = vec_push(v);
    CHECK(place);
    *place = e;
}

static void stream_add_payload(event_vec *v, const void *payload, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 16) {
        ev e = {0};
        memcpy(&e, (const char *)payload + i, bytes - i < 16 ? bytes - i : 16);
        stream_add(v, e);
    }
}

static void stream_add_clock(event_vec *v, uint64_t ticks, uint64_t ns)
{
    ev_clock_def def = {.ticks = ticks, .monotonic_ns = ns, .realtime_ns = ns, .source = 1};
    stream_add(v, ev_make(EV_DEFINE, ticks, ev_define_number(EV_DEFINE_CLOCK, 0), sizeof def));
    stream_add_payload(v, &def, sizeof def);
}

static void stream_add_name(event_vec *v, uint64_t ticks, uint32_t number, uint64_t *seed)
{
    char payload[256] = {0};
    ev_method_def def = {.kind = EV_METHOD_RUBY, .line = 1, .name_bytes = (uint32_t)test_random_below(seed, 200)};
    memcpy(payload, &def, sizeof def);
    memset(payload + sizeof def, 0xA0, def.name_bytes); /* would look like events of kind 10 */
    stream_add(v, ev_make(EV_DEFINE, ticks, ev_define_number(EV_DEFINE_METHOD, number), (uint32_t)sizeof def + def.name_bytes));
    stream_add_payload(v, payload, sizeof def + def.name_bytes);
}

/* A frame's position for the depth above the fiber's base: whole frames of 56 bytes, growing down. */
static uint32_t stream_frame(const stream_fiber *f, uint32_t depth) { return f->base - depth * 56u; }

static void stream_call(event_vec *v, stream_fiber *f, uint64_t ticks, const stream_how *how, uint64_t *seed)
{
    uint32_t method = 1 + (uint32_t)test_random_below(seed, how->method_count);
    bool is_c = test_random_below(seed, 3) == 0;
    uint32_t position = is_c ? stream_frame(f, f->depth) | EV_POSITION_C : stream_frame(f, f->depth + 1);
    f->positions[f->depth] = position;
    f->methods[f->depth++] = method;
    stream_add(v, ev_make(EV_CALL, ticks, method, position));
}

static void stream_return(event_vec *v, stream_fiber *f, uint64_t ticks, uint64_t *seed)
{
    f->depth--;
    uint32_t position = f->positions[f->depth], number = 0;
    if (ev_position_is_c(position) && test_random_below(seed, 4) == 0) {
        number = f->methods[f->depth];
        if (test_random_below(seed, 2)) /* unwound by an exception: CRuby names the C method's own frame */
            position = (position & ~3u) - 56u + EV_POSITION_C;
    }
    stream_add(v, ev_make(EV_RETURN, ticks, number, position));
}

static void stream_odd(event_vec *v, stream_fiber *f, uint64_t ticks, const stream_how *how, uint64_t *seed)
{
    static const ev_kind kinds[] = {EV_CALL, EV_RETURN, EV_RETURN, EV_CUT, EV_FRAME, EV_MARK, EV_SPAN_BEGIN, EV_SPAN_END, EV_GC_EXIT, EV_GC_ENTER};
    uint32_t position = stream_frame(f, (uint32_t)test_random_below(seed, how->depth_max)) + 8u * (uint32_t)test_random_below(seed, 3);
    position |= test_random_below(seed, 2) ? EV_POSITION_C : 0;
    uint64_t back = test_random_below(seed, 4) == 0 ? test_random_below(seed, 50) : 0;
    stream_add(v, ev_make(kinds[test_random_below(seed, sizeof kinds / sizeof *kinds)], ticks > back ? ticks - back : 0,
                          (uint32_t)test_random_below(seed, how->method_count + 1), position));
}

__attribute__((unused)) static void stream_make(event_vec *v, uint64_t *seed, const stream_how *how)
{
    uint32_t fiber_count = how->thread_count * how->fibers_per_thread, current = 0;
    stream_fiber *fibers = calloc(fiber_count, sizeof *fibers);
    bool *exited = calloc(how->thread_count, sizeof *exited);
    CHECK(fibers && exited);
    uint64_t ticks = 1000;
    for (uint32_t i = 0; i < fiber_count; i++)
        fibers[i] = (stream_fiber){.thread = i / how->fibers_per_thread, .base = (uint32_t)test_random(seed) & ~7u};
    if (test_random_below(seed, 4) != 0) {
        stream_add_clock(v, ticks, 5000);
        stream_add_clock(v, ticks + 100, 5033);
    }
    while (v->count < how->event_count) {
        stream_fiber *f = &fibers[current];
        ticks += test_random_below(seed, 20);
        uint64_t r = test_random_below(seed, 1000), limit = 0;
        if (r < (limit += how->switch_per_mille)) {
            current = (uint32_t)test_random_below(seed, fiber_count);
            if (exited[fibers[current].thread])
                current = 0;
            stream_add(v, ev_make(EV_SWITCH, ticks, current + 1, fibers[current].thread + 1));
        } else if (r < (limit += how->gc_per_mille)) {
            stream_add(v, ev_make(EV_GC_ENTER, ticks, 0, 0));
            if (test_random_below(seed, 8))
                stream_add(v, ev_make(EV_GC_EXIT, ticks + 7, 0, 0));
        } else if (r < (limit += how->thread_per_mille)) {
            uint32_t thread = (uint32_t)test_random_below(seed, how->thread_count);
            ev_kind kind = EV_THREAD_STARTED + (ev_kind)test_random_below(seed, 4);
            if (thread != 0 && thread != f->thread && test_random_below(seed, 20) == 0) {
                kind = EV_THREAD_EXITED;
                exited[thread] = true;
            } else if (exited[thread]) {
                continue;
            }
            stream_add(v, ev_make(kind, ticks, thread + 1, 0));
        } else if (r < (limit += how->unwind_per_mille) && f->depth > 0) {
            f->depth = (uint32_t)test_random_below(seed, f->depth); /* a rescue far below, or nothing said at all */
            if (test_random_below(seed, 2))
                stream_add(v, ev_make(EV_CUT, ticks, 0, stream_frame(f, f->depth + 1)));
        } else if (r < (limit += how->define_per_mille)) {
            if (test_random_below(seed, 3) == 0)
                stream_add_clock(v, ticks, ticks * 3 + test_random_below(seed, 100));
            else
                stream_add_name(v, ticks, 1 + (uint32_t)test_random_below(seed, how->method_count), seed);
        } else if (r < (limit += how->note_per_mille)) {
            static const ev_kind kinds[] = {EV_MARK, EV_SPAN_BEGIN, EV_SPAN_END};
            ev_kind kind = kinds[test_random_below(seed, 3)];
            uint32_t id = kind == EV_MARK ? 0 : 1 + (uint32_t)test_random_below(seed, 4);
            stream_add(v, ev_make(kind, ticks, 1 + (uint32_t)test_random_below(seed, 9), id));
        } else if (r < (limit += how->oddity_per_mille)) {
            stream_odd(v, f, ticks, how, seed);
        } else if (f->depth > 0 && (f->depth >= how->depth_max || test_random_below(seed, 2))) {
            stream_return(v, f, ticks, seed);
        } else {
            stream_call(v, f, ticks, how, seed);
        }
    }
    free(fibers);
    free(exited);
}

#endif
