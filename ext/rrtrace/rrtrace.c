/* rrtrace.c - what Ruby sees: the module functions of Rrtrace::Native, private to the library.
 * Idea:    arguments are checked where a wrong one would crash; everything else is lib/'s work. rb_raise comes last.
 * Threads: GVL held.
 */
#include "capture.h"
#include "frames.h"
#include "join.h"
#include "methods.h"
#include "ractors.h"
#include "select.h"
#include "session.h"
#include "target.h"

#include <ruby/ractor.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static VALUE error_class;

static VALUE native_open_session(VALUE self, VALUE visualizer, VALUE args)
{
    (void)self;
    const char *program = StringValueCStr(visualizer);
    Check_Type(args, T_ARRAY);
    long count = RARRAY_LEN(args);
    for (long i = 0; i < count; i++) { /* what may raise comes before what must be freed */
        VALUE arg = RARRAY_AREF(args, i);
        Check_Type(arg, T_STRING);
        StringValueCStr(arg);
    }
    char **list = calloc((size_t)count + 1, sizeof *list);
    if (!list)
        rb_raise(error_class, "no memory to start the visualizer");
    for (long i = 0; i < count; i++)
        list[i] = RSTRING_PTR(RARRAY_AREF(args, i));
    char path[128], why[512] = "";
    int result = session_open(program, list, (size_t)count, path, sizeof path, why, sizeof why);
    free(list);
    RB_GC_GUARD(args);
    RB_GC_GUARD(visualizer);
    if (result != 0)
        rb_raise(error_class, "%s", why);
    return rb_str_new_cstr(path);
}

static VALUE native_join(VALUE self, VALUE path, VALUE buffer_slots, VALUE drop, VALUE c_calls, VALUE blocks)
{
    (void)self;
    const char *socket_path = StringValueCStr(path);
    unsigned long long slots = NUM2ULL(buffer_slots);
    char why[JOIN_WHY_BYTES] = "";
    if (!ring_slots_ok(slots))
        rb_raise(error_class, "a buffer of %llu slots: a power of two from %llu to %llu is needed", slots,
                 (unsigned long long)RING_SLOTS_MIN, (unsigned long long)RING_SLOTS_MAX);
    capture_options options = {.drop = RTEST(drop), .c_calls = RTEST(c_calls), .blocks = RTEST(blocks)};
    int result = join_session(socket_path, slots, options, why);
    RB_GC_GUARD(path);
    if (result > 0)
        rb_jump_tag(result);
    if (result != 0)
        rb_raise(error_class, "%s", why);
    target_raise_held_back();
    return Qtrue;
}

/* [:file, :folder or :other, may it be written?, may it be run?], or nil: there is none. As File.file? and its like, which let
 * the GVL go: where other threads are busy that is 100 ms for each question about each of them. */
static VALUE native_look(VALUE self, VALUE path)
{
    (void)self;
    const char *name = StringValueCStr(path);
    struct stat st;
    if (stat(name, &st) != 0)
        return Qnil;
    const char *kind = S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "folder" : "other";
    VALUE can_write = access(name, W_OK) == 0 ? Qtrue : Qfalse, can_run = access(name, X_OK) == 0 ? Qtrue : Qfalse;
    RB_GC_GUARD(path);
    return rb_ary_new_from_args(3, ID2SYM(rb_intern(kind)), can_write, can_run);
}

static void check_words(VALUE list)
{
    Check_Type(list, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE word = RARRAY_AREF(list, i);
        Check_Type(word, T_STRING);
        StringValueCStr(word);
    }
}

/* Words as C has them, borrowed from the strings: from here on nothing may allocate an object, as the GC may move them. */
static select_words words_of(VALUE list)
{
    size_t count = (size_t)RARRAY_LEN(list);
    const char **words = calloc(count + 1, sizeof *words);
    for (size_t i = 0; words && i < count; i++)
        words[i] = RSTRING_PTR(RARRAY_AREF(list, (long)i));
    return (select_words){words, words ? count : 0};
}

/* What the next session traces: patterns, patterns, real paths of folders; three empty arrays: everything. */
static VALUE native_select(VALUE self, VALUE only, VALUE except, VALUE folders)
{
    (void)self;
    char why[SELECT_WHY_BYTES] = "";
    if (join_is_on())
        rb_raise(error_class, "this process is traced already");
    VALUE given[3] = {only, except, folders};
    for (int i = 0; i < 3; i++) /* what may raise comes before what must be freed */
        check_words(given[i]);
    select_words lists[3];
    bool has_memory = true;
    for (int i = 0; i < 3; i++) {
        lists[i] = words_of(given[i]);
        has_memory = has_memory && lists[i].words;
    }
    int result = has_memory ? select_set(lists[0], lists[1], lists[2], why) : -1;
    for (int i = 0; i < 3; i++)
        free((void *)(uintptr_t)lists[i].words);
    RB_GC_GUARD(only);
    RB_GC_GUARD(except);
    RB_GC_GUARD(folders);
    if (!has_memory)
        rb_raise(error_class, "no memory for the patterns");
    if (result != 0)
        rb_raise(error_class, "%s", why);
    return Qtrue;
}

/* Nil when the word is a pattern, else the reason why it is none. */
static VALUE native_pattern_trouble(VALUE self, VALUE word)
{
    (void)self;
    char why[SELECT_WHY_BYTES] = "";
    return select_check(StringValueCStr(word), why) == 0 ? Qnil : rb_utf8_str_new_cstr(why);
}

static VALUE native_leave(VALUE self, VALUE wait_ms)
{
    (void)self;
    return join_leave(NUM2INT(wait_ms)) ? Qtrue : Qfalse;
}

static struct {
    int wait_ms;
    bool is_set;
} at_exit;

/* Whatever happens here, the program's exit status is its own. Ctrl-C ends the wait for the visualizer. */
static void leave_at_exit(VALUE unused)
{
    (void)unused;
    VALUE error = rb_errinfo();
    join_leave(at_exit.wait_ms);
    if (join_do_interrupts() != 0)
        rb_set_errinfo(error);
}

/* As at_exit { leave(wait_ms) }, but no event tells of it: a TracePoint of the program's own may still be on. */
static VALUE native_leave_at_exit(VALUE self, VALUE wait_ms)
{
    (void)self;
    at_exit.wait_ms = NUM2INT(wait_ms);
    if (!at_exit.is_set) {
        at_exit.is_set = true;
        rb_set_end_proc(leave_at_exit, Qnil);
    }
    return Qnil;
}

static VALUE native_joined_p(VALUE self)
{
    (void)self;
    return join_is_on() ? Qtrue : Qfalse;
}

/* The current Ractor's stream, NULL when it is not traced. */
static stream *current_stream(void)
{
    stream *s = join_is_on() ? ractors_current() : NULL;
    return s && capture_mode_now(s) == CAPTURE_ON ? s : NULL;
}

static uint32_t string_number(stream *s, VALUE words)
{
    StringValue(words);
    if (!s)
        return 0;
    uint32_t number = methods_string(s, RSTRING_PTR(words), (size_t)RSTRING_LEN(words));
    RB_GC_GUARD(words);
    return number;
}

/* A span's end names its string again, so the id that Ruby keeps holds both. */
static VALUE native_span_begin(VALUE self, VALUE words)
{
    (void)self;
    stream *s = current_stream();
    uint32_t number = string_number(s, words);
    if (number == 0)
        return INT2FIX(0);
    uint32_t id = atomic_fetch_add(&capture.span_count, 1) + 1;
    capture_note(s, EV_SPAN_BEGIN, number, id);
    return ULL2NUM((unsigned long long)number << 32 | id);
}

static VALUE native_span_end(VALUE self, VALUE span)
{
    (void)self;
    unsigned long long both = NUM2ULL(span);
    stream *s = current_stream();
    if (both != 0 && s)
        capture_note(s, EV_SPAN_END, (uint32_t)(both >> 32), (uint32_t)both);
    return Qnil;
}

static VALUE native_mark(VALUE self, VALUE words)
{
    (void)self;
    stream *s = current_stream();
    uint32_t number = string_number(s, words);
    if (number != 0)
        capture_note(s, EV_MARK, number, 0);
    return Qnil;
}

/* In a Ractor: true when it is traced from now on and was not before. */
static VALUE native_attach_ractor(VALUE self)
{
    (void)self;
    if (!join_is_on() || (frames_known.ractors_ok ? ractors_current() : place_stream_slot(rb_thread_current())))
        return Qfalse;
    return ractors_attach() ? Qtrue : Qfalse;
}

static VALUE native_facts(VALUE self)
{
    (void)self;
    static const char *const clocks[] = {"unknown", "CLOCK_MONOTONIC", "TSC", "CNTVCT"};
    uint32_t source = clock_source_detect();
    frames_verify_code();
    frames_verify(false);
    VALUE facts = rb_hash_new();
    rb_hash_aset(facts, ID2SYM(rb_intern("positions_verified")), frames_known.positions_ok ? Qtrue : Qfalse);
    rb_hash_aset(facts, ID2SYM(rb_intern("frames_verified")), frames_known.frames_ok ? Qtrue : Qfalse);
    rb_hash_aset(facts, ID2SYM(rb_intern("ractors_verified")), frames_known.ractors_ok ? Qtrue : Qfalse);
    rb_hash_aset(facts, ID2SYM(rb_intern("code_verified")), frames_known.code_ok ? Qtrue : Qfalse);
    rb_hash_aset(facts, ID2SYM(rb_intern("frame_bytes")), SIZET2NUM(frames_known.frame_bytes));
    rb_hash_aset(facts, ID2SYM(rb_intern("clock")), rb_str_new_cstr(clocks[source < 4 ? source : 0]));
    rb_hash_aset(facts, ID2SYM(rb_intern("shared_memory")), join_memory_works() ? Qtrue : Qfalse);
    return facts;
}

RUBY_FUNC_EXPORTED void Init_rrtrace(void);

void Init_rrtrace(void)
{
    VALUE top = rb_define_module("Rrtrace");
    error_class = rb_define_class_under(top, "Error", rb_eStandardError);
    rb_gc_register_address(&error_class);
    VALUE native = rb_define_module_under(top, "Native");
    rb_define_module_function(native, "open_session", native_open_session, 2);
    rb_define_module_function(native, "join", native_join, 5);
    rb_define_module_function(native, "look", native_look, 1);
    rb_define_module_function(native, "select", native_select, 3);
    rb_define_module_function(native, "pattern_trouble", native_pattern_trouble, 1);
    rb_define_module_function(native, "leave", native_leave, 1);
    rb_define_module_function(native, "leave_at_exit", native_leave_at_exit, 1);
    rb_define_module_function(native, "facts", native_facts, 0);
    rb_ext_ractor_safe(true); /* for what follows: these look at nothing but the current Ractor's own stream */
    rb_define_module_function(native, "joined?", native_joined_p, 0);
    rb_define_module_function(native, "span_begin", native_span_begin, 1);
    rb_define_module_function(native, "span_end", native_span_end, 1);
    rb_define_module_function(native, "mark", native_mark, 1);
    rb_define_module_function(native, "attach_ractor", native_attach_ractor, 0);
    rb_ext_ractor_safe(false);
}
