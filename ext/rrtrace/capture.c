#include "capture.h"

#include "frames.h"
#include "join.h"
#include "methods.h"
#include "ractors.h"
#include "select.h"
#include "target.h"
#include "writer.h"

#include <stdlib.h>
#include <unistd.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

capture_shared capture;
stream capture_main = {.number = 1, .socket = {.fd = -1}};

static struct {
    bool prepared;
    rb_postponed_job_handle_t rearm_job;
    rb_internal_thread_event_hook_t *thread_hook;
    pid_t thread_hook_pid; /* who added it: only he may remove it */
    bool hooks_added;
} once;

void capture_push(stream *s, ev_kind kind, uint32_t number, uint32_t position)
{
    if (!capture_begin(s, 1))
        return;
    ring_put(s->ring, 0, ev_make(kind, capture_ticks(s), number, position));
    writer_commit(s, 1);
}

/* Have the current thread's name read once more before its next event. */
static void name_is_stale(stream *s)
{
    ring_lock(s->ring);
    s->last_ec = NULL;
    s->last_thread = 0;
    ring_unlock(s->ring);
}

/* Under the lock: SWITCH, and before it what was dropped. Returns the slots taken, at most 3. */
static uint64_t put_switch(stream *s, const void *ec, const place *where)
{
    uint64_t taken = 0;
    if (UNLIKELY(s->unreported > 0)) {
        ev_dropped_def def = {s->unreported};
        taken = writer_put_define(s, 0, ev_define_number(EV_DEFINE_DROPPED, 0), &(capture_piece){&def, sizeof def}, 1);
        s->unreported = 0;
    }
    ring_put(s->ring, taken, ev_make(EV_SWITCH, capture_ticks(s), where->fiber, where->thread));
    s->last_ec = ec;
    s->last_thread = where->thread;
    return taken + 1;
}

/* An event whose context is not the last one's: SWITCH and event under one lock; the frames of a fiber that is seen for
 * the first time come in between. raw: NULL when positions are counted. */
__attribute__((noinline)) static void push_after_switch(stream *s, const void *ec, rb_trace_arg_t *raw, ev_kind kind,
                                                        uint32_t number, uint32_t position)
{
    place where;
    if (!place_find(s, ec, &where))
        return;
    if (where.is_new && raw) {
        if (!capture_begin(s, 3))
            return;
        writer_commit(s, put_switch(s, ec, &where));
        frames_push_open(s, raw);
    }
    if (!capture_begin(s, 4))
        return;
    uint64_t taken = put_switch(s, ec, &where);
    ring_put(s->ring, taken, ev_make(kind, capture_ticks(s), number, position));
    writer_commit(s, taken + 1);
}

static void push(stream *s, const void *ec, rb_trace_arg_t *raw, ev_kind kind, uint32_t number, uint32_t position,
                 uint64_t ticks)
{
    ring *r = s->ring;
    ring_lock(r);
    bool is_written = ec == s->last_ec && ring_push(r, ev_make(kind, capture_in_order(s, ticks), number, position));
    ring_unlock(r);
    if (!is_written)
        push_after_switch(s, ec, raw, kind, number, position);
}

void capture_note(stream *s, ev_kind kind, uint32_t number, uint32_t id)
{
    place where;
    if (capture_mode_now(s) != CAPTURE_ON || !place_find(s, NULL, &where) || !capture_begin(s, 4))
        return;
    uint64_t taken = put_switch(s, NULL, &where); /* no context is known here: the next event says again where it runs */
    ring_put(s->ring, taken, ev_make(kind, capture_ticks(s), number, id));
    writer_commit(s, taken + 1);
}

/* ---- Hooks. */

/* GVL: held. True when there is a ring to write to. */
__attribute__((noinline)) static bool wake(stream *s)
{
    uint32_t must_join = CAPTURE_MUST_JOIN;
    /* OFF while joining: whatever runs inside is not traced, and a failure leaves child or Ractor untraced. */
    return atomic_compare_exchange_strong(&s->mode, &must_join, CAPTURE_OFF) ? join_in_hook(s) : join_is_over(s);
}

/* GVL: held. C_CALL with a GC still open: the VM lost its event flags in the middle of that GC (Ruby bug 19112). */
__attribute__((noinline)) static void events_were_lost(void) { rb_postponed_job_trigger(once.rearm_job); }

/* What has no straight path: an unknown method, another context, a full ring, a rare kind of event. */
__attribute__((noinline)) static void on_event_slowly(stream *s, const rb_trace_arg_t *traced)
{
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(uintptr_t)traced;
    const vm_arg *arg = (const vm_arg *)(const void *)raw;
    if (capture_mode_now(s) != CAPTURE_ON && !wake(s))
        return;
    uint64_t ticks = clock_ticks(s->clock_source);
    uint32_t position = vm_position(arg->frame), number = 0;
    ev_kind kind = EV_CALL;
    switch (arg->event) {
    case RUBY_EVENT_CALL:
        if (frames_known.frames_ok)
            number = methods_find(s, raw, vm_frame_entry(arg->frame), METHODS_BY_ADDRESS, arg->frame->iseq, EV_METHOD_RUBY);
        else {
            VALUE klass = rb_tracearg_defined_class(raw); /* fills in arg->id */
            number = methods_find(s, raw, klass, arg->id, 0, EV_METHOD_RUBY);
        }
        break;
    case RUBY_EVENT_RETURN:
        kind = EV_RETURN;
        break;
    case RUBY_EVENT_C_CALL:
        position |= EV_POSITION_C;
        number = methods_find(s, raw, arg->klass, arg->id, 0, EV_METHOD_C);
        if (atomic_load_explicit(&capture.gc_open_in, memory_order_relaxed))
            events_were_lost();
        break;
    case RUBY_EVENT_C_RETURN:
        kind = EV_RETURN;
        position |= EV_POSITION_C;
        if (arg->data == Qnil) /* may be an unwinding, whose position is another: matched by its number */
            number = methods_find(s, raw, arg->klass, arg->id, 0, EV_METHOD_C);
        break;
    case RUBY_EVENT_RESCUE:
        kind = EV_CUT;
        break;
    case RUBY_EVENT_B_CALL:
        position |= EV_POSITION_BLOCK;
        if (frames_known.frames_ok) {
            number = methods_find(s, raw, arg->frame->iseq, METHODS_BY_ADDRESS, arg->frame->iseq, EV_METHOD_BLOCK);
        } else {
            VALUE klass = rb_tracearg_defined_class(raw);
            number = methods_find(s, raw, NIL_P(klass) ? 0 : klass, arg->id, 0, EV_METHOD_BLOCK);
        }
        break;
    case RUBY_EVENT_B_RETURN:
        kind = EV_RETURN;
        position |= EV_POSITION_BLOCK;
        break;
    default:
        return;
    }
    if (kind == EV_CALL && number == 0)
        return;
    push(s, arg->ec, raw, kind, number, position, ticks);
    if (arg->event == RUBY_EVENT_C_CALL && methods_is_thread_name(arg->klass, arg->id))
        name_is_stale(s);
}

/* A method's number, 0 when the front cache has none or the method is left out, and the time. The clock takes as long as memory
 * that is not at hand: so it is read in between asking for the cache's line and looking at it. */
static inline __attribute__((always_inline)) uint32_t find_and_time(stream *s, VALUE klass, ID id, VALUE iseq, uint32_t kind, uint64_t *ticks)
{
    const methods_entry *pair = methods_pair(&s->methods, klass, id);
    __builtin_prefetch(pair);
    *ticks = clock_counter();
    const methods_entry *entry = methods_known_in(pair, klass, id, iseq, kind);
    return entry ? entry->number : 0;
}

/* What nearly every event is: a call of a known method, or a return, in the context that the last event was in, with room in
 * the ring. Calls nothing, so that the hook has no registers to save. False: nothing was written. */
static inline __attribute__((always_inline)) bool push_straight(stream *s, const vm_arg *arg)
{
    if (UNLIKELY(capture_mode_now(s) != CAPTURE_ON) || UNLIKELY(!clock_is_counter(s->clock_source)))
        return false;
    /* The clock is read long before its time is needed: some 20 ns on virtual machines, which thus pass beside the lookup and
     * the lock. capture_in_order mends what another thread may have stored in between. */
    uint64_t ticks;
    uint32_t position = vm_position(arg->frame), number = 0;
    ev_kind kind = EV_CALL;
    switch (arg->event) {
    case RUBY_EVENT_CALL:
        number = find_and_time(s, vm_frame_entry(arg->frame), METHODS_BY_ADDRESS, arg->frame->iseq, EV_METHOD_RUBY, &ticks);
        break;
    case RUBY_EVENT_RETURN:
        kind = EV_RETURN;
        ticks = clock_counter();
        break;
    case RUBY_EVENT_C_CALL:
        if (UNLIKELY(atomic_load_explicit(&capture.gc_open_in, memory_order_relaxed)))
            return false;
        position |= EV_POSITION_C;
        number = find_and_time(s, arg->klass, arg->id, 0, EV_METHOD_C, &ticks);
        break;
    case RUBY_EVENT_C_RETURN:
        position |= EV_POSITION_C;
        kind = EV_RETURN;
        if (arg->data != Qnil) {
            ticks = clock_counter();
            break;
        }
        number = find_and_time(s, arg->klass, arg->id, 0, EV_METHOD_C, &ticks);
        if (UNLIKELY(number == 0))
            return false;
        break;
    default:
        return false;
    }
    if (kind == EV_CALL && UNLIKELY(number == 0))
        return false;
    ring *r = s->ring;
    if (!ring_try_lock(r))
        return false;
    bool is_written =
        LIKELY(arg->ec == s->last_ec) && LIKELY(ring_push(r, ev_make(kind, capture_in_order(s, ticks), number, position)));
    ring_unlock(r);
    return is_written;
}

/* GVL: held. Every event of the VM that is asked for. */
static void on_event(VALUE data, const rb_trace_arg_t *traced)
{
    stream *s = capture_of_data(data);
    if (!push_straight(s, (const vm_arg *)(const void *)traced))
        on_event_slowly(s, traced);
}

void capture_event(stream *s, const rb_trace_arg_t *arg) { on_event(capture_as_data(s), arg); }

/* GVL: held. The same where frames can't be read beyond their address. */
static void on_event_unsure(VALUE data, const rb_trace_arg_t *traced) { on_event_slowly(capture_of_data(data), traced); }

/* GVL: held. The hook on a Ruby whose private memory is not as vm.h says: public accessors, and a count for a position. */
static void on_event_counted(VALUE data, const rb_trace_arg_t *traced)
{
    stream *s = capture_of_data(data);
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(uintptr_t)traced;
    rb_event_flag_t event = rb_tracearg_event_flag(raw);
    if (event == RUBY_EVENT_RESCUE || (capture_mode_now(s) != CAPTURE_ON && !wake(s)))
        return;
    VALUE klass = rb_tracearg_defined_class(raw), name = rb_tracearg_method_id(raw);
    bool is_c = event & (RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN);
    bool is_block = event & (RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN);
    bool is_call = event & (RUBY_EVENT_CALL | RUBY_EVENT_C_CALL | RUBY_EVENT_B_CALL);
    uint32_t kind = is_c ? EV_METHOD_C : is_block ? EV_METHOD_BLOCK : EV_METHOD_RUBY, number = 0;
    if (is_call || select_is_on())
        number = methods_find(s, raw, NIL_P(klass) ? 0 : klass, NIL_P(name) ? 0 : SYM2ID(name), 0, kind);
    if (!is_call && number == 0 && s->methods.verdict != METHODS_WANTED) /* its call was not counted */
        return;
    if (!is_call)
        number = 0;
    place where;
    if ((is_call && number == 0) || !place_find(s, NULL, &where) ||
        !place_make_room(&s->depths, &s->depth_count, where.fiber, sizeof *s->depths))
        return;
    uint32_t *depth = &s->depths[where.fiber];
    if (is_call)
        ++*depth;
    uint32_t position = 0u - (*depth + 1) * 64u;
    position |= is_c ? EV_POSITION_C : is_block ? EV_POSITION_BLOCK : EV_POSITION_METHOD;
    if (!is_call && *depth > 0)
        --*depth;
    const void *fiber = (const void *)(uintptr_t)rb_fiber_current(); /* stands for the context; forgotten at each GC */
    push(s, fiber, NULL, is_call ? EV_CALL : EV_RETURN, number, position, clock_ticks(s->clock_source));
}

/* Fibers of all Ractors may have died in a GC. */
static void forget_contexts_of_others(const stream *s)
{
    for (stream *other = &capture_main; other; other = ractors_next(other)) {
        if (other == s || !capture_enter(other))
            continue;
        ring_lock(other->ring);
        other->last_ec = NULL;
        ring_unlock(other->ring);
        capture_leave(other);
    }
}

/* GVL: held, inside the GC: no Ruby object is touched, nothing is allocated. All Ractors stand still. */
static void on_gc(VALUE data, const rb_trace_arg_t *traced)
{
    stream *s = capture_of_data(data);
    bool is_on = capture_mode_now(s) == CAPTURE_ON;
    if (rb_tracearg_event_flag((rb_trace_arg_t *)(uintptr_t)traced) == RUBY_INTERNAL_EVENT_GC_ENTER) {
        if (!is_on)
            return;
        atomic_fetch_add_explicit(&capture.generation, 1, memory_order_relaxed);
        atomic_store_explicit(&capture.gc_open_in, s, memory_order_relaxed);
        capture_push(s, EV_GC_ENTER, 0, 0);
        return;
    }
    forget_contexts_of_others(s);
    if (!is_on)
        return;
    atomic_store_explicit(&capture.gc_open_in, NULL, memory_order_relaxed);
    if (!capture_begin(s, 1)) /* who drops an event forgets the context, too */
        return;
    ring_put(s->ring, 0, ev_make(EV_GC_EXIT, capture_ticks(s), 0, 0));
    s->last_ec = NULL; /* fibers may have died; their addresses may come back */
    writer_commit(s, 1);
}

static void write_thread_event(stream *s, ev_kind kind, VALUE thread)
{
    uint32_t number = place_thread_number(s, thread);
    if (!capture_begin(s, 1))
        return;
    ring_put(s->ring, 0, ev_make(kind, capture_ticks(s), number, 0));
    if (kind == EV_THREAD_SUSPENDED) { /* a call after it proves by its SWITCH that the thread runs */
        s->last_ec = NULL;
        s->last_thread = 0;
    }
    writer_commit(s, 1);
}

/* GVL: not held (but for RESUMED), perhaps on another native thread than the one it speaks of. */
static void on_thread(rb_event_flag_t event, const rb_internal_thread_event_data_t *event_data, void *user_data)
{
    (void)user_data;
    VALUE thread = event_data->thread;
    if (!join_is_on())
        return;
    stream *s = event == RUBY_INTERNAL_THREAD_EVENT_RESUMED ? ractors_adopt(thread) : ractors_stream_of(thread);
    if (!s)
        return;
    if (capture_enter(s)) {
        write_thread_event(s,
                           event == RUBY_INTERNAL_THREAD_EVENT_STARTED     ? EV_THREAD_STARTED
                           : event == RUBY_INTERNAL_THREAD_EVENT_READY     ? EV_THREAD_READY
                           : event == RUBY_INTERNAL_THREAD_EVENT_RESUMED   ? EV_THREAD_RESUMED
                           : event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED ? EV_THREAD_SUSPENDED
                                                                           : EV_THREAD_EXITED,
                           thread);
        capture_leave(s);
    }
    if (event == RUBY_INTERNAL_THREAD_EVENT_EXITED && s != &capture_main && thread == s->main_thread)
        join_end_ractor(s);
}

/* ---- On and off. */

typedef void (*raw_hook)(VALUE, const rb_trace_arg_t *);

static rb_event_hook_func_t as_hook(raw_hook function) { return (rb_event_hook_func_t)(void (*)(void))function; }

void capture_hooks(capture_hook hooks[CAPTURE_HOOKS])
{
    rb_event_flag_t events = RUBY_EVENT_CALL | RUBY_EVENT_RETURN | RUBY_EVENT_RESCUE;
    if (capture.options.c_calls)
        events |= RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN;
    if (capture.options.blocks)
        events |= RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN;
    raw_hook function = frames_known.frames_ok ? on_event : frames_known.positions_ok ? on_event_unsure : on_event_counted;
    hooks[0] = (capture_hook){as_hook(function), events};
    if (capture.by_target)
        hooks[0] = (capture_hook){as_hook(target_on_event), TARGET_EVENTS};
    hooks[1] = (capture_hook){as_hook(on_gc), RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT};
}

void capture_add_event_hooks(stream *s)
{
    capture_hook hooks[CAPTURE_HOOKS];
    capture_hooks(hooks);
    for (int i = 0; i < CAPTURE_HOOKS; i++)
        rb_add_event_hook2(hooks[i].function, hooks[i].events, capture_as_data(s), CAPTURE_HOOK_FLAGS);
}

static void remove_event_hooks(void)
{
    rb_remove_event_hook(as_hook(on_event));
    rb_remove_event_hook(as_hook(on_event_unsure));
    rb_remove_event_hook(as_hook(on_event_counted));
    rb_remove_event_hook(as_hook(target_on_event));
    rb_remove_event_hook(as_hook(on_gc));
}

void capture_add_hooks(stream *s)
{
    if (!once.thread_hook) {
        once.thread_hook = rb_internal_thread_add_event_hook(
            on_thread,
            RUBY_INTERNAL_THREAD_EVENT_STARTED | RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED,
            NULL);
        once.thread_hook_pid = getpid();
    }
    capture_add_event_hooks(s);
    once.hooks_added = true;
    if (capture.by_target)
        target_start();
}

/* Does nothing, but adding and removing it has CRuby work out anew which events the current Ractor's hooks want. */
static void touch(VALUE data, const rb_trace_arg_t *traced)
{
    (void)data;
    (void)traced;
}

/* GVL: held, between two instructions of the program: no GC can be open here, unless its end was lost. Perhaps in another Ractor
 * than the one whose GC it was: CRuby's flags are the process's. */
static void rearm(void *unused)
{
    (void)unused;
    stream *here = ractors_current(), *s = atomic_load(&capture.gc_open_in);
    if (!here || capture_mode_now(here) != CAPTURE_ON || !s || !atomic_compare_exchange_strong(&capture.gc_open_in, &s, NULL))
        return;
    if (capture_enter(s)) {
        capture_push(s, EV_GC_EXIT, 0, 0);
        capture_leave(s);
    }
    capture_hook hooks[CAPTURE_HOOKS];
    capture_hooks(hooks);
    for (int i = 0; i < CAPTURE_HOOKS; i++)
        rb_add_event_hook2(as_hook(touch), hooks[i].events, Qnil, CAPTURE_HOOK_FLAGS);
    rb_remove_event_hook(as_hook(touch));
}

int capture_prepare(const char **why)
{
    if (once.prepared)
        return 0;
    if (place_prepare(why) != 0)
        return -1;
    capture_main.clock_source = clock_source_detect();
    once.rearm_job = rb_postponed_job_preregister(0, rearm, NULL);
    methods_prepare();
    once.prepared = true;
    return 0;
}

void capture_open(stream *s, const ev_clock_def clocks[2])
{
    s->clock_source = capture_main.clock_source;
    s->options = capture.options;
    s->last_ec = NULL;
    s->last_thread = 0;
    s->unreported = 0;
    s->last_ticks = 0;
    s->epoch = atomic_fetch_add(&capture.epoch, 1) + 1;
    s->main_thread = rb_thread_main(); /* the current Ractor's */
    free(s->depths);
    s->depths = NULL;
    s->depth_count = 0;
    methods_reset(&s->methods);
    place_reset(s);
    place_thread_number(s, s->main_thread); /* the main thread of a process is number 1 */
    atomic_store(&s->mode, CAPTURE_ON);
    capture_define_clock(s, &clocks[0], true); /* first of all: whoever reads on knows the time of what follows */
    capture_define_clock(s, &clocks[1], true);
    capture_define_process(s);
}

void capture_start(stream *s, capture_options options, const ev_clock_def clocks[2])
{
    capture.options = options;
    capture.by_target = frames_known.code_ok && select_names_what();
    capture.main_thread = rb_thread_main();
    atomic_store(&capture.gc_open_in, NULL);
    atomic_store(&capture.thread_count, 0);
    atomic_store(&capture.fiber_count, 0);
    atomic_store(&capture.span_count, 0);
    s->number = 1;
    capture_open(s, clocks);
}

void capture_drain_users(stream *s)
{
    for (unsigned step = 0; atomic_load(&s->users) > 0; step++)
        writer_wait(step);
}

void capture_stop(stream *s)
{
    atomic_store(&s->mode, CAPTURE_OFF);
    target_stop();
    if (once.hooks_added)
        remove_event_hooks();
    once.hooks_added = false;
    if (once.thread_hook && once.thread_hook_pid == getpid()) {
        rb_internal_thread_remove_event_hook(once.thread_hook);
        once.thread_hook = NULL;
    }
    capture_drain_users(s);
}

void capture_forget_in_child(void)
{
    atomic_store(&capture.gc_open_in, NULL);
    target_fix_lock_in_child();
    for (stream *s = &capture_main; s; s = ractors_next(s)) {
        atomic_store(&s->users, 0);
        s->ring = NULL; /* MADV_DONTFORK: it is not mapped here */
    }
}
