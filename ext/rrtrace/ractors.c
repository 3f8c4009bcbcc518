#include "ractors.h"

#include "frames.h"

#include <pthread.h>
#include <ruby/ractor.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;    /* of taking streams; held for some ns, never across a wait */
    _Atomic(stream *) first; /* the list; only grows, at its head */
    vm_ractor *main;         /* borrowed for as long as the process; NULL: not known */
    VALUE name_method; /* Ractor's own #name, unbound; registered; nil: somebody else's */
    _Atomic uint32_t told; /* Ractors that asked for hooks themselves */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What takes the place of a dead Ractor's hooks: never called, never freed. */
static void never_called(VALUE data, const rb_trace_arg_t *arg)
{
    (void)data;
    (void)arg;
}
static vm_hook dead_hooks[CAPTURE_HOOKS];

/* Is written in Ruby, so its place tells whether it is Ruby's own. */
static VALUE find_name_method(VALUE unused)
{
    (void)unused;
    VALUE method = rb_funcall(rb_cRactor, rb_intern("instance_method"), 1, ID2SYM(rb_intern("name")));
    VALUE where = rb_funcall(method, rb_intern("source_location"), 0);
    VALUE path = RB_TYPE_P(where, T_ARRAY) ? rb_ary_entry(where, 0) : Qnil;
    return RB_TYPE_P(path, T_STRING) && strncmp(RSTRING_PTR(path), "<internal:", 10) == 0 ? method : Qnil;
}

void ractors_prepare(void)
{
    int failed = 0;
    rb_gc_register_address(&all.name_method);
    all.name_method = Qnil;
    VALUE method = rb_protect(find_name_method, Qnil, &failed);
    if (failed)
        rb_set_errinfo(Qnil);
    else
        all.name_method = method;
}

void ractors_begin(const stream *root)
{
    capture_hook wanted[CAPTURE_HOOKS];
    capture_hooks(wanted);
    for (int i = 0; i < CAPTURE_HOOKS; i++)
        dead_hooks[i] = (vm_hook){.flags = CAPTURE_HOOK_FLAGS,
                                  .events = wanted[i].events,
                                  .function = (rb_event_hook_func_t)(void (*)(void))never_called,
                                  .data = Qnil,
                                  .next = i == 0 ? &dead_hooks[1] : NULL};
    if (frames_known.ractors_ok && root == &capture_main)
        all.main = vm_thread_of(rb_thread_current())->ractor;
}

stream *ractors_first(void) { return atomic_load_explicit(&all.first, memory_order_acquire); }

static stream *stream_of(const vm_ractor *ractor)
{
    for (stream *s = ractors_first(); s; s = s->next)
        if (atomic_load_explicit(&s->ractor, memory_order_relaxed) == ractor)
            return s;
    return NULL;
}

/* Does the stream that the thread was seen with still belong to its Ractor? */
static bool is_of(const stream *s, const vm_ractor *ractor)
{
    return s && (s == &capture_main ? ractor == all.main : atomic_load(&s->ractor) == ractor);
}

stream *ractors_stream_of(VALUE thread)
{
    stream *known = place_stream_slot(thread);
    if (!frames_known.ractors_ok) /* threads of a Ractor that nobody has told of are taken for the main one's */
        return known ? known : &capture_main;
    const vm_ractor *ractor = vm_thread_of(thread)->ractor;
    if (is_of(known, ractor))
        return known;
    return ractor == all.main ? &capture_main : stream_of(ractor);
}

stream *ractors_current(void) { return ractors_stream_of(rb_thread_current()); }

/* A stream for ractor: one that is free, or a new one. */
static stream *take(vm_ractor *ractor)
{
    pthread_mutex_lock(&all.lock);
    stream *s = ractors_first();
    while (s && atomic_load_explicit(&s->ractor, memory_order_relaxed))
        s = s->next;
    if (!s && (s = aligned_alloc(_Alignof(stream), sizeof *s)) != NULL) {
        memset(s, 0, sizeof *s);
        s->socket.fd = -1;
        s->next = ractors_first();
        atomic_store_explicit(&all.first, s, memory_order_release); /* pairs with the acquire in ractors_first */
    }
    if (s) {
        memset(s->methods.cache, 0, sizeof s->methods.cache); /* nobody has marked what an earlier Ractor left in it */
        s->number = ractor->id;
        atomic_store(&s->ractor, ractor);
    }
    pthread_mutex_unlock(&all.lock);
    return s;
}

static bool is_linked(const vm_ractor *ractor, const vm_hook *wanted)
{
    for (const vm_hook *hook = ractor->hooks; hook; hook = hook->next)
        if (hook == wanted)
            return true;
    return false;
}

/* Put our hooks at the head of the Ractor's list. malloc'ed one by one: the VM may free them as its own. Those of a stream that
 * is used again are in no list any more. */
static bool link_hooks(stream *s, vm_ractor *ractor)
{
    capture_hook wanted[CAPTURE_HOOKS];
    capture_hooks(wanted);
    for (int i = 0; i < CAPTURE_HOOKS; i++)
        if (!s->hooks[i] && !(s->hooks[i] = malloc(sizeof *s->hooks[i])))
            return false;
    for (int i = 0; i < CAPTURE_HOOKS; i++) {
        *s->hooks[i] = (vm_hook){.flags = CAPTURE_HOOK_FLAGS,
                                 .events = wanted[i].events,
                                 .function = wanted[i].function,
                                 .data = capture_as_data(s),
                                 .next = ractor->hooks};
        ractor->hooks = s->hooks[i];
        ractor->events |= wanted[i].events;
    }
    return true;
}

stream *ractors_adopt(VALUE thread)
{
    if (!frames_known.ractors_ok)
        return ractors_stream_of(thread);
    vm_ractor *ractor = vm_thread_of(thread)->ractor;
    stream *s = place_stream_slot(thread);
    if (is_of(s, ractor))
        return s;
    s = ractor == all.main ? &capture_main : stream_of(ractor);
    /* A stream whose hooks are not in the list is that of a Ractor that ended unseen, at the same address. */
    if (!s || (s != &capture_main && s->hooks[0] && !is_linked(ractor, s->hooks[0]))) {
        if (!s && !(s = take(ractor)))
            return NULL;
        atomic_store(&s->mode, CAPTURE_OFF);
        s->number = ractor->id;
        s->main_thread = thread; /* the first one that we see; capture_open asks when it may */
        if (!link_hooks(s, ractor)) {
            atomic_store(&s->ractor, NULL);
            return NULL;
        }
        atomic_store(&s->mode, CAPTURE_MUST_JOIN);
    }
    place_set_stream_slot(thread, s);
    return s;
}

stream *ractors_attach(void)
{
    static vm_ractor unknown; /* stands for a Ractor where they are not known; only compared */
    VALUE thread = rb_thread_current();
    stream *s = take(frames_known.ractors_ok ? vm_thread_of(thread)->ractor : &unknown);
    if (!s)
        return NULL;
    if (!frames_known.ractors_ok)
        s->number = atomic_fetch_add(&all.told, 1) + 2;
    s->main_thread = thread;
    capture_add_event_hooks(s);
    place_set_stream_slot(thread, s);
    atomic_store(&s->mode, CAPTURE_MUST_JOIN);
    return s;
}

/* Single stores into a list that a GC may be walking: this thread does not count as running any more. What is taken out stays
 * as it is until the stream is used again, by a thread that runs. */
static void unlink_hooks(stream *s, vm_ractor *ractor)
{
    for (vm_hook **at = &ractor->hooks; *at;) {
        vm_hook *hook = *at;
        if (hook != s->hooks[0] && hook != s->hooks[1])
            at = &hook->next;
        else if (at == &ractor->hooks && !hook->next)
            *at = dead_hooks; /* instead of the last one */
        else
            *at = hook->next;
    }
}

void ractors_release(stream *s)
{
    if (s->hooks[0])
        unlink_hooks(s, atomic_load(&s->ractor));
    atomic_store(&s->ractor, NULL);
}

void ractors_forget_others(stream *kept)
{
    for (stream *s = ractors_first(); s; s = s->next)
        if (s != kept) {
            atomic_store(&s->mode, CAPTURE_OFF);
            atomic_store(&s->ractor, NULL);
        }
    if (kept != &capture_main) {
        atomic_store(&capture_main.mode, CAPTURE_OFF);
        all.main = NULL;
        kept->hooks[0] = kept->hooks[1] = NULL; /* now it is the VM that frees them, as it does a main Ractor's */
    }
}

void ractors_fix_lock_in_child(void) { all.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

VALUE ractors_name(const stream *s)
{
    const vm_ractor *ractor = atomic_load(&s->ractor);
    if (!frames_known.ractors_ok || !ractor || NIL_P(all.name_method))
        return Qnil;
    return rb_funcall(all.name_method, rb_intern("bind_call"), 1, ractor->self);
}
