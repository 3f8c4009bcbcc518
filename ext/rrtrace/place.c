#include "place.h"

#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    rb_internal_thread_specific_key_t key; /* each thread's number; see place_thread_number */
    ID id_fiber;                           /* hidden ivar of Fiber objects: no legal ivar name */
    ID id_name;
    VALUE name_method; /* Thread's own #name, unbound; registered */
} once;

/* Execution contexts met lately. Only a cache: the truth is the number in the Fiber object, which dies with the fiber. */
enum { CONTEXT_BITS = 10 };
typedef struct context_entry {
    const void *ec;
    uint64_t generation; /* of the GC when this was last known to be true */
    uint32_t fiber, thread;
} context_entry;
static context_entry contexts[1u << CONTEXT_BITS];

/* A thread's slot holds epoch << 32 | number. Its number may be given without the GVL; two natives never do so for one
 * thread at once, as its events follow one another. */
uint32_t place_thread_number(VALUE thread)
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

bool place_make_room(void *array, uint32_t *count, uint32_t index, size_t size)
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
    if (!place_make_room(&defined.names, &defined.count, number, sizeof(VALUE)))
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
    where->thread = place_thread_number(rb_thread_current());
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

/* Grows whenever fibers may have been freed. GCs that another Ractor runs are not seen by the hooks, but counted by the VM. */
static uint64_t generation_now(void)
{
    return atomic_load_explicit(&capture.generation, memory_order_relaxed) + ((uint64_t)rb_gc_count() << 32);
}

bool place_find(const void *ec, place *where)
{
    *where = (place){0};
    context_entry *entry = context_slot(ec);
    uint64_t generation = generation_now();
    if (ec && entry->ec == ec && entry->generation == generation) {
        where->fiber = entry->fiber;
        where->thread = entry->thread;
    } else {
        if (!confirm(where))
            return false;
        /* Allocating a Fiber object may have run the GC; the fiber is the current one and did not die in it. */
        generation = generation_now();
        if (ec)
            *entry = (context_entry){ec, generation, where->fiber, where->thread};
    }
    if (capture.last_thread == where->thread || define_thread(where->thread))
        return true;
    entry->ec = NULL;
    return false;
}

void place_reset(void)
{
    memset(contexts, 0, sizeof contexts);
    free(defined.names);
    defined.names = NULL;
    defined.count = 0;
    capture.fiber_count = 0;
    atomic_store(&capture.thread_count, 0);
    place_thread_number(rb_thread_main()); /* the main thread is number 1 */
}

static VALUE make_key(VALUE unused)
{
    (void)unused;
    return INT2FIX(rb_internal_thread_specific_key_create());
}

int place_prepare(const char **why)
{
    int failed = 0;
    VALUE key = rb_protect(make_key, Qnil, &failed);
    if (failed) {
        rb_set_errinfo(Qnil);
        *why = "this process has no free slot for the number of a thread (start rrtrace before the first Ractor)";
        return -1;
    }
    once.key = FIX2INT(key);
    once.id_fiber = rb_intern("__rrtrace_fiber");
    once.id_name = rb_intern("name");
    rb_gc_register_address(&once.name_method);
    once.name_method = Qnil;
    if (rb_method_basic_definition_p(rb_cThread, once.id_name))
        once.name_method = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(once.id_name));
    return 0;
}
