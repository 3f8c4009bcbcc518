/* hooks.c - other ways to hear of every call, to hold rrtrace's cost against.
 * For:     bench/overhead.rb and bench/rails.rb, which build it into build/bench.
 * Idea:    all hear of the same events as rrtrace does: calls and returns of methods, in Ruby and in C.
 * Use:     BenchHooks.raw, .clock, .tracepoints or .ring, once; they stay until the process ends.
 * Threads: GVL held.
 */
#include "wire/clock.h"

#include <ruby.h>
#include <ruby/debug.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define CALLS (RUBY_EVENT_CALL | RUBY_EVENT_C_CALL)
#define RETURNS (RUBY_EVENT_RETURN | RUBY_EVENT_C_RETURN)

void Init_bench_hooks(void);

/* ---- One raw hook that does nothing: the least that hearing of every call costs. */

static void on_raw(VALUE data, const rb_trace_arg_t *arg)
{
    (void)data;
    (void)arg;
}

static void add_raw(void (*function)(VALUE, const rb_trace_arg_t *))
{
    rb_event_hook_func_t hook = (rb_event_hook_func_t)(void (*)(void))function;
    rb_add_event_hook2(hook, CALLS | RETURNS | RUBY_EVENT_RESCUE, Qnil, RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
}

static VALUE hooks_raw(VALUE self)
{
    add_raw(on_raw);
    return self;
}

/* ---- One that only reads the clock: the least that a time for each event costs. */

static volatile uint64_t last_ticks;

static void on_clock(VALUE data, const rb_trace_arg_t *arg)
{
    (void)data;
    (void)arg;
    last_ticks = clock_counter();
}

static VALUE hooks_clock(VALUE self)
{
    add_raw(on_clock);
    return self;
}

/* ---- Two TracePoints. */

static void start_two(void (*on_call)(VALUE, void *), void (*on_return)(VALUE, void *))
{
    VALUE calls = rb_tracepoint_new(Qnil, CALLS, on_call, NULL), returns = rb_tracepoint_new(Qnil, RETURNS, on_return, NULL);
    rb_gc_register_mark_object(calls);
    rb_gc_register_mark_object(returns);
    rb_tracepoint_enable(calls);
    rb_tracepoint_enable(returns);
}

static void on_nothing(VALUE tracepoint, void *data)
{
    (void)tracepoint;
    (void)data;
}

static VALUE hooks_tracepoints(VALUE self)
{
    start_two(on_nothing, on_nothing);
    return self;
}

/* ---- Two TracePoints that keep what they hear in memory of this process, as tracers commonly do: method and class by the
 * public accessors, the time by clock_gettime, a spinlock, a ring. Nobody reads it. */

typedef struct entry {
    uint64_t ns; /* bit 63: a return */
    uint64_t method;
} entry;

#define RING_ENTRIES (1u << 20) /* 16 MiB, as rrtrace's */

static struct {
    _Alignas(128) _Atomic uint32_t lock;
    uint64_t count;
    entry *entries;
} ring;

static void push(VALUE tracepoint, uint64_t is_return)
{
    rb_trace_arg_t *arg = rb_tracearg_from_tracepoint(tracepoint);
    VALUE klass = rb_tracearg_defined_class(arg), name = rb_tracearg_method_id(arg);
    uint64_t ns = clock_ns(CLOCK_MONOTONIC);
    while (atomic_exchange_explicit(&ring.lock, 1, memory_order_acquire) != 0)
        sched_yield();
    ring.entries[ring.count++ & (RING_ENTRIES - 1)] = (entry){ns | is_return << 63, (uint64_t)klass ^ (uint64_t)SYM2ID(name) << 32};
    atomic_store_explicit(&ring.lock, 0, memory_order_release);
}

static void on_call(VALUE tracepoint, void *data)
{
    (void)data;
    push(tracepoint, 0);
}

static void on_return(VALUE tracepoint, void *data)
{
    (void)data;
    push(tracepoint, 1);
}

static VALUE hooks_ring(VALUE self)
{
    ring.entries = calloc(RING_ENTRIES, sizeof *ring.entries);
    if (!ring.entries)
        rb_raise(rb_eNoMemError, "no memory for the ring");
    start_two(on_call, on_return);
    return self;
}

/* ---- What reading the clock costs: [the counter in wire/clock.h, clock_gettime], ns, the best of a few tries. */

static double read_ns(uint32_t source)
{
    enum { READS = 100000 };
    uint64_t best = UINT64_MAX;
    volatile uint64_t last; /* so that none is left out */
    for (int i = 0; i < 20; i++) {
        uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        for (int k = 0; k < READS; k++)
            last = clock_ticks(source);
        uint64_t taken = clock_ns(CLOCK_MONOTONIC) - begin;
        best = taken < best ? taken : best;
    }
    (void)last;
    return (double)best / READS;
}

static VALUE hooks_clock_ns(VALUE self)
{
    (void)self;
    return rb_ary_new_from_args(2, DBL2NUM(read_ns(clock_source_detect())), DBL2NUM(read_ns(CLOCK_SOURCE_MONOTONIC)));
}

void Init_bench_hooks(void)
{
    VALUE module = rb_define_module("BenchHooks");
    rb_define_module_function(module, "clock_ns", hooks_clock_ns, 0);
    rb_define_module_function(module, "raw", hooks_raw, 0);
    rb_define_module_function(module, "clock", hooks_clock, 0);
    rb_define_module_function(module, "tracepoints", hooks_tracepoints, 0);
    rb_define_module_function(module, "ring", hooks_ring, 0);
}
