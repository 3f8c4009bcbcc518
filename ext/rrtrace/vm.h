/* vm.h - what the tracer knows of CRuby's private memory: all of it, in one place.
 * For:     capture.c (the hook's argument), frames.c (the control frames), methods.c, ractors.c (threads, Ractors, hooks),
 *          target.c (code and its own hooks).
 * Idea:    a raw-argument hook gets a pointer to a private struct whose first members have not changed from 3.3 to 4.0.
 *          frames_verify checks at run time that they are what is written here; nobody reads them before it said yes.
 * Memory:  none; these are views of memory that belongs to the VM.
 * Threads: GVL held, but for vm_thread_of.
 */
#ifndef RRTRACE_EXT_VM_H
#define RRTRACE_EXT_VM_H

#include <ruby.h>
#include <ruby/debug.h>
#include <stdbool.h>
#include <stdint.h>

/* vm_core.h: struct rb_control_frame_struct, its first members. A frame has 7 words or 8; the size is measured. */
typedef struct vm_frame {
    const VALUE *pc;
    VALUE *sp;
    VALUE iseq; /* 0 in C frames */
    VALUE self;
    const VALUE *ep; /* ep[0]: the frame's type and flags; ep[-2]: its method entry (VM_ENV_DATA_INDEX_ME_CREF) */
} vm_frame;

/* vm_core.h: struct rb_execution_context_struct, its first members. One a fiber. */
typedef struct vm_context {
    VALUE *stack;
    size_t stack_words;
    const vm_frame *frame;
} vm_context;

/* vm_core.h: struct rb_trace_arg_struct, its first members. id and klass of Ruby methods are filled in by
 * rb_tracearg_defined_class. */
typedef struct vm_arg {
    rb_event_flag_t event;
    const vm_context *ec;
    const vm_frame *frame;
    VALUE self;
    ID id;
    ID called_id;
    VALUE klass;
    VALUE data;
} vm_arg;

/* vm_trace.c: struct rb_event_hook_struct. What stands for the filters is zero: no filter. */
typedef struct vm_hook {
    rb_event_hook_flag_t flags;
    rb_event_flag_t events;
    rb_event_hook_func_t function;
    VALUE data;
    struct vm_hook *next;
    void *filters[5]; /* two are used in 3.3 */
} vm_hook;

/* vm_core.h: struct rb_ractor_pub, with which struct rb_ractor_struct begins, and the rb_hook_list_t in it. Every Ractor has
 * a list of event hooks of its own; only its own threads, which hold its GVL, change it. */
typedef struct vm_ractor {
    VALUE self;
    uint32_t id; /* 1: the main one */
    vm_hook *hooks;
    rb_event_flag_t events; /* of all hooks in the list */
} vm_ractor;

/* vm_core.h: struct rb_thread_struct, its first members. */
typedef struct vm_thread {
    void *siblings[2];
    VALUE self;
    vm_ractor *ractor;
} vm_thread;

/* vm_core.h: struct rb_hook_list_struct. An iseq's own hooks (those of targeted TracePoints) are in a list on the heap, which
 * the VM frees when its last event goes. */
typedef struct vm_hook_list {
    vm_hook *hooks;
    rb_event_flag_t events;
    unsigned int running; /* times that the list is being walked now */
    bool need_clean, is_local;
} vm_hook_list;

/* vm_core.h: struct rb_iseq_constant_body, its first members. The parent is one more, whose place is looked for. */
typedef struct vm_code {
    int type; /* VM_CODE_… */
    unsigned int word_count;
    VALUE *words; /* instructions and operands; an instruction that has events is there in its tracing form or the plain one */
} vm_code;
enum { VM_CODE_METHOD = 1, VM_CODE_BLOCK = 2 };

/* vm_core.h: struct rb_iseq_struct. */
typedef struct vm_iseq {
    VALUE flags;
    VALUE wrapper; /* the RubyVM::InstructionSequence, once there is one */
    vm_code *code;
    vm_hook_list *hooks;           /* NULL: none. These two are there once it is compiled */
    rb_event_flag_t global_events; /* for which instructions are in their tracing form, whoever asked */
} vm_iseq;

/* iseq.h: being compiled, or not loaded yet. */
#define VM_ISEQ_NOT_READY ((VALUE)(RUBY_FL_USER5 | RUBY_FL_USER6))
/* internal/imemo.h: what kind of a T_IMEMO it is. */
#define VM_IMEMO_TYPE_MASK ((VALUE)(RUBY_T_MASK | RUBY_FL_USER0 | RUBY_FL_USER1 | RUBY_FL_USER2 | RUBY_FL_USER3))

/* Functions that CRuby has not promised to anybody; NULL where there is none. */
extern VALUE rb_iseqw_new(const void *iseq) __attribute__((weak));
extern void rb_iseq_trace_set(const void *iseq, rb_event_flag_t events) __attribute__((weak));
extern void rb_objspace_each_objects(int (*callback)(void *, void *, size_t, void *), void *data) __attribute__((weak));

/* The rest of the argument (klass_solved, line, path) is some 16 bytes; a copy of an argument takes this many. */
#define VM_ARG_COPY_BYTES 96

/* ep[0]: VM_FRAME_MAGIC_… and VM_FRAME_FLAG_BMETHOD. */
#define VM_TYPE_MASK 0x7fff0001u
#define VM_TYPE_METHOD 0x11110001u
#define VM_TYPE_BLOCK 0x22220001u
#define VM_TYPE_CFUNC 0x55550001u
#define VM_FLAG_BMETHOD 0x0040u

/* Any thread, GVL or not. */
static inline const vm_thread *vm_thread_of(VALUE thread) { return (const vm_thread *)RTYPEDDATA_GET_DATA(thread); }

static inline uint32_t vm_frame_type(const vm_frame *frame) { return (uint32_t)frame->ep[0] & VM_TYPE_MASK; }
static inline VALUE vm_frame_entry(const vm_frame *frame) { return frame->ep[-2]; }
static inline uint32_t vm_position(const vm_frame *frame) { return (uint32_t)(uintptr_t)frame; }

#endif
