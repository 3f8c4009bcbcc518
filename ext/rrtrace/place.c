#include "place.h"

#include "capture.h"
#include "ractors.h"

#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    rb_internal_thread_specific_key_t key, stream_key; /* each thread's number, see place_thread_number; its stream */
    ID id_fiber;                           /* hidden ivar of Fiber objects: no legal ivar name */
    ID id_name;
    VALUE name_method; /* Thread's own #name, unbound; registered */
} once;

/* A thread's slot holds epoch << 32 | number. Its number may be given without the GVL; two natives never do so for one
 * thread at once, as its events follow one another. */
uint32_t place_thread_number(const stream *s, VALUE thread)
{
    uint64_t slot = (uint64_t)(uintptr_t)rb_internal_thread_specific_get(thread, once.key);
    if (slot >> 32 != s->epoch) {
        uint32_t number = atomic_fetch_add_explicit(&capture.thread_count, 1, memory_order_relaxed) + 1;
        slot = (uint64_t)s->epoch << 32 | number;
        rb_internal_thread_specific_set(thread, once.key, (void *)(uintptr_t)slot);
    }
    return (uint32_t)slot & EV_NUMBER_MAX;
}

stream *place_stream_slot(VALUE thread) { return rb_internal_thread_specific_get(thread, once.stream_key); }

void place_set_stream_slot(VALUE thread, stream *s) { rb_internal_thread_specific_set(thread, once.stream_key, s); }

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
static bool define_thread(stream *s, uint32_t number)
{
    VALUE thread = rb_thread_current(), name = thread_name(thread);
    if (NIL_P(name) && s != &capture_main && thread == s->main_thread)
        name = ractors_name(s);
    if (!place_make_room(&s->place.names, &s->place.name_count, number, sizeof(VALUE)))
        return false;
    if (s->place.names[number] == name)
        return true;
    ev_thread_def def = {.ractor = s->number, .native_tid = (uint32_t)syscall(SYS_gettid)};
    def.flags = thread == capture.main_thread ? EV_THREAD_MAIN : 0;
    if (RB_TYPE_P(name, T_STRING))
        def.name_bytes = RSTRING_LEN(name) < 1024 ? (uint32_t)RSTRING_LEN(name) : 1024;
    capture_piece pieces[] = {{&def, sizeof def}, {def.name_bytes ? RSTRING_PTR(name) : "", def.name_bytes}};
    if (!capture_define(s, EV_DEFINE_THREAD, number, pieces, 2))
        return false;
    s->place.names[number] = name;
    RB_GC_GUARD(name);
    return true;
}

/* The current fiber's number by the Fiber object itself, which no reused address can fake. */
static bool confirm(stream *s, place *where)
{
    VALUE fiber = rb_fiber_current(), known = rb_attr_get(fiber, once.id_fiber), thread = rb_thread_current();
    where->thread = place_thread_number(s, thread);
    if (place_stream_slot(thread) != s)
        place_set_stream_slot(thread, s);
    if (FIXNUM_P(known) && (uint64_t)FIX2ULONG(known) >> EV_DEFINE_NUMBER_BITS == s->epoch) {
        where->fiber = (uint32_t)(FIX2ULONG(known) & EV_NUMBER_MAX);
        return true;
    }
    uint32_t number = (atomic_fetch_add_explicit(&capture.fiber_count, 1, memory_order_relaxed) + 1) & EV_NUMBER_MAX;
    ev_fiber_def def = {.thread = where->thread};
    if (!capture_define(s, EV_DEFINE_FIBER, number, &(capture_piece){&def, sizeof def}, 1))
        return false;
    if (!RB_OBJ_FROZEN(fiber)) /* a frozen one gets another number after the next GC */
        rb_ivar_set(fiber, once.id_fiber, ULONG2NUM((unsigned long)s->epoch << EV_DEFINE_NUMBER_BITS | number));
    where->fiber = number;
    where->is_new = true;
    return true;
}

static place_context *context_slot(stream *s, const void *ec)
{
    return &s->place.contexts[((uint64_t)(uintptr_t)ec * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - PLACE_CONTEXT_BITS)];
}

/* Grows whenever fibers may have been freed. GCs that another Ractor runs are not seen by the hooks, but counted by the VM. */
static uint64_t generation_now(void)
{
    return atomic_load_explicit(&capture.generation, memory_order_relaxed) + ((uint64_t)rb_gc_count() << 32);
}

bool place_find(stream *s, const void *ec, place *where)
{
    *where = (place){0};
    place_context *entry = context_slot(s, ec);
    uint64_t generation = generation_now();
    if (ec && entry->ec == ec && entry->generation == generation) {
        where->fiber = entry->fiber;
        where->thread = entry->thread;
    } else {
        if (!confirm(s, where))
            return false;
        /* Allocating a Fiber object may have run the GC; the fiber is the current one and did not die in it. */
        generation = generation_now();
        if (ec)
            *entry = (place_context){ec, generation, where->fiber, where->thread};
    }
    if (s->last_thread == where->thread || define_thread(s, where->thread))
        return true;
    entry->ec = NULL;
    return false;
}

void place_reset(stream *s)
{
    memset(s->place.contexts, 0, sizeof s->place.contexts);
    free(s->place.names);
    s->place.names = NULL;
    s->place.name_count = 0;
}

static VALUE make_keys(VALUE unused)
{
    (void)unused;
    int key = rb_internal_thread_specific_key_create();
    return rb_assoc_new(INT2FIX(key), INT2FIX(rb_internal_thread_specific_key_create()));
}

int place_prepare(const char **why)
{
    int failed = 0;
    VALUE keys = rb_protect(make_keys, Qnil, &failed);
    if (failed) {
        rb_set_errinfo(Qnil);
        *why = "this process has no free slots for the numbers of threads (start rrtrace before the first Ractor)";
        return -1;
    }
    once.key = FIX2INT(RARRAY_AREF(keys, 0));
    once.stream_key = FIX2INT(RARRAY_AREF(keys, 1));
    once.id_fiber = rb_intern("__rrtrace_fiber");
    once.id_name = rb_intern("name");
    rb_gc_register_address(&once.name_method);
    once.name_method = Qnil;
    if (rb_method_basic_definition_p(rb_cThread, once.id_name))
        once.name_method = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(once.id_name));
    return 0;
}
