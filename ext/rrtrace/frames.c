#include "frames.h"

#include "capture.h"
#include "methods.h"
#include "target.h"

#include <fcntl.h>
#include <ruby/ractor.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

frames_facts frames_known;

/* An argument of our own making, to ask the VM's public accessors about any frame. The members after the known ones
 * are 'not yet looked up'; frames_verify tries it before anybody relies on it. */
typedef struct vm_fake_arg {
    vm_arg head;
    int klass_solved;
    int line;
    VALUE path;
    char spare[VM_ARG_COPY_BYTES];
} vm_fake_arg;

static vm_fake_arg fake_arg(const vm_context *ec, const vm_frame *frame, VALUE self)
{
    return (vm_fake_arg){.head = {.event = RUBY_EVENT_CALL, .ec = ec, .frame = frame, .self = self, .data = Qundef},
                         .path = Qundef};
}

static const vm_frame *frame_at(const vm_frame *frame, ptrdiff_t older)
{
    return (const vm_frame *)(const void *)((const char *)frame + older * (ptrdiff_t)frames_known.frame_bytes);
}

/* ---- The self-test. */

enum { SEEN_MAX = 32 };
typedef struct seen_event {
    rb_event_flag_t event;
    const vm_context *ec;
    const vm_frame *frame;
    VALUE entry; /* compared only */
} seen_event;

static struct {
    VALUE object; /* borrowed: on the C stack of frames_verify for as long as the test runs */
    seen_event seen[SEEN_MAX];
    int count;
    bool with_c; /* events of C methods come, too */
    bool argument_ok, frames_ok, leaf_ok;
    int pipe[2];
} probe;

/* Can these bytes be read? Asks the kernel, which answers EFAULT where a load would end the program. */
static bool readable(const void *address, size_t bytes)
{
    char back[256];
    if (((uintptr_t)address & 7) != 0 || bytes > sizeof back)
        return false;
    ssize_t written = write(probe.pipe[1], address, bytes);
    if (written > 0 && read(probe.pipe[0], back, (size_t)written) != written)
        return false;
    return written == (ssize_t)bytes;
}

static bool argument_as_known(rb_trace_arg_t *raw)
{
    const vm_arg *arg = (const vm_arg *)(const void *)raw;
    rb_event_flag_t event = rb_tracearg_event_flag(raw);
    if (arg->event != event || arg->self != probe.object)
        return false;
    if (event & (RUBY_EVENT_RETURN | RUBY_EVENT_C_RETURN))
        return arg->data == rb_tracearg_return_value(raw);
    VALUE klass = rb_tracearg_defined_class(raw);
    return arg->klass == klass && arg->id != 0 && ID2SYM(arg->id) == rb_tracearg_method_id(raw);
}

static bool frame_as_known(const vm_arg *arg)
{
    const vm_context *ec = arg->ec;
    const vm_frame *frame = arg->frame;
    if (!readable(ec, sizeof *ec) || !readable(frame, sizeof *frame) || !readable(frame->ep - 2, 3 * sizeof(VALUE)))
        return false;
    VALUE entry = vm_frame_entry(frame);
    if (RB_SPECIAL_CONST_P(entry) || !readable((const void *)entry, sizeof(VALUE)) || RB_BUILTIN_TYPE(entry) != T_IMEMO)
        return false;
    return ec->frame == frame && (const VALUE *)(const void *)frame > ec->stack &&
           (const VALUE *)(const void *)frame < ec->stack + ec->stack_words && frame->self == probe.object &&
           frame->iseq != 0 && vm_frame_type(frame) == VM_TYPE_METHOD;
}

static void probe_hook(VALUE data, const rb_trace_arg_t *arg)
{
    (void)data;
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(uintptr_t)arg;
    if (rb_tracearg_self(raw) != probe.object || probe.count == SEEN_MAX)
        return;
    const vm_arg *known = (const vm_arg *)(const void *)raw;
    probe.seen[probe.count++] = (seen_event){rb_tracearg_event_flag(raw), known->ec, known->frame, 0};
    probe.argument_ok = probe.argument_ok && argument_as_known(raw);
    probe.frames_ok = probe.frames_ok && probe.argument_ok && frame_as_known(known);
    if (probe.frames_ok)
        probe.seen[probe.count - 1].entry = vm_frame_entry(known->frame);
}

/* The innermost method of the self-test. Its own frame is one below the one that its C_CALL showed. */
static VALUE probe_leaf(VALUE self)
{
    int own_events = probe.with_c ? 1 : 0;
    if (probe.count < 2 + own_events || !probe.frames_ok)
        return self;
    const seen_event *inner = &probe.seen[probe.count - own_events - 1], *outer = inner - 1;
    ptrdiff_t bytes = (const char *)outer->frame - (const char *)inner->frame;
    if (bytes < (ptrdiff_t)sizeof(vm_frame) || bytes > 128 || bytes % 8 != 0)
        return self;
    frames_known.frame_bytes = (size_t)bytes;
    const vm_frame *own = frame_at(inner->frame, -1);
    vm_fake_arg fake = fake_arg(outer->ec, outer->frame, self);
    VALUE klass = rb_tracearg_defined_class((rb_trace_arg_t *)(void *)&fake);
    probe.leaf_ok = vm_frame_type(own) == VM_TYPE_CFUNC && own->iseq == 0 && own->self == self &&
                    klass == rb_obj_class(self) && fake.head.id == rb_intern("outer");
    return self;
}

static VALUE probe_run(VALUE object)
{
    rb_funcall(object, rb_intern("outer"), 0);
    return rb_funcall(object, rb_intern("elsewhere"), 0);
}

/* The object, and the code that its methods are in. */
static VALUE probe_make(VALUE unused)
{
    (void)unused;
    VALUE made = rb_eval_string("code = proc { def outer = inner\n def inner = leaf\n"
                                "def elsewhere = Fiber.new { outer }.resume }\n[Class.new(&code).new, code]");
    rb_define_singleton_method(rb_ary_entry(made, 0), "leaf", probe_leaf, 0);
    return made;
}

/* Where the second run of outer begins: behind the first one, and elsewhere's CALL. */
static const seen_event *second_run(void) { return probe.seen + (probe.with_c ? 7 : 5); }

/* A method's entry is the same at each of its calls, and no other method's. */
static bool entries_as_known(void)
{
    const seen_event *first = probe.seen, *second = second_run();
    return first[0].entry == second[0].entry && first[1].entry == second[1].entry && first[0].entry != first[1].entry &&
           first[0].entry != 0;
}

/* outer, inner and leaf twice: by themselves, and in another fiber inside elsewhere. */
static bool sequence_as_known(void)
{
    static const rb_event_flag_t with_c[] = {RUBY_EVENT_CALL,     RUBY_EVENT_CALL,   RUBY_EVENT_C_CALL,
                                             RUBY_EVENT_C_RETURN, RUBY_EVENT_RETURN, RUBY_EVENT_RETURN};
    static const rb_event_flag_t without_c[] = {RUBY_EVENT_CALL, RUBY_EVENT_CALL, RUBY_EVENT_RETURN, RUBY_EVENT_RETURN};
    const rb_event_flag_t *want = probe.with_c ? with_c : without_c;
    const int run = probe.with_c ? 6 : 4;
    if (probe.count != 2 * run + 2)
        return false;
    const seen_event *first = probe.seen, *second = second_run();
    for (int i = 0; i < run; i++) {
        if (first[i].event != want[i] || second[i].event != want[i])
            return false;
        if (first[i].ec != first[0].ec || second[i].ec != second[0].ec)
            return false;
    }
    bool same_frames = first[0].frame == first[run - 1].frame && first[1].frame == first[run - 2].frame;
    if (probe.with_c)
        same_frames = same_frames && first[2].frame == first[1].frame && first[3].frame == first[1].frame;
    return same_frames && first[1].frame < first[0].frame && first[0].ec != second[0].ec;
}

/* The Ractor of the current thread, its list of hooks, and a hook in it. */
static bool ractor_as_known(void)
{
    VALUE thread = rb_thread_current();
    const vm_thread *th = vm_thread_of(thread);
    if (!readable(th, sizeof *th) || th->self != thread || !readable(th->ractor, sizeof *th->ractor))
        return false;
    const vm_ractor *ractor = th->ractor;
    if (ractor->self != rb_funcall(rb_cRactor, rb_intern("current"), 0) || ractor->id == 0 ||
        RTYPEDDATA_GET_DATA(ractor->self) != (const void *)ractor)
        return false;
    const rb_event_flag_t mine = RUBY_EVENT_THREAD_END; /* of which none comes meanwhile */
    const vm_hook *before = ractor->hooks;
    rb_event_flag_t events = ractor->events;
    rb_event_hook_func_t function = (rb_event_hook_func_t)(void (*)(void))probe_hook;
    rb_add_event_hook2(function, mine, INT2FIX(77), CAPTURE_HOOK_FLAGS);
    const vm_hook *hook = ractor->hooks;
    bool ok = hook != before && readable(hook, offsetof(vm_hook, filters) + 2 * sizeof(void *)) && hook->flags == CAPTURE_HOOK_FLAGS &&
              hook->events == mine && hook->function == function && hook->data == INT2FIX(77) && hook->next == before &&
              !hook->filters[0] && !(uint32_t)(uintptr_t)hook->filters[1] && ractor->events == (events | mine);
    rb_remove_event_hook(function);
    return ok && ractor->hooks == before && ractor->events == events;
}

static VALUE probe_ractor(VALUE unused)
{
    (void)unused;
    frames_known.ractors_ok = ractor_as_known();
    return Qnil;
}

static void probe_point(VALUE tracepoint, void *unused)
{
    (void)unused;
    probe_hook(Qnil, rb_tracearg_from_tracepoint(tracepoint));
}

/* Runs the methods with a hook on everything, or on their code alone. */
static VALUE probe_watch(VALUE made)
{
    VALUE object = rb_ary_entry(made, 0);
    if (probe.with_c) {
        int failed = 0;
        rb_add_event_hook2((rb_event_hook_func_t)(void (*)(void))probe_hook,
                           RUBY_EVENT_CALL | RUBY_EVENT_RETURN | RUBY_EVENT_C_CALL | RUBY_EVENT_C_RETURN, Qnil,
                           RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
        rb_protect(probe_run, object, &failed);
        rb_remove_event_hook((rb_event_hook_func_t)(void (*)(void))probe_hook);
        if (failed)
            rb_jump_tag(failed);
        return Qnil;
    }
    VALUE point = rb_tracepoint_new(Qnil, RUBY_EVENT_CALL | RUBY_EVENT_RETURN, probe_point, NULL), options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(rb_intern("target")), rb_ary_entry(made, 1));
    rb_funcallv_kw(point, rb_intern("enable"), 1, &options, RB_PASS_KEYWORDS);
    probe_run(object);
    rb_tracepoint_disable(point);
    return Qnil;
}

static void close_pipe(void)
{
    close(probe.pipe[0]);
    close(probe.pipe[1]);
}

static void verify_frames(void)
{
    int failed = 0;
    VALUE made = rb_protect(probe_make, Qnil, &failed);
    if (!failed) {
        probe.object = rb_ary_entry(made, 0);
        probe.argument_ok = probe.frames_ok = true;
        rb_protect(probe_watch, made, &failed);
    }
    if (failed)
        rb_set_errinfo(Qnil);
    else {
        frames_known.positions_ok = probe.argument_ok && sequence_as_known();
        frames_known.frames_ok = frames_known.positions_ok && probe.frames_ok && probe.leaf_ok && entries_as_known() &&
                                 !getenv("RRTRACE_TEST_UNKNOWN_FRAMES");
    }
    probe.object = Qnil;
    RB_GC_GUARD(made);
}

void frames_verify(bool is_quiet)
{
    frames_level wanted = is_quiet ? FRAMES_CHECKED_QUIETLY : FRAMES_CHECKED;
    if (frames_known.checked >= wanted)
        return;
    bool is_first = frames_known.checked == FRAMES_UNCHECKED;
    frames_known.checked = wanted;
    memset(&probe, 0, sizeof probe);
    probe.with_c = !is_quiet;
    if (getenv("RRTRACE_TEST_COUNT_POSITIONS")) /* tests try what happens on a Ruby that we do not know */
        return;
    if (pipe2(probe.pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    verify_frames();
    if (frames_known.frames_ok && is_first && !getenv("RRTRACE_TEST_NO_RACTOR_HOOKS")) {
        int failed = 0;
        rb_protect(probe_ractor, Qnil, &failed);
        if (failed)
            rb_set_errinfo(Qnil);
    }
    close_pipe();
}

void frames_verify_code(void)
{
    frames_verify(true);
    if (frames_known.code_checked || !frames_known.ractors_ok) /* such hooks are heard in all Ractors */
        return;
    frames_known.code_checked = true;
    if (getenv("RRTRACE_TEST_NO_TARGETS") || pipe2(probe.pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    frames_known.code_ok = target_verify(readable);
    close_pipe();
}

/* ---- Open frames. */

static void push_frame(stream *s, uint32_t number, uint32_t position)
{
    if (number != 0)
        capture_push(s, EV_FRAME, number, position);
}

static void push_one(stream *s, const vm_arg *arg, const vm_frame *frame)
{
    uint32_t type = vm_frame_type(frame);
    bool is_bmethod = type == VM_TYPE_BLOCK && (frame->ep[0] & VM_FLAG_BMETHOD);
    bool is_c = type == VM_TYPE_CFUNC;
    if (type != VM_TYPE_METHOD && type != VM_TYPE_BLOCK && !is_c)
        return;
    if ((is_c && !s->options.c_calls) || (type == VM_TYPE_BLOCK && !is_bmethod && !s->options.blocks))
        return;
    vm_fake_arg fake = fake_arg(arg->ec, frame, frame->self);
    rb_trace_arg_t *raw = (rb_trace_arg_t *)(void *)&fake;
    VALUE klass = rb_tracearg_defined_class(raw);
    ID id = fake.head.id;
    if (NIL_P(klass))
        klass = 0;
    if (is_c)
        push_frame(s, methods_find(s, raw, klass, id, 0, EV_METHOD_C), vm_position(frame_at(frame, 1)) | EV_POSITION_C);
    if (type == VM_TYPE_METHOD || is_bmethod)
        push_frame(s, methods_find(s, raw, vm_frame_entry(frame), METHODS_BY_ADDRESS, frame->iseq, EV_METHOD_RUBY),
                   vm_position(frame));
    if (type == VM_TYPE_BLOCK && s->options.blocks)
        push_frame(s, methods_find(s, raw, frame->iseq, METHODS_BY_ADDRESS, frame->iseq, EV_METHOD_BLOCK),
                   vm_position(frame) | EV_POSITION_BLOCK);
}

void frames_push_open(stream *s, rb_trace_arg_t *raw)
{
    const vm_arg *arg = (const vm_arg *)(const void *)raw;
    if (!frames_known.frames_ok || arg->ec->stack == NULL)
        return;
    const vm_frame *end = (const vm_frame *)(const void *)(arg->ec->stack + arg->ec->stack_words);
    const vm_frame *innermost = arg->frame;
    if (arg->event & (RUBY_EVENT_CALL | RUBY_EVENT_B_CALL))
        innermost = frame_at(innermost, 1);
    /* The outermost frame of every stack is a dummy of the VM's. */
    for (const vm_frame *frame = frame_at(end, -2); frame >= innermost; frame = frame_at(frame, -1))
        push_one(s, arg, frame);
}
