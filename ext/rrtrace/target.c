#include "target.h"

#include "capture.h"
#include "frames.h"
#include "methods.h"
#include "ractors.h"
#include "select.h"

#include <pthread.h>
#include <ruby/ractor.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* An instruction that arming has put into its tracing form. */
typedef struct patch {
    VALUE plain, tracing;
    unsigned int at;
} patch;

/* A piece of code that we have hooked. */
typedef struct unit {
    vm_hook hook;                 /* in the iseq's list while is_armed; its data is guard */
    vm_iseq *iseq;                /* borrowed from guard, which pins it */
    vm_hook_list *list;           /* the iseq's, while is_armed */
    VALUE guard;                  /* the T_DATA that owns this; kept by the iseq's hooks, or by the definer's guard */
    struct unit *next, *previous; /* all units; under the lock */
    struct unit *first_defined, *next_defined; /* the methods that it defines when it runs, until it has run twice */
    bool is_armed, has_run;
    bool stays;                                /* the code is that of several methods, or may be: it is not disarmed */
    rb_event_flag_t events_before, events_set; /* the iseq's global_events */
    patch *patches;                            /* owned */
    unsigned int patch_count;
    size_t gc_count; /* when its guard died */
} unit;

static struct {
    bool is_on;
    bool has_strangers;       /* Ractors were there at the start, of which nobody may have told us */
    VALUE held_back;          /* registered: what interrupted target_start; a Fixnum: the thread is to end; nil: nothing did */
    size_t parent_word;       /* where in an iseq's code its parent stands, in words */
    VALUE iseq_signature;     /* of flags & VM_IMEMO_TYPE_MASK */
    VALUE anchor;             /* registered: a TracePoint of ours, on code that never runs */
    VALUE anchor_target;      /* registered */
    VALUE untouched;          /* registered: code that never has a hook of ours, and shows what the program wants of all code */
    VALUE enable, each_child; /* registered: CRuby's own methods, unbound */
    size_t looked_at;         /* rb_gc_count when the dead were last looked through */
    pthread_mutex_t lock;     /* of the lists of units; nothing is allocated under it */
    unit *first, *dead;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_local(VALUE guard, const rb_trace_arg_t *arg);

/* ---- Units. */

static void mark_unit(void *pointer)
{
    const unit *u = pointer;
    rb_gc_mark(u->guard); /* itself, so that it stays where it is: here is its address, too, not in the iseq's list alone */
    rb_gc_mark((VALUE)u->iseq);
    for (const unit *defined = u->first_defined; defined; defined = defined->next_defined)
        rb_gc_mark(defined->guard);
}

/* In the GC. The iseq dies with it, and may be freed only now: its list still has our hook in it, where the VM looks. */
static void bury_unit(void *pointer)
{
    unit *u = pointer;
    pthread_mutex_lock(&all.lock);
    if (u->previous)
        u->previous->next = u->next;
    else
        all.first = u->next;
    if (u->next)
        u->next->previous = u->previous;
    u->gc_count = rb_gc_count();
    u->next = all.dead;
    all.dead = u;
    pthread_mutex_unlock(&all.lock);
}

static size_t unit_bytes(const void *pointer)
{
    const unit *u = pointer;
    return sizeof *u + u->patch_count * sizeof *u->patches;
}

static const rb_data_type_t unit_type = {.wrap_struct_name = "rrtrace/target",
                                         .function = {.dmark = mark_unit, .dfree = bury_unit, .dsize = unit_bytes},
                                         .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED};

/* Take our hook out of the list. Returns the events of the program's own that are left. */
static rb_event_flag_t unhook(vm_hook_list *list, const vm_hook *ours)
{
    rb_event_flag_t events = 0;
    for (vm_hook **at = &list->hooks; *at;) {
        if (*at == ours) {
            *at = ours->next;
            continue;
        }
        if (!((*at)->flags & RUBY_EVENT_HOOK_FLAG_DELETED))
            events |= (*at)->events;
        at = &(*at)->next;
    }
    return list->events = events;
}

/* In it are hooks at most that the program has taken off, and that wait for this; or those of TracePoints that died with the
 * code. */
static void free_list(vm_hook_list *list)
{
    if (list->running > 0) {
        list->need_clean = true; /* who walks it frees it */
        return;
    }
    for (vm_hook *hook = list->hooks, *next; hook; hook = next) {
        next = hook->next;
        ruby_xfree(hook);
    }
    ruby_xfree(list);
}

/* A GC begins when the one before has freed all that died in it. */
static void free_buried(void)
{
    size_t now = rb_gc_count();
    unit *freed = NULL;
    if (now == all.looked_at)
        return;
    all.looked_at = now;
    pthread_mutex_lock(&all.lock);
    for (unit **at = &all.dead; *at;) {
        unit *u = *at;
        if (u->gc_count + 1 >= now) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        u->next = freed;
        freed = u;
    }
    pthread_mutex_unlock(&all.lock);
    while (freed) {
        unit *u = freed;
        freed = u->next;
        if (u->is_armed) { /* the VM keeps a list with a hook in it when the code dies */
            unhook(u->list, &u->hook);
            free_list(u->list);
        }
        free(u->patches);
        free(u);
    }
}

static bool is_iseq(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && (RBASIC(object)->flags & VM_IMEMO_TYPE_MASK) == all.iseq_signature;
}

static bool is_ready(const vm_iseq *iseq) { return !(iseq->flags & VM_ISEQ_NOT_READY) && iseq->code; }

static vm_iseq *parent_of(const vm_iseq *iseq)
{
    VALUE parent;
    memcpy(&parent, (const VALUE *)(const void *)iseq->code + all.parent_word, sizeof parent);
    return (vm_iseq *)parent;
}

/* The method or block around a block. NULL: there is none. (A method's code does not know what is around it.) */
static vm_iseq *code_around(const vm_iseq *iseq)
{
    vm_iseq *parent = parent_of(iseq);
    while (parent && parent->code && parent->code->type != VM_CODE_METHOD && parent->code->type != VM_CODE_BLOCK)
        parent = parent_of(parent);
    return parent;
}

static unit *unit_of(const vm_iseq *iseq)
{
    for (const vm_hook *hook = iseq->hooks ? iseq->hooks->hooks : NULL; hook; hook = hook->next)
        if (hook->function == (rb_event_hook_func_t)(void (*)(void))on_local)
            return (unit *)(uintptr_t)hook; /* its first member */
    return NULL;
}

/* ---- Arming. */

/* Have the VM put the instructions with our events into their tracing form, and note which it changed. */
static bool instrument(unit *u)
{
    vm_iseq *iseq = u->iseq;
    const vm_code *code = iseq->code;
    u->events_before = iseq->global_events;
    u->events_set = iseq->global_events | u->hook.events;
    u->patch_count = 0;
    if (u->events_set == u->events_before) /* a whole trace has been on in this process: it is so for good */
        return true;
    VALUE *before = malloc(code->word_count * sizeof *before);
    if (!before)
        return false;
    memcpy(before, code->words, code->word_count * sizeof *before);
    rb_iseq_trace_set(iseq, u->events_set);
    unsigned int changed = 0;
    for (unsigned int i = 0; i < code->word_count; i++)
        changed += code->words[i] != before[i];
    patch *patches = realloc(u->patches, (changed + 1) * sizeof *patches);
    if (patches) {
        u->patches = patches;
        for (unsigned int i = 0; i < code->word_count; i++)
            if (code->words[i] != before[i])
                patches[u->patch_count++] = (patch){before[i], code->words[i], i};
    }
    free(before);
    return true;
}

static bool arm(unit *u)
{
    vm_iseq *iseq = u->iseq;
    if (!iseq->hooks) {
        vm_hook_list *list = ruby_xcalloc(1, sizeof *list); /* the VM may free it */
        list->is_local = true;
        iseq->hooks = list;
    }
    u->list = iseq->hooks;
    u->hook.next = u->list->hooks;
    u->list->hooks = &u->hook;
    u->list->events |= u->hook.events;
    RB_OBJ_WRITTEN((VALUE)iseq, Qundef, u->guard);
    u->is_armed = true;
    return instrument(u);
}

static const vm_iseq *untouched(void) { return RTYPEDDATA_GET_DATA(all.untouched); }

/* The events are no more ours. False: the program has asked for them by now, in all code. Then they stay. */
static bool disclaim_events(const unit *u)
{
    rb_event_flag_t asked_since = untouched()->global_events & ~u->events_before;
    if (u->patch_count == 0 || u->iseq->global_events != u->events_set || (asked_since & u->hook.events))
        return false;
    u->iseq->global_events = u->events_before;
    return true;
}

static void plain_again(const unit *u)
{
    VALUE *words = u->iseq->code->words;
    for (unsigned int i = 0; i < u->patch_count; i++)
        if (words[u->patches[i].at] == u->patches[i].tracing)
            words[u->patches[i].at] = u->patches[i].plain;
}

/* Perhaps while the list is being walked, at our hook: that stays as it is, but for being out of the list. */
static void disarm(unit *u)
{
    if (!u->is_armed || !u->iseq->hooks) /* of one that is not armed the code may be gone */
        return;
    vm_hook_list *list = u->iseq->hooks;
    u->is_armed = false;
    bool is_left = unhook(list, &u->hook) != 0;
    if (disclaim_events(u) && !is_left) /* else the VM does it when the program's last hook goes */
        plain_again(u);
    if (is_left)
        return;
    u->iseq->hooks = NULL;
    free_list(list);
}

/* The unit of this code, armed. NULL: no memory. */
static unit *hook_up(vm_iseq *iseq)
{
    unit *u = unit_of(iseq);
    if (u)
        return u;
    if (!(u = calloc(1, sizeof *u)))
        return NULL;
    u->iseq = iseq;
    u->hook = (vm_hook){.flags = CAPTURE_HOOK_FLAGS,
                        .events = iseq->code->type == VM_CODE_METHOD ? RUBY_EVENT_CALL | RUBY_EVENT_RETURN
                                                                     : RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN,
                        .function = (rb_event_hook_func_t)(void (*)(void))on_local};
    pthread_mutex_lock(&all.lock);
    u->next = all.first;
    if (all.first)
        all.first->previous = u;
    all.first = u;
    pthread_mutex_unlock(&all.lock);
    u->guard = TypedData_Wrap_Struct(0, &unit_type, u);
    u->hook.data = u->guard;
    VALUE guard = u->guard;
    RB_OBJ_WRITTEN(guard, Qundef, (VALUE)iseq);
    if (!arm(u))
        disarm(u);
    RB_GC_GUARD(guard);
    return u;
}

/* u's code is defined whenever around runs. */
static void set_definer(unit *u, vm_iseq *around)
{
    unit *definer = hook_up(around);
    if (!definer)
        return;
    u->next_defined = definer->first_defined;
    definer->first_defined = u;
    RB_OBJ_WRITTEN(definer->guard, Qundef, u->guard);
}

static bool is_callable(const vm_iseq *iseq)
{
    return is_ready(iseq) && (iseq->code->type == VM_CODE_METHOD || iseq->code->type == VM_CODE_BLOCK);
}

/* A way down through code. */
typedef struct descent {
    vm_iseq *around; /* the method or block that defines what is met when it runs; NULL: none */
    bool is_new;     /* it has not run so far. Else not into other methods and blocks, which are met by themselves */
    bool repeats;    /* inside a method that may be defined more than once */
} descent;

/* One of Ruby's own methods that only call a C function: a single instruction of three words, and the one that leaves. Callers
 * go to the function without the method, whatever hooks that has, so it is as one that is written in C. */
static bool stands_for_c(const vm_iseq *iseq)
{
    VALUE path = iseq->code->word_count == 4 ? rb_profile_frame_path((VALUE)iseq) : Qnil;
    return RB_TYPE_P(path, T_STRING) && strncmp(RSTRING_PTR(path), "<internal:", strlen("<internal:")) == 0;
}

/* Hook this code, if it could be a wanted method. */
static void consider(vm_iseq *iseq, descent way)
{
    if (!is_callable(iseq) || iseq == untouched() || stands_for_c(iseq))
        return;
    bool is_method = iseq->code->type == VM_CODE_METHOD;
    VALUE label = is_method ? rb_profile_frame_base_label((VALUE)iseq) : Qnil; /* a block may be a method of any name */
    if (!select_may_want(RB_TYPE_P(label, T_STRING) ? RSTRING_PTR(label) : NULL, (VALUE)iseq))
        return;
    unit *u = hook_up(iseq);
    VALUE guard = u ? u->guard : Qnil;
    if (u && is_method && way.around && way.is_new)
        set_definer(u, way.around);
    else if (u && (is_method ? way.around != NULL : way.repeats && capture.options.blocks))
        u->stays = true;
    RB_GC_GUARD(guard);
}

static VALUE consider_child(RB_BLOCK_CALL_FUNC_ARGLIST(wrapper, data));

static void consider_below(VALUE wrapper, descent way)
{
    rb_block_call(all.each_child, rb_intern("bind_call"), 1, &wrapper, consider_child, (VALUE)&way);
}

static VALUE consider_child(RB_BLOCK_CALL_FUNC_ARGLIST(wrapper, data))
{
    (void)argc, (void)argv, (void)blockarg;
    descent way = *(const descent *)data;
    vm_iseq *iseq = RTYPEDDATA_GET_DATA(wrapper);
    bool opens = is_callable(iseq);
    consider(iseq, way);
    if (opens && !way.is_new)
        return Qnil;
    if (opens && iseq->code->type == VM_CODE_METHOD)
        way.repeats = way.around != NULL;
    if (opens)
        way.around = iseq;
    consider_below(wrapper, way);
    return Qnil;
}

static VALUE wrapper_of(const vm_iseq *iseq) { return rb_iseqw_new(iseq); }

static VALUE consider_compiled(VALUE iseq)
{
    if (is_iseq(iseq) && select_may_want(NULL, iseq))
        consider_below(wrapper_of((const vm_iseq *)iseq), (descent){.is_new = true});
    return Qnil;
}

static void lower_anchor(void)
{
    if (RTEST(rb_tracepoint_enabled_p(all.anchor)))
        rb_tracepoint_disable(all.anchor);
}

/* YJIT's code knows nothing of hooks that came later: this makes it forget all of it. */
static VALUE raise_anchor(VALUE unused)
{
    (void)unused;
    lower_anchor();
    VALUE options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(rb_intern("target")), all.anchor_target);
    rb_funcallv_kw(all.enable, rb_intern("bind_call"), 2, (VALUE[]){all.anchor, options}, RB_PASS_KEYWORDS);
    return Qnil;
}

/* What we call lets in what interrupts the program: Thread#raise, Timeout, a signal's trap, Thread#kill. 0, or how it is to go
 * on with rb_jump_tag, at once; its error is rb_errinfo() then. Our own want of memory is not the program's. */
static int run(VALUE (*function)(VALUE), VALUE argument)
{
    VALUE error = rb_errinfo();
    int state = 0;
    rb_protect(function, argument, &state);
    if (state == 0 || RB_FIXNUM_P(rb_errinfo()) || !RTEST(rb_obj_is_kind_of(rb_errinfo(), rb_eNoMemError)))
        return state;
    rb_set_errinfo(error);
    return 0;
}

/* Where it can't go on at once: the first one is kept for target_raise_held_back. False: function was interrupted. */
static bool run_holding_back(VALUE (*function)(VALUE), VALUE argument)
{
    VALUE error = rb_errinfo();
    if (run(function, argument) == 0)
        return true;
    if (NIL_P(all.held_back))
        all.held_back = rb_errinfo();
    rb_set_errinfo(error);
    return false;
}

void target_raise_held_back(void)
{
    VALUE held_back = all.held_back;
    all.held_back = Qnil;
    if (RB_FIXNUM_P(held_back))
        rb_thread_kill(rb_thread_current());
    else if (RTEST(held_back))
        rb_exc_raise(held_back);
}

/* ---- Hooks. */

/* As if the event were another: a block that runs as a method is told of as a block alone. */
static void send_as(stream *s, const rb_trace_arg_t *traced, rb_event_flag_t event)
{
    vm_arg *arg = (vm_arg *)(uintptr_t)traced;
    rb_event_flag_t own = arg->event;
    arg->event = event;
    capture_event(s, traced);
    arg->event = own;
}

typedef struct key {
    VALUE klass, iseq;
    uint32_t kind;
} key;

static key key_of(const vm_arg *arg, bool is_block)
{
    VALUE iseq = arg->frame->iseq;
    return is_block ? (key){iseq, iseq, EV_METHOD_BLOCK} : (key){vm_frame_entry(arg->frame), iseq, EV_METHOD_RUBY};
}

static methods_verdict ask(stream *s, const rb_trace_arg_t *arg, key k)
{
    uint32_t number = methods_find(s, (rb_trace_arg_t *)(uintptr_t)arg, k.klass, METHODS_BY_ADDRESS, k.iseq, k.kind);
    return number ? METHODS_WANTED : s->methods.verdict;
}

static const methods_entry *known(stream *s, key k)
{
    return methods_known(&s->methods, k.klass, METHODS_BY_ADDRESS, k.iseq, k.kind);
}

static bool is_left_out(stream *s, const rb_trace_arg_t *arg, key k)
{
    const methods_entry *entry = known(s, k);
    return entry ? entry->number == 0 : ask(s, arg, k) != METHODS_WANTED;
}

/* Is a Ractor left that may run our code? */
static bool another_ractor_runs(void)
{
    if (all.has_strangers)
        return true;
    for (const stream *s = ractors_first(); s; s = s->next)
        if (atomic_load(&s->ractor))
            return true;
    return false;
}

/* Can the code be that of a method that nobody has called so far? */
static bool may_be_others(const unit *u, key k)
{
    const vm_iseq *around = u->iseq;
    if (around->code->type == VM_CODE_METHOD)
        return false;
    if (k.kind == EV_METHOD_RUBY)
        return code_around(around) != NULL;
    while (around && around->code && around->code->type == VM_CODE_BLOCK)
        around = code_around(around);
    const unit *method = around ? unit_of(around) : NULL;
    return method && method->stays;
}

/* It is called, and defines methods. The second time their code becomes that of further methods: its hooks stay. As run. */
static int define_again(unit *definer)
{
    bool any = false;
    if (!definer->has_run) {
        definer->has_run = true;
        return 0;
    }
    for (unit *u = definer->first_defined; u; u = u->next_defined) {
        u->stays = true;
        if (u->is_armed)
            continue;
        any = true;
        if (!arm(u))
            disarm(u);
    }
    definer->first_defined = NULL;
    return any ? run(raise_anchor, Qnil) : 0;
}

/* The method is left out. If that is for good, and for all methods that this code can be, have it run as if we were not
 * there. */
static void consider_disarming(unit *u, stream *s, const rb_trace_arg_t *arg, key k)
{
    if (u->stays || u->first_defined || another_ractor_runs())
        return;
    methods_forget(&s->methods, k.klass, METHODS_BY_ADDRESS); /* told is what may change, kept is not */
    methods_verdict verdict = ask(s, arg, k);
    if (verdict == METHODS_LEFT_OUT && !may_be_others(u, k))
        disarm(u);
    else if (verdict != METHODS_WANTED)
        u->stays = true;
}

static void on_call(unit *u, stream *s, const rb_trace_arg_t *traced, bool is_block)
{
    const vm_arg *arg = (const vm_arg *)(const void *)traced;
    key k = key_of(arg, is_block);
    if (is_left_out(s, traced, k))
        consider_disarming(u, s, traced, k);
    else
        send_as(s, traced, is_block ? RUBY_EVENT_B_CALL : RUBY_EVENT_CALL);
}

/* Asks nothing: a method's place in its file is that of its call. A RETURN of what is left out does no harm. */
static void on_return(stream *s, const rb_trace_arg_t *traced, bool is_block)
{
    const methods_entry *entry = known(s, key_of((const vm_arg *)(const void *)traced, is_block));
    if (!entry || entry->number != 0)
        send_as(s, traced, is_block ? RUBY_EVENT_B_RETURN : RUBY_EVENT_RETURN);
}

/* GVL: held. A hooked method or block is called or returns. */
static void on_local(VALUE guard, const rb_trace_arg_t *traced)
{
    if (!all.is_on) /* the session has ended while another Ractor was running */
        return;
    unit *u = RTYPEDDATA_GET_DATA(guard);
    stream *s = LIKELY(!ractors_first() && !all.has_strangers) ? &capture_main : ractors_current();
    if (!s)
        return;
    if (capture_mode_now(s) != CAPTURE_ON) { /* a forked child's first event, or the end: capture.c sees to that */
        send_as(s, traced, RUBY_EVENT_LINE);
        if (capture_mode_now(s) != CAPTURE_ON)
            return;
    }
    const vm_arg *arg = (const vm_arg *)(const void *)traced;
    bool is_block = arg->event & (RUBY_EVENT_B_CALL | RUBY_EVENT_B_RETURN);
    bool is_method = !is_block || (arg->frame->ep[0] & VM_FLAG_BMETHOD);
    bool tells_blocks = is_block && s->options.blocks;
    int interrupted = 0;
    if (arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL)) {
        if (is_method)
            on_call(u, s, traced, false);
        else if (!tells_blocks && !u->first_defined && !u->stays && !another_ractor_runs())
            disarm(u); /* a block, and no method */
        if (tells_blocks)
            on_call(u, s, traced, true);
        if (u->first_defined)
            interrupted = define_again(u);
    } else {
        if (tells_blocks)
            on_return(s, traced, true);
        if (is_method)
            on_return(s, traced, false);
    }
    RB_GC_GUARD(guard);
    if (interrupted)
        rb_jump_tag(interrupted);
}

/* GVL: held. */
void target_on_event(VALUE data, const rb_trace_arg_t *traced)
{
    const vm_arg *arg = (const vm_arg *)(const void *)traced;
    if (arg->event != RUBY_EVENT_SCRIPT_COMPILED) {
        capture_event(capture_of_data(data), traced);
        return;
    }
    if (!all.is_on)
        return;
    VALUE compiled = arg->data; /* from eval: an Array of source and code */
    if (RB_TYPE_P(compiled, T_ARRAY))
        compiled = rb_ary_entry(compiled, 1);
    free_buried();
    int interrupted = run(consider_compiled, compiled);
    if (interrupted)
        rb_jump_tag(interrupted);
}

/* ---- On and off. */

typedef struct found {
    vm_iseq **list; /* owned */
    size_t count, room;
    size_t considered;
} found;

static int collect(void *begin, void *end, size_t stride, void *data)
{
    found *f = data;
    for (char *at = begin; at != (char *)end; at += stride) {
        VALUE object = (VALUE)at;
        if ((RBASIC(object)->flags & VM_IMEMO_TYPE_MASK) != all.iseq_signature)
            continue;
        if (f->count == f->room) {
            size_t room = f->room ? f->room * 2 : 4096;
            vm_iseq **list = realloc(f->list, room * sizeof *list);
            if (!list)
                return 1;
            f->list = list;
            f->room = room;
        }
        f->list[f->count++] = (vm_iseq *)at;
    }
    return 0;
}

static VALUE consider_found(VALUE pointer)
{
    found *f = (found *)pointer;
    for (; f->considered < f->count; f->considered++) {
        vm_iseq *iseq = f->list[f->considered];
        consider(iseq, (descent){0});
        if (is_callable(iseq) && select_may_want(NULL, (VALUE)iseq)) /* and what it defines */
            consider_below(wrapper_of(iseq), (descent){.around = iseq});
    }
    return raise_anchor(Qnil);
}

static VALUE count_ractors(VALUE unused)
{
    (void)unused;
    all.has_strangers = NUM2LONG(rb_funcall(rb_cRactor, rb_intern("count"), 0)) > 1;
    return Qnil;
}

#define TRIES 16 /* whoever interrupts the start so often gets the choice in part */

void target_start(void)
{
    if (all.is_on)
        return;
    free_buried();
    all.has_strangers = true;
    run_holding_back(count_ractors, Qnil);
    found f = {0};
    VALUE was_disabled = rb_gc_disable(); /* what is found is not marked, and what is dead must be gone */
    rb_objspace_each_objects(collect, &f);
    for (int tries = 0; !run_holding_back(consider_found, (VALUE)&f) && tries < TRIES; tries++)
        ;
    if (!RTEST(was_disabled))
        rb_gc_enable();
    free(f.list);
    all.is_on = true;
}

/* With another Ractor in it our hooks stay where they are, and return at once; the next stop takes them off. */
void target_stop(void)
{
    if (!all.is_on)
        return;
    all.is_on = false;
    if (!another_ractor_runs()) {
        VALUE was_disabled = rb_gc_disable(); /* finishes the last one: a unit that is still there has its code, too */
        for (unit *u = all.first; u; u = u->next) { /* no lock: no other Ractor, and no GC */
            disarm(u);
            u->first_defined = u->next_defined = NULL;
        }
        if (!RTEST(was_disabled))
            rb_gc_enable();
    }
    lower_anchor();
}

void target_fix_lock_in_child(void) { all.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

/* ---- The self-test. */

static struct {
    const vm_iseq *method; /* borrowed: on the C stack of target_verify */
    unsigned int calls, returns;
} probe;

static void on_anchor(VALUE tracepoint, void *data) { (void)tracepoint, (void)data; }

static VALUE first_child(RB_BLOCK_CALL_FUNC_ARGLIST(wrapper, data))
{
    (void)argc, (void)argv, (void)blockarg;
    if (NIL_P(*(VALUE *)data))
        *(VALUE *)data = wrapper;
    return Qnil;
}

static VALUE child_of(VALUE wrapper)
{
    VALUE child = Qnil;
    rb_block_call(all.each_child, rb_intern("bind_call"), 1, &wrapper, first_child, (VALUE)&child);
    return child;
}

typedef bool (*readable_function)(const void *, size_t);

static vm_iseq *iseq_in(VALUE wrapper, readable_function readable, int type)
{
    if (RB_SPECIAL_CONST_P(wrapper) || RB_BUILTIN_TYPE(wrapper) != T_DATA || !RTYPEDDATA_P(wrapper))
        return NULL;
    vm_iseq *iseq = RTYPEDDATA_GET_DATA(wrapper);
    if (!readable(iseq, sizeof *iseq) || iseq->wrapper != wrapper || rb_iseqw_new(iseq) != wrapper ||
        (iseq->flags & RUBY_T_MASK) != T_IMEMO || (iseq->flags & VM_ISEQ_NOT_READY) || iseq->hooks)
        return NULL;
    const vm_code *code = iseq->code;
    if (!readable(code, sizeof *code) || code->type != type || code->word_count == 0 || code->word_count > 4096)
        return NULL;
    return readable(code->words, sizeof *code->words) && readable(code->words + code->word_count - 1, sizeof *code->words)
               ? iseq
               : NULL;
}

/* Where inner's code names outer as its parent: outer is no method, so it stands there but once. 0: nowhere. */
static size_t find_parent_word(const vm_iseq *inner, const vm_iseq *outer, readable_function readable)
{
    for (size_t i = sizeof(vm_code) / sizeof(VALUE); i < 64; i++) {
        const VALUE *at = (const VALUE *)(const void *)inner->code + i;
        if (!readable(at, sizeof *at))
            return 0;
        if (*at == (VALUE)outer)
            return i;
    }
    return 0;
}

static bool same_words(const vm_iseq *iseq, const VALUE *words)
{
    return memcmp(iseq->code->words, words, iseq->code->word_count * sizeof *words) == 0;
}

/* After a whole trace CRuby keeps all code in its tracing form. */
static bool traces_already(const vm_iseq *iseq)
{
    const rb_event_flag_t events = RUBY_EVENT_CALL | RUBY_EVENT_RETURN;
    return (iseq->global_events & events) == events;
}

/* The VM's own hook on our method, as it hangs it up and takes it off. */
static bool hooks_as_known(vm_iseq *method, const VALUE *plain, readable_function readable)
{
    VALUE own = all.anchor_target;
    all.anchor_target = wrapper_of(method);
    raise_anchor(Qnil);
    const vm_hook_list *list = method->hooks;
    bool ok = list && readable(list, sizeof *list) && list->hooks && readable(list->hooks, offsetof(vm_hook, filters)) &&
              list->hooks->data == all.anchor && list->hooks->flags == CAPTURE_HOOK_FLAGS && !list->hooks->next &&
              list->hooks->events == (RUBY_EVENT_CALL | RUBY_EVENT_RETURN) && list->events == list->hooks->events &&
              list->running == 0 && !list->need_clean && list->is_local &&
              same_words(method, plain) == traces_already(method);
    lower_anchor();
    all.anchor_target = own;
    return ok && !method->hooks && same_words(method, plain);
}

static void on_probe(VALUE guard, const rb_trace_arg_t *traced)
{
    const vm_arg *arg = (const vm_arg *)(const void *)traced;
    const unit *u = RTYPEDDATA_GET_DATA(guard);
    if (u->iseq != probe.method || arg->frame->iseq != (VALUE)probe.method)
        return;
    probe.calls += arg->event == RUBY_EVENT_CALL;
    probe.returns += arg->event == RUBY_EVENT_RETURN;
}

/* Our hook there: it sees the call while it hangs, and the code is as before when it does not. */
static bool works_by_hand(vm_iseq *method, VALUE object, const VALUE *plain)
{
    probe.method = method;
    probe.calls = probe.returns = 0;
    unit *u = hook_up(method);
    VALUE guard = u ? u->guard : Qnil;
    if (!u)
        return false;
    u->hook.function = (rb_event_hook_func_t)(void (*)(void))on_probe;
    raise_anchor(Qnil); /* without any targeted TracePoint the VM does not look for them */
    rb_funcall(object, rb_intern("probed"), 1, INT2FIX(1));
    bool ok = probe.calls == 1 && probe.returns == 1 && (u->patch_count >= 2 || traces_already(method));
    disarm(u);
    rb_funcall(object, rb_intern("probed"), 1, INT2FIX(1));
    lower_anchor();
    ok = ok && probe.calls == 1 && probe.returns == 1 && !method->hooks && same_words(method, plain);
    RB_GC_GUARD(guard);
    return ok;
}

static VALUE unbound(VALUE klass, const char *name)
{
    return rb_funcall(klass, rb_intern("instance_method"), 1, ID2SYM(rb_intern(name)));
}

static VALUE verify(VALUE pointer)
{
    readable_function readable = *(readable_function *)pointer;
    /* Code of which the first child is the next one: block, block, method, block. */
    VALUE made = rb_eval_string("[proc { |c| c.class_eval { def probed(x) = [x].map { |y| y + 1 } } }, Class.new]");
    VALUE iseq_class = rb_path2class("RubyVM::InstructionSequence");
    VALUE outer = rb_ary_entry(made, 0), klass = rb_ary_entry(made, 1);
    all.each_child = unbound(iseq_class, "each_child");
    all.enable = unbound(rb_path2class("TracePoint"), "enable");
    all.anchor_target = rb_eval_string("proc { def anchor = 1 }");
    all.anchor = rb_tracepoint_new(Qnil, RUBY_EVENT_CALL | RUBY_EVENT_RETURN, on_anchor, NULL);
    rb_funcall(outer, rb_intern("call"), 1, klass);
    VALUE object = rb_obj_alloc(klass);
    VALUE wrappers[4] = {rb_funcall(iseq_class, rb_intern("of"), 1, outer)};
    vm_iseq *chain[4];
    static const int types[4] = {VM_CODE_BLOCK, VM_CODE_BLOCK, VM_CODE_METHOD, VM_CODE_BLOCK};
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            wrappers[i] = child_of(wrappers[i - 1]);
        if (!(chain[i] = iseq_in(wrappers[i], readable, types[i])))
            return Qfalse;
    }
    all.iseq_signature = chain[0]->flags & VM_IMEMO_TYPE_MASK;
    all.parent_word = find_parent_word(chain[1], chain[0], readable);
    all.untouched = wrappers[1];
    vm_iseq *method = chain[2];
    VALUE *plain = malloc(method->code->word_count * sizeof *plain);
    bool ok = plain && all.parent_word > 0 && parent_of(chain[3]) == method && is_iseq((VALUE)method);
    if (ok)
        memcpy(plain, method->code->words, method->code->word_count * sizeof *plain);
    ok = ok && hooks_as_known(method, plain, readable) && works_by_hand(method, object, plain);
    free(plain);
    RB_GC_GUARD(made);
    RB_GC_GUARD(object);
    return ok ? Qtrue : Qfalse;
}

bool target_verify(bool (*readable)(const void *address, size_t bytes))
{
    if (!rb_iseqw_new || !rb_iseq_trace_set || !rb_objspace_each_objects)
        return false;
    VALUE *const kept[] = {&all.anchor, &all.anchor_target, &all.untouched, &all.held_back, &all.enable, &all.each_child};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        *kept[i] = Qnil;
        rb_gc_register_address(kept[i]);
    }
    int failed = 0;
    VALUE answer = rb_protect(verify, (VALUE)&readable, &failed);
    if (failed)
        rb_set_errinfo(Qnil);
    return !failed && RTEST(answer);
}
