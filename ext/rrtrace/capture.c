#include "capture.h"

#include "frames.h"
#include "join.h"
#include "methods.h"
#include "place.h"
#include "writer.h"

#include <stdlib.h>
#include <unistd.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

capture_state capture;

static struct {
    bool prepared;
    rb_postponed_job_handle_t rearm_job;
    rb_internal_thread_event_hook_t *thread_hook;
    pid_t thread_hook_pid; /* who added it: only he may remove it */
    bool hooks_added;
} once;

static void push_plain(ev_kind kind, uint32_t number)
{
    if (!capture_begin(1))
        return;
    ring_put(capture.ring, 0, ev_make(kind, capture_ticks(), number, 0));
    writer_commit(1);
}

void capture_name_is_stale(void)
{
    ring_lock(capture.ring);
    capture.last_ec = NULL;
    capture.last_thread = 0;
    ring_unlock(capture.ring);
}

/* Under the lock: SWITCH, and before it what was dropped. Returns the slots taken, at most 3. */
static uint64_t put_switch(const void *ec, const place *where)
{
    uint64_t taken = 0;
    if (UNLIKELY(capture.unreported > 0)) {
        ev_dropped_def def = {capture.unreported};
        taken = writer_put_define(0, ev_define_number(EV_DEFINE_DROPPED, 0), &(capture_piece){&def, sizeof def}, 1);
        capture.unreported = 0;
    }
    ring_put(capture.ring, taken, ev_make(EV_SWITCH, capture_ticks(), where->fiber, where->thread));
    capture.last_ec = ec;
    capture.last_thread = where->thread;
    return taken + 1;
}

/* An event whose context is not the last one's: SWITCH and event under one lock; the frames of a fiber that is seen for
 * the first time come in between. raw: NULL when positions are counted. */
__attribute__((noinline)) static void push_after_switch(const void *ec, rb_trace_arg_t *raw, ev_kind kind, uint32_t number,
                                                        uint32_t position)
{
    place where;
    if (!place_find(ec, &where))
        return;
    if (where.is_new && raw) {
        if (!capture_begin(3))
            return;
        writer_commit(put_switch(ec, &where));
        frames_push_open(raw);
    }
    if (!capture_begin(4))
        return;
    uint64_t taken = put_switch(ec, &where);
    ring_put(capture.ring, taken, ev_make(kind, capture_ticks(), number, position));
    writer_commit(taken + 1);
}

static inline __attribute__((always_inline)) void push(const void *ec, rb_trace_arg_t *raw, ev_kind kind, uint32_t number,
                                                       uint32_t position, uint64_t ticks)
{
    ring *r = capture.ring;
    ring_lock(r);
    if (LIKELY(ec == capture.last_ec) && LIKELY(ring_room(r, 1))) {
        ring_put(r, 0, ev_make(kind, capture_in_order(ticks), number, position));
        ring_publish(r, 1);
        ring_unlock(r);
        return;
    }
    ring_unlock(r);
    push_after_switch(ec, raw, kind, number, position);
}

void capture_note(ev_kind kind, uint32_t number, uint32_t id)
{
    place where;
    if (capture_mode_now() != CAPTURE_ON || !place_find(NULL, &where) || !capture_begin(4))
        return;
    uint64_t taken = put_switch(NULL, &where); /* no context is known here: the next event says again where it runs */
    ring_put(capture.ring, taken, ev_make(kind, capture_ticks(), number, id));
    writer_commit(taken + 1);
}

/* ---- Hooks. */

static void rearm(void *unused);

/* GVL: held. True when there is a ring to write to. */
__attribute__((noinline)) static bool wake(void)
{
    uint32_t must_join = CAPTURE_MUST_JOIN;
    /* OFF while joining: whatever runs inside is not traced, and a failure leaves the child untraced. */
    return atomic_compare_exchange_strong(&capture.mode, &must_join, CAPTURE_OFF) && join_in_child();
}

static inline uint32_t method_number(rb_trace_arg_t *raw, VALUE klass, ID id, VALUE iseq, uint32_t kind)
{
    const methods_entry *entry = methods_slot(klass, id);
    if (LIKELY(entry->klass == klass && entry->id == id && entry->iseq == iseq && entry->kind == kind))
        return entry->number;
    return methods_find(raw, klass, id, iseq, kind);
}

/* GVL: held. C_CALL with a GC still open: the VM lost its event flags in the middle of that GC (Ruby bug 19112). */
__attribute__((noinline)) static void events_were_lost(void) { rb_postponed_job_trigger(once.rearm_job); }

/* GVL: held. Every call and return. */
static void on_event(VALUE data, const rb_trace_arg_t *traced)
{
    (void)data;
    if (UNLIKELY(capture_mode_now() != CAPTURE_ON) && !wake())
        return;
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(uintptr_t)traced;
    const vm_arg *arg = (const vm_arg *)(const void *)raw;
    /* Long before it is needed: reading the counter takes some 15 ns on virtual machines, which thus pass beside the
     * lookup and the lock. capture_in_order mends what another thread may have stored in between. */
    uint64_t ticks = clock_ticks(capture.clock_source);
    uint32_t position = vm_position(arg->frame), number = 0;
    ev_kind kind = EV_RETURN;
    VALUE klass;
    switch (arg->event) {
    case RUBY_EVENT_CALL:
        if (LIKELY(capture.by_entry)) {
            number = method_number(raw, vm_frame_entry(arg->frame), METHODS_BY_ADDRESS, arg->frame->iseq, EV_METHOD_RUBY);
        } else {
            klass = rb_tracearg_defined_class(raw); /* fills in arg->id */
            number = method_number(raw, klass, arg->id, 0, EV_METHOD_RUBY);
        }
        if (UNLIKELY(number == 0))
            return;
        kind = EV_CALL;
        break;
    case RUBY_EVENT_RETURN:
        break;
    case RUBY_EVENT_C_CALL:
        position |= EV_POSITION_C;
        number = method_number(raw, arg->klass, arg->id, 0, EV_METHOD_C);
        if (UNLIKELY(number == 0))
            return;
        kind = EV_CALL;
        if (UNLIKELY(atomic_load_explicit(&capture.gc_open, memory_order_relaxed)))
            events_were_lost();
        break;
    case RUBY_EVENT_C_RETURN:
        position |= EV_POSITION_C;
        if (arg->data == Qnil) /* may be an unwinding, whose position is another: matched by its number */
            number = method_number(raw, arg->klass, arg->id, 0, EV_METHOD_C);
        break;
    case RUBY_EVENT_RESCUE:
        kind = EV_CUT;
        break;
    case RUBY_EVENT_B_CALL:
        position |= EV_POSITION_BLOCK;
        if (LIKELY(capture.by_entry)) {
            number = method_number(raw, arg->frame->iseq, METHODS_BY_ADDRESS, arg->frame->iseq, EV_METHOD_BLOCK);
        } else {
            klass = rb_tracearg_defined_class(raw);
            number = methods_find(raw, NIL_P(klass) ? 0 : klass, arg->id, 0, EV_METHOD_BLOCK);
        }
        if (UNLIKELY(number == 0))
            return;
        kind = EV_CALL;
        break;
    case RUBY_EVENT_B_RETURN:
        position |= EV_POSITION_BLOCK;
        break;
    default:
        return;
    }
    push(arg->ec, raw, kind, number, position, ticks);
    if (UNLIKELY(number != 0 && (position & EV_POSITION_C) == EV_POSITION_C) &&
        UNLIKELY(methods_is_thread_name(arg->klass, arg->id)))
        capture_name_is_stale();
}

/* Depth of every fiber, by number, where positions must be counted. */
static struct {
    uint32_t *depths; /* owned; [0, count) */
    uint32_t count;
} counted;

/* GVL: held. The hook on a Ruby whose private memory is not as vm.h says: public accessors, and a count for a position. */
static void on_event_counted(VALUE data, const rb_trace_arg_t *traced)
{
    (void)data;
    if (capture_mode_now() != CAPTURE_ON && !wake())
        return;
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(uintptr_t)traced;
    rb_event_flag_t event = rb_tracearg_event_flag(raw);
    if (event == RUBY_EVENT_RESCUE)
        return;
    VALUE klass = rb_tracearg_defined_class(raw), name = rb_tracearg_method_id(raw);
    bool is_c = event & (RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN);
    bool is_block = event & (RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN);
    bool is_call = event & (RUBY_EVENT_CALL | RUBY_EVENT_C_CALL | RUBY_EVENT_B_CALL);
    uint32_t kind = is_c ? EV_METHOD_C : is_block ? EV_METHOD_BLOCK : EV_METHOD_RUBY, number = 0;
    if (is_call)
        number = methods_find(raw, NIL_P(klass) ? 0 : klass, NIL_P(name) ? 0 : SYM2ID(name), 0, kind);
    place where;
    if ((is_call && number == 0) || !place_find(NULL, &where) ||
        !place_make_room(&counted.depths, &counted.count, where.fiber, sizeof *counted.depths))
        return;
    uint32_t *depth = &counted.depths[where.fiber];
    if (is_call)
        ++*depth;
    uint32_t position = 0u - (*depth + 1) * 64u;
    position |= is_c ? EV_POSITION_C : is_block ? EV_POSITION_BLOCK : EV_POSITION_METHOD;
    if (!is_call && *depth > 0)
        --*depth;
    const void *fiber = (const void *)(uintptr_t)rb_fiber_current(); /* stands for the context; forgotten at each GC */
    push(fiber, NULL, is_call ? EV_CALL : EV_RETURN, number, position, clock_ticks(capture.clock_source));
}

/* GVL: held, inside the GC: no Ruby object is touched, nothing is allocated. */
static void on_gc(VALUE data, const rb_trace_arg_t *traced)
{
    (void)data;
    if (capture_mode_now() != CAPTURE_ON)
        return;
    if (rb_tracearg_event_flag((rb_trace_arg_t *)(uintptr_t)traced) == RUBY_INTERNAL_EVENT_GC_ENTER) {
        atomic_fetch_add_explicit(&capture.generation, 1, memory_order_relaxed);
        atomic_store_explicit(&capture.gc_open, 1, memory_order_relaxed);
        push_plain(EV_GC_ENTER, 0);
        return;
    }
    atomic_store_explicit(&capture.gc_open, 0, memory_order_relaxed);
    if (!capture_begin(1))
        return;
    ring_put(capture.ring, 0, ev_make(EV_GC_EXIT, capture_ticks(), 0, 0));
    capture.last_ec = NULL; /* fibers may have died; their addresses may come back */
    writer_commit(1);
}

/* GVL: not held (but for RESUMED), perhaps on another native thread than the one it speaks of. */
static void on_thread(rb_event_flag_t event, const rb_internal_thread_event_data_t *event_data, void *user_data)
{
    (void)user_data;
    /* Both orders are sequential: either capture_drain_users sees this thread, or this thread sees the mode go off. */
    atomic_fetch_add(&capture.users, 1);
    if (atomic_load(&capture.mode) == CAPTURE_ON) {
        ev_kind kind = event == RUBY_INTERNAL_THREAD_EVENT_STARTED     ? EV_THREAD_STARTED
                       : event == RUBY_INTERNAL_THREAD_EVENT_READY     ? EV_THREAD_READY
                       : event == RUBY_INTERNAL_THREAD_EVENT_RESUMED   ? EV_THREAD_RESUMED
                       : event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED ? EV_THREAD_SUSPENDED
                                                                       : EV_THREAD_EXITED;
        uint32_t number = place_thread_number(event_data->thread);
        if (capture_begin(1)) {
            ring_put(capture.ring, 0, ev_make(kind, capture_ticks(), number, 0));
            if (kind == EV_THREAD_SUSPENDED) { /* a call after it proves by its SWITCH that the thread runs */
                capture.last_ec = NULL;
                capture.last_thread = 0;
            }
            writer_commit(1);
        }
    }
    atomic_fetch_sub(&capture.users, 1);
}

/* ---- On and off. */

typedef void (*raw_hook)(VALUE, const rb_trace_arg_t *);

static rb_event_hook_func_t as_hook(raw_hook function) { return (rb_event_hook_func_t)(void (*)(void))function; }
static raw_hook call_hook(void) { return capture.positions_counted ? on_event_counted : on_event; }

static void add_hooks(void)
{
    rb_event_flag_t events = RUBY_EVENT_CALL | RUBY_EVENT_RETURN | RUBY_EVENT_RESCUE;
    if (capture.c_calls)
        events |= RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN;
    if (capture.blocks)
        events |= RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN;
    rb_event_hook_flag_t flags = RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG;
    rb_add_event_hook2(as_hook(call_hook()), events, Qnil, flags);
    rb_add_event_hook2(as_hook(on_gc), RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, Qnil, flags);
    once.hooks_added = true;
}

static void remove_hooks(void)
{
    if (!once.hooks_added)
        return;
    rb_remove_event_hook(as_hook(call_hook()));
    rb_remove_event_hook(as_hook(on_gc));
    once.hooks_added = false;
}

/* GVL: held, between two instructions of the program: no GC can be open here, unless its end was lost. */
static void rearm(void *unused)
{
    (void)unused;
    if (capture_mode_now() != CAPTURE_ON || !atomic_exchange(&capture.gc_open, 0))
        return;
    push_plain(EV_GC_EXIT, 0);
    remove_hooks();
    add_hooks();
}

int capture_prepare(const char **why)
{
    if (once.prepared)
        return 0;
    if (place_prepare(why) != 0)
        return -1;
    capture.clock_source = clock_source_detect();
    once.rearm_job = rb_postponed_job_preregister(0, rearm, NULL);
    methods_prepare();
    once.prepared = true;
    return 0;
}

void capture_start(ring *r, bool drop, bool c_calls, bool blocks, bool from_child, const ev_clock_def clocks[2])
{
    capture.ring = r;
    capture.main_thread = rb_thread_main();
    capture.drop = drop;
    capture.c_calls = c_calls;
    capture.blocks = blocks;
    capture.positions_counted = !frames_known.positions_ok;
    capture.by_entry = frames_known.frames_ok;
    capture.last_ec = NULL;
    capture.last_thread = 0;
    capture.unreported = 0;
    capture.last_ticks = 0;
    capture.epoch++;
    capture.span_count = 0;
    atomic_store(&capture.gc_open, 0);
    free(counted.depths);
    counted.depths = NULL;
    counted.count = 0;
    methods_reset();
    place_reset();
    atomic_store(&capture.mode, CAPTURE_ON);
    capture_define_clock(&clocks[0], true); /* first of all: whoever reads on knows the time of what follows */
    capture_define_clock(&clocks[1], true);
    capture_define_process();
    if (from_child)
        return; /* the hooks are inherited */
    if (!once.thread_hook) {
        once.thread_hook = rb_internal_thread_add_event_hook(
            on_thread,
            RUBY_INTERNAL_THREAD_EVENT_STARTED | RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED,
            NULL);
        once.thread_hook_pid = getpid();
    }
    add_hooks();
}

void capture_drain_users(void)
{
    for (unsigned step = 0; atomic_load(&capture.users) > 0; step++)
        writer_wait(step);
}

void capture_stop(void)
{
    atomic_store(&capture.mode, CAPTURE_OFF);
    remove_hooks();
    if (once.thread_hook && once.thread_hook_pid == getpid()) {
        rb_internal_thread_remove_event_hook(once.thread_hook);
        once.thread_hook = NULL;
    }
    capture_drain_users();
    capture.ring = NULL;
}

void capture_forget_in_child(void)
{
    atomic_store(&capture.users, 0);
    atomic_store(&capture.gc_open, 0);
    capture.ring = NULL;
}
