#include "sim/walk.h"

#include "base/mem.h"
#include "sim/timebase.h"

#include <errno.h>
#include <string.h>

#define NOT_ON UINT32_MAX /* no GVL state is open */

typedef struct walk_thread {
    uint64_t since_ns;
    uint32_t state; /* sim_gvl or NOT_ON */
} walk_thread;

typedef struct walk_stream {
    uint32_t process, fiber; /* fiber: CATALOG_NONE before the first SWITCH or call */
    timebase clock;
    uint64_t last_ticks, last_ns;
    uint64_t gc_since_ns;
    uint64_t uncounted; /* definitions before the stream's clock is known: they are of the time when it is */
    bool gc_is_on, is_open;
    walk_stream_info info;
} walk_stream;

struct walk {
    walk_listener listener;
    catalog *catalog;
    uint64_t from_ns, to_ns; /* of the events that are counted */
    VEC(walk_stream) streams;
    VEC(walk_fiber) fibers;   /* by id */
    VEC(walk_thread) threads; /* by id */
};

int walk_new(walk **out, catalog *c, const walk_listener *listener)
{
    walk *w = *out = mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->listener = *listener;
    w->catalog = c;
    w->to_ns = UINT64_MAX;
    return 0;
}

void walk_delete(walk *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->fibers.count; i++)
        vec_free(&w->fibers.items[i].frames);
    vec_free(&w->fibers);
    vec_free(&w->threads);
    vec_free(&w->streams);
    mem_free(w);
}

uint32_t walk_stream_open(walk *w, uint32_t process)
{
    walk_stream *st = vec_push(&w->streams);
    if (!st)
        return WALK_STREAM_NONE;
    *st = (walk_stream){.process = process, .fiber = CATALOG_NONE, .is_open = true};
    timebase_init(&st->clock);
    return (uint32_t)(w->streams.count - 1);
}

static bool is_counted(const walk *w, uint64_t at_ns) { return at_ns >= w->from_ns && at_ns < w->to_ns; }

walk_stream_info walk_stream_info_of(const walk *w, uint32_t stream)
{
    const walk_stream *st = &w->streams.items[stream];
    walk_stream_info info = st->info;
    info.event_count += is_counted(w, st->last_ns) ? st->uncounted : 0;
    return info;
}

void walk_count(walk *w, uint64_t from_ns, uint64_t to_ns)
{
    w->from_ns = from_ns;
    w->to_ns = to_ns;
}

/* ---- where things run -------------------------------------------------------------------------------------------- */

/* The id of a thread, with a place for its state. CATALOG_NONE: memory is out. */
static uint32_t thread_of(walk *w, const walk_stream *st, uint32_t number, uint64_t now_ns)
{
    uint32_t id = catalog_thread_of(w->catalog, st->process, number, now_ns);
    if (id == CATALOG_NONE || id < w->threads.count)
        return id;
    if (!vec_reserve(&w->threads, (size_t)id + 1))
        return CATALOG_NONE;
    while (w->threads.count <= id)
        w->threads.items[w->threads.count++] = (walk_thread){.state = NOT_ON};
    return id;
}

static uint32_t fiber_of(walk *w, const walk_stream *st, uint32_t number, uint32_t thread, uint64_t now_ns)
{
    uint32_t id = catalog_fiber_of(w->catalog, st->process, number, thread, now_ns);
    if (id == CATALOG_NONE || !vec_reserve(&w->fibers, (size_t)id + 1))
        return CATALOG_NONE;
    while (w->fibers.count <= id)
        w->fibers.items[w->fibers.count++] = (walk_fiber){0};
    walk_fiber *f = &w->fibers.items[id];
    if (!f->is_known) {
        f->id = id;
        f->thread = catalog_fiber_at(w->catalog, id)->thread;
        f->process = st->process;
        f->is_known = true;
    }
    return id;
}

/* Fibers come by the million, and most never come back when their stack is empty. */
static void leave_fiber(walk *w, uint32_t fiber)
{
    if (fiber != CATALOG_NONE && w->fibers.items[fiber].frames.count == 0)
        vec_free(&w->fibers.items[fiber].frames);
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

static int pop(walk *w, walk_fiber *f, uint64_t now_ns, sim_closed closed)
{
    const walk_frame *top = &f->frames.items[--f->frames.count];
    if (!w->listener.closed)
        return 0;
    return w->listener.closed(w->listener.context, f, top, now_ns > top->begin_ns ? now_ns : top->begin_ns, closed);
}

static int pop_all(walk *w, uint32_t fiber, uint64_t now_ns, sim_closed closed)
{
    if (fiber >= w->fibers.count)
        return 0;
    walk_fiber *f = &w->fibers.items[fiber];
    int error = 0;
    while (f->frames.count > 0 && !error)
        error = pop(w, f, now_ns, closed);
    return error;
}

static int push(walk *w, walk_fiber *f, ev e, uint32_t key, uint64_t now_ns)
{
    walk_frame *top = vec_push(&f->frames);
    if (!top)
        return -ENOMEM;
    *top = (walk_frame){
        .begin_ns = now_ns,
        .key = key,
        .method = (e.number & ~WALK_OPEN_AT_START) | (ev_kind_of(e) == EV_FRAME ? WALK_OPEN_AT_START : 0),
    };
    return w->listener.opened ? w->listener.opened(w->listener.context, f) : 0;
}

/* After all that is deeper is gone: has the top returned? */
static bool returns(const walk_frame *top, ev e, uint32_t key)
{
    if (e.number != 0 && ev_position_is_c(e.place)) /* it may be unwound: wire/event.h */
        return (top->key & 3u) == EV_POSITION_C && (top->method & ~WALK_OPEN_AT_START) == e.number;
    return top->key == key;
}

static int stack_event(walk *w, walk_fiber *f, ev e, ev_kind kind, uint64_t now_ns)
{
    uint32_t key = ev_depth_key(e.place);
    int error = 0;
    while (f->frames.count > 0 && !error) {
        uint32_t top = f->frames.items[f->frames.count - 1].key;
        if (!ev_is_deeper(top, key) && (kind == EV_RETURN || top != key))
            break; /* a RETURN's own frame ends below */
        error = pop(w, f, now_ns, SIM_CLOSED_UNWOUND);
    }
    if (error)
        return error;
    if (kind == EV_CALL || kind == EV_FRAME)
        return push(w, f, e, key, now_ns);
    if (kind == EV_RETURN && f->frames.count > 0 && returns(&f->frames.items[f->frames.count - 1], e, key))
        return pop(w, f, now_ns, SIM_CLOSED_RETURN);
    return 0;
}

/* ---- GC and threads ---------------------------------------------------------------------------------------------- */

static void end_gc(walk *w, walk_stream *st, uint64_t now_ns)
{
    if (!st->gc_is_on)
        return;
    st->gc_is_on = false;
    if (w->listener.gc)
        w->listener.gc(w->listener.context, st->process, st->gc_since_ns, now_ns > st->gc_since_ns ? now_ns : st->gc_since_ns);
}

static void begin_gc(walk_stream *st, uint64_t now_ns)
{
    if (st->gc_is_on)
        return;
    st->gc_is_on = true;
    st->gc_since_ns = now_ns;
}

static void set_state(walk *w, uint32_t thread, uint32_t state, uint64_t now_ns)
{
    walk_thread *t = &w->threads.items[thread];
    if (t->state == state)
        return;
    if (t->state != NOT_ON && now_ns > t->since_ns && w->listener.gvl)
        w->listener.gvl(w->listener.context, thread, (sim_gvl)t->state, t->since_ns, now_ns);
    *t = (walk_thread){now_ns, state};
}

static int thread_ends(walk *w, uint32_t thread, uint64_t now_ns)
{
    catalog_thread *known = catalog_thread_at(w->catalog, thread);
    int error = 0;
    set_state(w, thread, NOT_ON, now_ns);
    known->end_ns = now_ns;
    for (uint32_t f = known->first_fiber; f != CATALOG_NONE && !error; f = catalog_fiber_at(w->catalog, f)->next) {
        error = pop_all(w, f, now_ns, SIM_CLOSED_UNWOUND);
        leave_fiber(w, f < w->fibers.count ? f : CATALOG_NONE);
    }
    return error;
}

static int thread_event(walk *w, uint32_t thread, ev_kind kind, uint64_t now_ns)
{
    if (thread == CATALOG_NONE)
        return -ENOMEM;
    int error = w->listener.thread ? w->listener.thread(w->listener.context, thread, kind) : 0;
    if (error)
        return error;
    const catalog_thread *known = catalog_thread_at(w->catalog, thread);
    switch (kind) {
    case EV_THREAD_READY: set_state(w, thread, SIM_GVL_WAITING, now_ns); break;
    case EV_THREAD_STARTED: set_state(w, thread, SIM_GVL_BLOCKED, now_ns); break;
    case EV_THREAD_SUSPENDED:
        if (w->threads.items[thread].state == NOT_ON && known->end_ns == 0) /* the first sign of a thread that ran all along */
            w->threads.items[thread] = (walk_thread){known->begin_ns, SIM_GVL_RUNNING};
        set_state(w, thread, SIM_GVL_BLOCKED, now_ns);
        break;
    case EV_THREAD_EXITED: return thread_ends(w, thread, now_ns);
    default: set_state(w, thread, SIM_GVL_RUNNING, now_ns); break;
    }
    return 0;
}

static int switch_to(walk *w, walk_stream *st, uint32_t fiber_number, uint32_t thread_number, uint64_t now_ns, uint32_t *thread)
{
    *thread = thread_of(w, st, thread_number, now_ns);
    uint32_t fiber = *thread == CATALOG_NONE ? CATALOG_NONE : fiber_of(w, st, fiber_number, *thread, now_ns);
    if (fiber == CATALOG_NONE)
        return -ENOMEM;
    leave_fiber(w, st->fiber == fiber ? CATALOG_NONE : st->fiber);
    st->fiber = fiber;
    return 0;
}

/* ---- one event after another ------------------------------------------------------------------------------------- */

static void define(walk *w, walk_stream *st, ev head, const ev *payload, uint64_t now_ns)
{
    ev_clock_def pair;
    if (ev_define_what(head) == EV_DEFINE_CLOCK && head.place >= sizeof pair) {
        memcpy(&pair, payload, sizeof pair);
        timebase_calibrate(&st->clock, &pair, st->last_ticks);
        return;
    }
    if (catalog_define(w->catalog, st->process, head, payload, now_ns) && w->listener.defined)
        w->listener.defined(w->listener.context, st->process, head);
}

static int note_event(walk *w, const walk_stream *st, ev e, ev_kind kind, uint64_t now_ns)
{
    uint32_t thread = st->fiber == CATALOG_NONE ? SIM_TRACK_NONE : w->fibers.items[st->fiber].thread;
    if (!w->listener.note)
        return 0;
    return w->listener.note(w->listener.context, &(sim_note){now_ns, kind, st->process, thread, e.number, e.place, 0});
}

static int other_event(walk *w, walk_stream *st, ev e, ev_kind kind, uint64_t now_ns)
{
    uint32_t thread;
    int error;
    switch (kind) {
    case EV_SWITCH:
        error = switch_to(w, st, e.number, e.place, now_ns, &thread);
        return error ? error : thread_event(w, thread, kind, now_ns);
    case EV_SPAN_BEGIN:
    case EV_SPAN_END:
    case EV_MARK: return note_event(w, st, e, kind, now_ns);
    case EV_GC_ENTER: begin_gc(st, now_ns); return 0;
    case EV_GC_EXIT: end_gc(w, st, now_ns); return 0;
    case EV_THREAD_STARTED:
    case EV_THREAD_READY:
    case EV_THREAD_SUSPENDED:
    case EV_THREAD_RESUMED:
    case EV_THREAD_EXITED: return thread_event(w, thread_of(w, st, e.number, now_ns), kind, now_ns);
    default: return 0;
    }
}

static void count_events(const walk *w, walk_stream *st, uint64_t now_ns)
{
    if (is_counted(w, now_ns))
        st->info.event_count += st->uncounted;
    st->uncounted = 0;
}

int walk_run(walk *w, uint32_t stream, const ev *events, size_t event_count)
{
    walk_stream *st = &w->streams.items[stream];
    for (size_t i = 0; i < event_count; i++) {
        ev e = events[i];
        ev_kind kind = ev_kind_of(e);
        uint64_t now_ns = timebase_ns(&st->clock.line, ev_ticks_of(e));
        int error = 0;
        if (kind == EV_CALL || kind == EV_RETURN || kind == EV_CUT || kind == EV_FRAME) {
            uint32_t thread;
            end_gc(w, st, now_ns);
            if (st->fiber == CATALOG_NONE)
                error = switch_to(w, st, 0, 0, now_ns, &thread);
            if (!error)
                error = stack_event(w, &w->fibers.items[st->fiber], e, kind, now_ns);
        } else if (kind == EV_DEFINE) {
            uint32_t slots = ev_define_slots(e.place);
            if (slots < event_count - i)
                define(w, st, e, events + i + 1, now_ns);
            i += slots;
            now_ns = timebase_ns(&st->clock.line, ev_ticks_of(e));
        } else {
            error = other_event(w, st, e, kind, now_ns);
        }
        st->uncounted++;
        if (kind != EV_DEFINE || st->clock.pair_count >= 2)
            count_events(w, st, now_ns);
        st->last_ticks = ev_ticks_of(e);
        st->last_ns = now_ns;
        if (kind != EV_DEFINE) {
            st->info.begin_ns = st->info.begin_ns ? st->info.begin_ns : now_ns;
            st->info.end_ns = now_ns > st->info.end_ns ? now_ns : st->info.end_ns;
        }
        if (error)
            return error;
    }
    return 0;
}

int walk_stream_close(walk *w, uint32_t stream, sim_closed closed)
{
    walk_stream *st = &w->streams.items[stream];
    if (!st->is_open)
        return 0;
    st->is_open = false;
    int error = 0;
    end_gc(w, st, st->last_ns);
    for (uint32_t t = catalog_process_at(w->catalog, st->process)->first_thread; t != CATALOG_NONE && !error;) {
        catalog_thread *known = catalog_thread_at(w->catalog, t);
        for (uint32_t f = known->first_fiber; f != CATALOG_NONE && !error; f = catalog_fiber_at(w->catalog, f)->next)
            error = pop_all(w, f, st->last_ns, closed);
        if (t < w->threads.count)
            set_state(w, t, NOT_ON, st->last_ns);
        known->end_ns = known->end_ns ? known->end_ns : st->last_ns;
        t = known->next;
    }
    return error;
}
