#include "sim/reference.h"

#include "base/mem.h"
#include "base/vec.h"
#include "sim/timebase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct frame {
    uint64_t begin_ns;
    uint32_t position, method;
    bool open_at_start;
} frame;

typedef struct track_state {
    VEC(frame) frames;
    bool is_on; /* GVL and GC tracks: a state is open */
    uint32_t state;
    uint64_t since_ns;
} track_state;

typedef struct reference_stream {
    uint32_t process, fiber; /* fiber: id, CATALOG_NONE before the first SWITCH or call */
    timebase clock;
    uint64_t last_ticks, last_ns;
    bool is_open;
} reference_stream;

struct reference {
    sim_desc desc;
    VEC(reference_stream) streams;
    VEC(track_state) tracks;
};

int reference_new(reference **out, const sim_desc *desc)
{
    reference *r = *out = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->desc = *desc;
    return 0;
}

void reference_delete(reference *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->tracks.count; i++)
        vec_free(&r->tracks.items[i].frames);
    vec_free(&r->tracks);
    vec_free(&r->streams);
    mem_free(r);
}

uint32_t reference_stream_open(reference *r, uint32_t process)
{
    reference_stream *st = vec_push(&r->streams);
    if (!st)
        return SIM_STREAM_NONE;
    *st = (reference_stream){.process = process, .fiber = CATALOG_NONE, .is_open = true};
    timebase_init(&st->clock);
    return (uint32_t)(r->streams.count - 1);
}

static track_state *track_at(reference *r, uint32_t track)
{
    while (r->tracks.count <= track) {
        track_state *t = vec_push(&r->tracks);
        if (!t)
            abort(); /* tests only */
        *t = (track_state){0};
    }
    return &r->tracks.items[track];
}

static void give(reference *r, uint32_t track, uint64_t begin_ns, uint64_t end_ns, uint32_t value, size_t depth,
                 sim_closed closed, bool open_at_start)
{
    sim_span span = {
        .begin_ns = begin_ns,
        .end_ns = end_ns > begin_ns ? end_ns : begin_ns,
        .value = value,
        .depth = (uint32_t)depth,
        .closed = (uint8_t)closed,
        .open_at_start = open_at_start,
    };
    r->desc.sink(r->desc.context, track, &span, 1);
}

static void pop(reference *r, uint32_t track, uint64_t now_ns, sim_closed closed)
{
    track_state *t = track_at(r, track);
    frame f = t->frames.items[--t->frames.count];
    give(r, track, f.begin_ns, now_ns, f.method, t->frames.count, closed, f.open_at_start);
}

static bool top_is(const track_state *t, bool or_equal, uint32_t key)
{
    if (t->frames.count == 0)
        return false;
    uint32_t top = ev_depth_key(t->frames.items[t->frames.count - 1].position);
    return ev_is_deeper(top, key) || (or_equal && top == key);
}

static int stack_event(reference *r, uint32_t track, ev e, uint64_t now_ns)
{
    ev_kind kind = ev_kind_of(e);
    uint32_t key = ev_depth_key(e.place);
    while (top_is(track_at(r, track), kind != EV_RETURN, key))
        pop(r, track, now_ns, SIM_CLOSED_UNWOUND);
    track_state *t = track_at(r, track);
    if (kind == EV_CALL || kind == EV_FRAME) {
        frame *f = vec_push(&t->frames);
        if (!f)
            return -ENOMEM;
        *f = (frame){now_ns, e.place, e.number & 0x7fffffffu, kind == EV_FRAME};
    } else if (kind == EV_RETURN && t->frames.count > 0) {
        frame top = t->frames.items[t->frames.count - 1];
        bool may_be_unwound = e.number != 0 && ev_position_is_c(e.place);
        if (may_be_unwound ? (ev_depth_key(top.position) & 3u) == EV_POSITION_C && top.method == e.number
                           : ev_depth_key(top.position) == key)
            pop(r, track, now_ns, SIM_CLOSED_RETURN);
    }
    return 0;
}

static void set_state(reference *r, uint32_t track, bool is_on, uint32_t state, uint64_t now_ns, sim_closed closed)
{
    track_state *t = track_at(r, track);
    if (t->is_on == is_on && (!is_on || t->state == state))
        return;
    if (t->is_on && now_ns > t->since_ns)
        give(r, track, t->since_ns, now_ns, t->state, 0, closed, false);
    t->is_on = is_on;
    t->state = state;
    t->since_ns = now_ns;
}

static void thread_event(reference *r, reference_stream *st, ev_kind kind, uint32_t number, uint64_t now_ns)
{
    uint32_t id = catalog_thread_of(r->desc.catalog, st->process, number, now_ns);
    catalog_thread *thread = catalog_thread_at(r->desc.catalog, id);
    track_state *gvl = track_at(r, thread->gvl_track);
    switch (kind) {
    case EV_THREAD_READY: set_state(r, thread->gvl_track, true, SIM_GVL_WAITING, now_ns, SIM_CLOSED_RETURN); break;
    case EV_THREAD_STARTED: set_state(r, thread->gvl_track, true, SIM_GVL_BLOCKED, now_ns, SIM_CLOSED_RETURN); break;
    case EV_THREAD_SUSPENDED:
        if (!gvl->is_on && thread->end_ns == 0) {
            gvl->is_on = true;
            gvl->state = SIM_GVL_RUNNING;
            gvl->since_ns = thread->begin_ns;
        }
        set_state(r, thread->gvl_track, true, SIM_GVL_BLOCKED, now_ns, SIM_CLOSED_RETURN);
        break;
    case EV_THREAD_EXITED:
        set_state(r, thread->gvl_track, false, 0, now_ns, SIM_CLOSED_RETURN);
        thread->end_ns = now_ns;
        for (uint32_t f = thread->first_fiber; f != CATALOG_NONE; f = catalog_fiber_at(r->desc.catalog, f)->next)
            while (track_at(r, catalog_fiber_at(r->desc.catalog, f)->track)->frames.count > 0)
                pop(r, catalog_fiber_at(r->desc.catalog, f)->track, now_ns, SIM_CLOSED_UNWOUND);
        break;
    default: set_state(r, thread->gvl_track, true, SIM_GVL_RUNNING, now_ns, SIM_CLOSED_RETURN); break;
    }
}

static uint32_t go_to(reference *r, reference_stream *st, uint32_t fiber, uint32_t thread, uint64_t now_ns)
{
    uint32_t id = catalog_thread_of(r->desc.catalog, st->process, thread, now_ns);
    return catalog_fiber_of(r->desc.catalog, st->process, fiber, id, now_ns);
}

static void define(reference *r, reference_stream *st, ev head, const ev *payload, uint64_t now_ns)
{
    ev_clock_def pair;
    if (ev_define_what(head) == EV_DEFINE_CLOCK && head.place >= sizeof pair) {
        memcpy(&pair, payload, sizeof pair);
        timebase_calibrate(&st->clock, &pair, st->last_ticks);
    } else {
        catalog_define(r->desc.catalog, st->process, head, payload, now_ns);
    }
}

static void give_note(reference *r, const reference_stream *st, ev e, uint64_t now_ns)
{
    uint32_t thread = st->fiber == CATALOG_NONE ? SIM_TRACK_NONE : catalog_fiber_at(r->desc.catalog, st->fiber)->thread;
    if (r->desc.note)
        r->desc.note(r->desc.context, &(sim_note){now_ns, ev_kind_of(e), st->process, thread, e.number, e.place, 0});
}

int reference_run(reference *r, uint32_t stream, const ev *events, size_t event_count)
{
    reference_stream *st = &r->streams.items[stream];
    uint32_t gc_track = catalog_process_at(r->desc.catalog, st->process)->gc_track;
    for (size_t i = 0; i < event_count; i++) {
        ev e = events[i];
        ev_kind kind = ev_kind_of(e);
        uint64_t now_ns = timebase_ns(&st->clock.line, ev_ticks_of(e));
        switch (kind) {
        case EV_CALL:
        case EV_RETURN:
        case EV_CUT:
        case EV_FRAME: {
            set_state(r, gc_track, false, 0, now_ns, SIM_CLOSED_RETURN);
            if (st->fiber == CATALOG_NONE)
                st->fiber = go_to(r, st, 0, 0, now_ns);
            int error = stack_event(r, catalog_fiber_at(r->desc.catalog, st->fiber)->track, e, now_ns);
            if (error)
                return error;
            break;
        }
        case EV_SWITCH:
            st->fiber = go_to(r, st, e.number, e.place, now_ns);
            thread_event(r, st, kind, e.place, now_ns);
            break;
        case EV_GC_ENTER: set_state(r, gc_track, true, 0, now_ns, SIM_CLOSED_RETURN); break;
        case EV_GC_EXIT: set_state(r, gc_track, false, 0, now_ns, SIM_CLOSED_RETURN); break;
        case EV_THREAD_STARTED:
        case EV_THREAD_READY:
        case EV_THREAD_SUSPENDED:
        case EV_THREAD_RESUMED:
        case EV_THREAD_EXITED: thread_event(r, st, kind, e.number, now_ns); break;
        case EV_DEFINE:
            define(r, st, e, events + i + 1, now_ns);
            i += ev_define_slots(e.place);
            now_ns = timebase_ns(&st->clock.line, ev_ticks_of(e));
            break;
        default: give_note(r, st, e, now_ns); break;
        }
        st->last_ticks = ev_ticks_of(e);
        st->last_ns = now_ns;
    }
    return 0;
}

int reference_stream_close(reference *r, uint32_t stream)
{
    reference_stream *st = &r->streams.items[stream];
    if (!st->is_open)
        return 0;
    st->is_open = false;
    const catalog *c = r->desc.catalog;
    set_state(r, catalog_process_at(c, st->process)->gc_track, false, 0, st->last_ns, SIM_CLOSED_END);
    for (uint32_t t = catalog_process_at(c, st->process)->first_thread; t != CATALOG_NONE; t = catalog_thread_at(c, t)->next) {
        for (uint32_t f = catalog_thread_at(c, t)->first_fiber; f != CATALOG_NONE; f = catalog_fiber_at(c, f)->next)
            while (track_at(r, catalog_fiber_at(c, f)->track)->frames.count > 0)
                pop(r, catalog_fiber_at(c, f)->track, st->last_ns, SIM_CLOSED_END);
        catalog_thread *thread = catalog_thread_at(c, t);
        set_state(r, thread->gvl_track, false, 0, st->last_ns, SIM_CLOSED_END);
        thread->end_ns = thread->end_ns ? thread->end_ns : st->last_ns;
    }
    return 0;
}

size_t reference_open_frames(const reference *r, uint32_t track, sim_span *out, size_t max)
{
    if (track >= r->tracks.count)
        return 0;
    const track_state *t = &r->tracks.items[track];
    if (t->is_on && max > 0) {
        out[0] = (sim_span){t->since_ns, t->since_ns, t->state, 0, SIM_OPEN, 0, {0}};
        return 1;
    }
    size_t count = t->frames.count < max ? t->frames.count : max;
    for (size_t i = 0; i < count; i++)
        out[i] = (sim_span){t->frames.items[i].begin_ns, t->frames.items[i].begin_ns, t->frames.items[i].method,
                            (uint32_t)i, SIM_OPEN, t->frames.items[i].open_at_start, {0}};
    return count;
}
