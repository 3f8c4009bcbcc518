#include "capture.h"

#include "frames.h"
#include "join.h"
#include "methods.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <ruby/version.h>
#include <ruby/thread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

capture_state capture;

static struct {
    bool prepared;
    rb_internal_thread_specific_key_t key; /* each thread's number; see thread_number */
    ID id_fiber;                           /* hidden ivar of Fiber objects: no legal ivar name */
    ID id_name;
    VALUE name_method;                     /* Thread's own #name, unbound; registered */
    rb_postponed_job_handle_t rearm_job;
    rb_internal_thread_event_hook_t *thread_hook;
    pid_t thread_hook_pid; /* who added it: only he may remove it */
    bool hooks_added;
} once;

/* Execution contexts met lately. Only a cache: the truth is the number in the Fiber object, which dies with the fiber. */
enum { CONTEXT_BITS = 10 };
typedef struct context_entry {
    const void *ec;
    uint64_t generation; /* of the GC when this was last known to be true */
    uint32_t fiber, thread;
} context_entry;
static context_entry contexts[1u << CONTEXT_BITS];

typedef struct place {
    uint32_t fiber, thread;
    bool is_new; /* the fiber was met for the first time */
} place;

/* ---- The ring. */

static uint32_t mode_now(void) { return atomic_load_explicit(&capture.mode, memory_order_relaxed); }

/* Wait a little for the reader, longer each time. 1 ms at most: a reader that died must free the program within 100 ms. */
static void wait_step(unsigned step)
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

/* The lock is held and there is no room. true: the lock is held and there is. */
__attribute__((noinline)) static bool begin_full(uint64_t count)
{
    ring *r = capture.ring;
    if (capture.drop) {
        atomic_store_explicit(&r->dropped, atomic_load_explicit(&r->dropped, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        capture.unreported++;
        capture.last_ec = NULL; /* the next event that fits proves again where it runs */
        ring_unlock(r);
        return false;
    }
    atomic_store_explicit(&r->waits, atomic_load_explicit(&r->waits, memory_order_relaxed) + 1, memory_order_relaxed);
    for (unsigned step = 0;; step++) {
        ring_unlock(r);
        wait_step(step);
        if (mode_now() != CAPTURE_ON) /* the watcher saw the reader go */
            return false;
        ring_lock(r);
        if (ring_room(r, count))
            return true;
    }
}

bool capture_begin(uint64_t count)
{
    ring *r = capture.ring;
    if (mode_now() != CAPTURE_ON)
        return false;
    ring_lock(r);
    return LIKELY(ring_room(r, count)) || begin_full(count);
}

static void commit(uint64_t count)
{
    ring_publish(capture.ring, count);
    ring_unlock(capture.ring);
}

static void push_plain(ev_kind kind, uint32_t number)
{
    if (!capture_begin(1))
        return;
    ring_put(capture.ring, 0, ev_make(kind, capture_ticks(), number, 0));
    commit(1);
}

/* Under the lock: a definition's head and payload into the slots from offset on. Returns the slots taken. */
static uint64_t put_define(uint64_t offset, uint32_t number, const capture_piece *pieces, int piece_count)
{
    uint32_t total = 0, filled = 0;
    for (int i = 0; i < piece_count; i++)
        total += pieces[i].count;
    ring_put(capture.ring, offset, ev_make(EV_DEFINE, capture_ticks(), number, total));
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
                ring_put(capture.ring, offset + taken++, raw);
                filled = 0;
            }
        }
    }
    if (filled > 0) {
        memset(slot + filled, 0, sizeof slot - filled);
        ev raw;
        memcpy(&raw, slot, sizeof raw);
        ring_put(capture.ring, offset + taken++, raw);
    }
    return taken;
}

bool capture_define(ev_define what, uint32_t number, const capture_piece *pieces, int piece_count)
{
    uint32_t total = 0;
    for (int i = 0; i < piece_count; i++)
        total += pieces[i].count;
    if (!capture_begin(1 + ev_define_slots(total)))
        return false;
    commit(put_define(0, ev_define_number(what, number), pieces, piece_count));
    return true;
}

ev_clock_def capture_clock(void)
{
    ev_clock_def def = {.source = capture.clock_source};
    clock_pair(capture.clock_source, &def.ticks, &def.monotonic_ns);
    def.realtime_ns = clock_ns(CLOCK_REALTIME);
    return def;
}

void capture_define_clock(const ev_clock_def *def, bool may_wait)
{
    capture_piece piece = {def, sizeof *def};
    if (may_wait) {
        capture_define(EV_DEFINE_CLOCK, 0, &piece, 1);
        return;
    }
    ring_lock(capture.ring);
    if (ring_room(capture.ring, 3))
        ring_publish(capture.ring, put_define(0, ev_define_number(EV_DEFINE_CLOCK, 0), &piece, 1));
    ring_unlock(capture.ring);
}

static void define_process(void)
{
    static char argv[16 * 1024];
    size_t argv_bytes = 0;
    FILE *f = fopen("/proc/self/cmdline", "re");
    if (f) {
        argv_bytes = fread(argv, 1, sizeof argv, f);
        fclose(f);
    }
    if (argv_bytes == sizeof argv)
        argv[sizeof argv - 1] = '\0';
    static const char *description; /* the constant's bytes live as long as the process */
    if (!description)
        description = ruby_description;
    ev_process_def def = {
        .pid = (uint32_t)getpid(),
        .ppid = (uint32_t)getppid(),
        .position_source = capture.positions_counted ? EV_POSITIONS_COUNTED : EV_POSITIONS_FRAME_ADDRESS,
        .ractor = 1,
        .realtime_ns = clock_ns(CLOCK_REALTIME),
        .argv_bytes = (uint32_t)argv_bytes,
        .ruby_bytes = (uint32_t)strlen(description),
    };
    capture_piece pieces[] = {{&def, sizeof def}, {argv, def.argv_bytes}, {description, def.ruby_bytes}};
    capture_define(EV_DEFINE_PROCESS, 1, pieces, 3);
}

/* ---- Which thread, which fiber. */

/* A thread's slot holds epoch << 32 | number. Its number may be given without the GVL; two natives never do so for one
 * thread at once, as its events follow one another. */
static uint32_t thread_number(VALUE thread)
{
    uint64_t slot = (uint64_t)(uintptr_t)rb_internal_thread_specific_get(thread, once.key);
    if (slot >> 32 != capture.epoch) {
        uint32_t number = atomic_fetch_add_explicit(&capture.thread_count, 1, memory_order_relaxed) + 1;
        slot = (uint64_t)capture.epoch << 32 | number;
        rb_internal_thread_specific_set(thread, once.key, (void *)(uintptr_t)slot);
    }
    return (uint32_t)slot & EV_NUMBER_MAX;
}

/* By thread number, GVL held: the name in the thread's last DEFINE, 0 when it has none yet. Compared only, never read: a
 * new name is another String, made before the old one could be freed. */
static struct {
    VALUE *names; /* owned; [0, count) */
    uint32_t count;
} defined;

/* The name, never by a method of the program's own: a subclass may override `name`. */
static VALUE thread_name(VALUE thread)
{
    if (rb_method_basic_definition_p(CLASS_OF(thread), once.id_name))
        return rb_funcallv(thread, once.id_name, 0, NULL);
    if (NIL_P(once.name_method))
        return Qnil;
    return rb_funcall(once.name_method, rb_intern("bind_call"), 1, thread);
}

/* Zeroed room for index in *array, a pointer to count items of size bytes; false when there is no memory. */
static bool make_room(void *array, uint32_t *count, uint32_t index, size_t size)
{
    void *items;
    if (index < *count)
        return true;
    uint32_t wanted = index + index / 2 + 64;
    memcpy(&items, array, sizeof items);
    char *grown = realloc(items, wanted * size);
    if (!grown)
        return false;
    memset(grown + *count * size, 0, (wanted - *count) * size);
    memcpy(array, &grown, sizeof grown);
    *count = wanted;
    return true;
}

/* Send the current thread's definition if it is new or has another name. GVL held. */
static bool define_thread(uint32_t number)
{
    VALUE thread = rb_thread_current(), name = thread_name(thread);
    if (!make_room(&defined.names, &defined.count, number, sizeof(VALUE)))
        return false;
    if (defined.names[number] == name)
        return true;
    ev_thread_def def = {.ractor = 1, .native_tid = (uint32_t)syscall(SYS_gettid)};
    def.flags = thread == rb_thread_main() ? EV_THREAD_MAIN : 0;
    if (RB_TYPE_P(name, T_STRING))
        def.name_bytes = RSTRING_LEN(name) < 1024 ? (uint32_t)RSTRING_LEN(name) : 1024;
    capture_piece pieces[] = {{&def, sizeof def}, {def.name_bytes ? RSTRING_PTR(name) : "", def.name_bytes}};
    if (!capture_define(EV_DEFINE_THREAD, number, pieces, 2))
        return false;
    defined.names[number] = name;
    RB_GC_GUARD(name);
    return true;
}

/* The current fiber's number by the Fiber object itself, which no reused address can fake. */
static bool confirm(place *where)
{
    VALUE fiber = rb_fiber_current(), known = rb_attr_get(fiber, once.id_fiber);
    where->thread = thread_number(rb_thread_current());
    if (FIXNUM_P(known) && (uint64_t)FIX2ULONG(known) >> EV_DEFINE_NUMBER_BITS == capture.epoch) {
        where->fiber = (uint32_t)(FIX2ULONG(known) & EV_NUMBER_MAX);
        return true;
    }
    uint32_t number = capture.fiber_count + 1;
    ev_fiber_def def = {.thread = where->thread};
    if (!capture_define(EV_DEFINE_FIBER, number, &(capture_piece){&def, sizeof def}, 1))
        return false;
    capture.fiber_count = number;
    if (!RB_OBJ_FROZEN(fiber)) /* a frozen one gets another number after the next GC */
        rb_ivar_set(fiber, once.id_fiber, ULONG2NUM((unsigned long)capture.epoch << EV_DEFINE_NUMBER_BITS | number));
    where->fiber = number;
    where->is_new = true;
    return true;
}

static context_entry *context_slot(const void *ec)
{
    return &contexts[((uint64_t)(uintptr_t)ec * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - CONTEXT_BITS)];
}

/* ec: the current execution context, NULL when it is not known. false: a definition could not be sent. */
static bool resolve(const void *ec, place *where)
{
    *where = (place){0};
    context_entry *entry = context_slot(ec);
    uint64_t generation = atomic_load_explicit(&capture.generation, memory_order_relaxed);
    if (ec && entry->ec == ec && entry->generation == generation) {
        where->fiber = entry->fiber;
        where->thread = entry->thread;
    } else {
        if (!confirm(where))
            return false;
        /* Allocating a Fiber object may have run the GC; the fiber is the current one and did not die in it. */
        generation = atomic_load_explicit(&capture.generation, memory_order_relaxed);
        if (ec)
            *entry = (context_entry){ec, generation, where->fiber, where->thread};
    }
    if (capture.last_thread == where->thread || define_thread(where->thread))
        return true;
    entry->ec = NULL;
    return false;
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
        taken = put_define(0, ev_define_number(EV_DEFINE_DROPPED, 0), &(capture_piece){&def, sizeof def}, 1);
        capture.unreported = 0;
    }
    ring_put(capture.ring, taken, ev_make(EV_SWITCH, capture_ticks(), where->fiber, where->thread));
    capture.last_ec = ec;
    capture.last_thread = where->thread;
    return taken + 1;
}

/* An event whose context is not the last one's: SWITCH and event under one lock; the frames of a fiber that is seen for
 * the first time come in between. raw: NULL when positions are counted. */
__attribute__((noinline)) static void push_after_switch(const void *ec, rb_trace_arg_t *raw, ev_kind kind,
                                                        uint32_t number, uint32_t position)
{
    place where;
    if (!resolve(ec, &where))
        return;
    if (where.is_new && raw) {
        if (!capture_begin(3))
            return;
        commit(put_switch(ec, &where));
        frames_push_open(raw);
    }
    if (!capture_begin(4))
        return;
    uint64_t taken = put_switch(ec, &where);
    ring_put(capture.ring, taken, ev_make(kind, capture_ticks(), number, position));
    commit(taken + 1);
}

static inline __attribute__((always_inline)) void push(const void *ec, rb_trace_arg_t *raw, ev_kind kind,
                                                       uint32_t number, uint32_t position, uint64_t ticks)
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
    if (mode_now() != CAPTURE_ON || !resolve(NULL, &where) || !capture_begin(4))
        return;
    uint64_t taken = put_switch(NULL, &where); /* no context is known here: the next event says again where it runs */
    ring_put(capture.ring, taken, ev_make(kind, capture_ticks(), number, id));
    commit(taken + 1);
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
__attribute__((noinline)) static void events_were_lost(void)
{
    rb_postponed_job_trigger(once.rearm_job);
}

/* GVL: held. Every call and return. */
static void on_event(VALUE data, const rb_trace_arg_t *traced)
{
    (void)data;
    if (UNLIKELY(mode_now() != CAPTURE_ON) && !wake())
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
    if (mode_now() != CAPTURE_ON && !wake())
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
    if ((is_call && number == 0) || !resolve(NULL, &where) ||
        !make_room(&counted.depths, &counted.count, where.fiber, sizeof *counted.depths))
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
    if (mode_now() != CAPTURE_ON)
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
    commit(1);
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
        uint32_t number = thread_number(event_data->thread);
        if (capture_begin(1)) {
            ring_put(capture.ring, 0, ev_make(kind, capture_ticks(), number, 0));
            if (kind == EV_THREAD_SUSPENDED) { /* a call after it proves by its SWITCH that the thread runs */
                capture.last_ec = NULL;
                capture.last_thread = 0;
            }
            commit(1);
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
    if (mode_now() != CAPTURE_ON || !atomic_exchange(&capture.gc_open, 0))
        return;
    push_plain(EV_GC_EXIT, 0);
    remove_hooks();
    add_hooks();
}

static VALUE make_key(VALUE unused)
{
    (void)unused;
    return INT2FIX(rb_internal_thread_specific_key_create());
}

int capture_prepare(const char **why)
{
    if (once.prepared)
        return 0;
    int failed = 0;
    VALUE key = rb_protect(make_key, Qnil, &failed);
    if (failed) {
        rb_set_errinfo(Qnil);
        *why = "this process has no free slot for the number of a thread (start rrtrace before the first Ractor)";
        return -1;
    }
    once.key = FIX2INT(key);
    capture.clock_source = clock_source_detect();
    once.id_fiber = rb_intern("__rrtrace_fiber");
    once.id_name = rb_intern("name");
    rb_gc_register_address(&once.name_method);
    once.name_method = Qnil;
    if (rb_method_basic_definition_p(rb_cThread, once.id_name))
        once.name_method = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(once.id_name));
    once.rearm_job = rb_postponed_job_preregister(0, rearm, NULL);
    methods_prepare();
    once.prepared = true;
    return 0;
}

void capture_start(ring *r, bool drop, bool c_calls, bool blocks, bool from_child,
                   const ev_clock_def clocks[2])
{
    capture.ring = r;
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
    capture.fiber_count = 0;
    capture.span_count = 0;
    atomic_store(&capture.gc_open, 0);
    atomic_store(&capture.thread_count, 0);
    memset(contexts, 0, sizeof contexts);
    free(counted.depths);
    counted.depths = NULL;
    counted.count = 0;
    free(defined.names);
    defined.names = NULL;
    defined.count = 0;
    methods_reset();
    thread_number(rb_thread_main()); /* the main thread is number 1 */
    atomic_store(&capture.mode, CAPTURE_ON);
    capture_define_clock(&clocks[0], true); /* first of all: whoever reads on knows the time of what follows */
    capture_define_clock(&clocks[1], true);
    define_process();
    if (from_child)
        return; /* the hooks are inherited */
    if (!once.thread_hook) {
        once.thread_hook =
            rb_internal_thread_add_event_hook(on_thread,
                                              RUBY_INTERNAL_THREAD_EVENT_STARTED | RUBY_INTERNAL_THREAD_EVENT_READY |
                                                  RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                                  RUBY_INTERNAL_THREAD_EVENT_SUSPENDED |
                                                  RUBY_INTERNAL_THREAD_EVENT_EXITED,
                                              NULL);
        once.thread_hook_pid = getpid();
    }
    add_hooks();
}

void capture_drain_users(void)
{
    for (unsigned step = 0; atomic_load(&capture.users) > 0; step++)
        wait_step(step);
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
