#include "export/jsonl.h"

#include "base/mem.h"
#include "base/vec.h"
#include "sim/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A call that takes longer than the window. */
typedef struct long_call {
    uint64_t start; /* it was the stream's start-th to begin */
    uint64_t end_ns;
    uint32_t closed; /* sim_closed */
} long_call;

/* A call that waits for its end, or for the calls before it. */
typedef struct waiting {
    uint64_t begin_ns, end_ns;
    uint32_t method; /* with WALK_OPEN_AT_START */
    uint32_t fiber, depth;
    uint32_t closed; /* sim_closed, or UNKNOWN */
} waiting;

#define UNKNOWN UINT32_MAX /* so it stays only if the second pass does not get what the first got */

/* ,"name":"…","kind":"…","start_ns": of one method */
typedef struct method_text {
    char *bytes; /* owned; NULL: not asked for yet */
    size_t count;
} method_text;

typedef struct stream_state {
    uint64_t start_count; /* calls begun in this pass */
    VEC(long_call) long_calls; /* by start in the second pass */
    size_t next_long;          /* the first that is still to begin */
    waiting *ring;             /* owned; second pass, while the stream is open */
    uint64_t written_count;    /* starts below are written */
    VEC(method_text) methods;  /* by number */
} stream_state;

struct jsonl {
    pen *pen;
    bool writes; /* the second pass */
    catalog *catalog;
    walk *walk;
    VEC(stream_state) streams; /* numbered as processes of the catalog */
    uint32_t opened_count;     /* streams of this pass */
    uint64_t origin_ns;
    uint32_t head_fiber; /* whose line's beginning stands in head */
    char head[128];
    size_t head_bytes;
};

static int opened(void *context, walk_fiber *fiber);
static int closed(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed how);
static void defined(void *context, uint32_t process, ev head);

static int begin_pass(jsonl *j)
{
    walk_delete(j->walk);
    catalog_delete(j->catalog);
    j->walk = NULL;
    j->catalog = NULL;
    j->opened_count = 0;
    j->head_fiber = CATALOG_NONE;
    int error = catalog_new(&j->catalog);
    if (error)
        return error;
    return walk_new(&j->walk, j->catalog, &(walk_listener){.opened = opened, .closed = closed, .defined = defined, .context = j});
}

int jsonl_new(jsonl **out, pen *to, uint64_t origin_ns)
{
    jsonl *j = *out = mem_zalloc(1, sizeof *j);
    if (!j)
        return -ENOMEM;
    j->pen = to;
    j->origin_ns = origin_ns;
    int error = begin_pass(j);
    if (error) {
        jsonl_delete(j);
        *out = NULL;
    }
    return error;
}

static void forget_methods(stream_state *st)
{
    for (size_t i = 0; i < st->methods.count; i++)
        mem_free(st->methods.items[i].bytes);
    vec_free(&st->methods);
}

void jsonl_delete(jsonl *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->streams.count; i++) {
        stream_state *st = &j->streams.items[i];
        forget_methods(st);
        mem_free(st->ring);
        vec_free(&st->long_calls);
    }
    vec_free(&j->streams);
    walk_delete(j->walk);
    catalog_delete(j->catalog);
    mem_free(j);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static bool make_method_text(const catalog_method *m, method_text *text)
{
    static const char *const kinds[] = {[EV_METHOD_RUBY] = "ruby", [EV_METHOD_C] = "c", [EV_METHOD_BLOCK] = "block"};
    pen p;
    if (pen_init(&p, -1) != 0)
        return false;
    pen_text(&p, ",\"name\":");
    pen_json(&p, m->name, m->name_bytes);
    pen_format(&p, ",\"kind\":\"%s\",\"start_ns\":", kinds[m->kind]);
    text->bytes = p.error ? NULL : mem_alloc(p.used, 1);
    text->count = p.used;
    if (text->bytes)
        memcpy(text->bytes, p.bytes, p.used);
    pen_free(&p);
    return text->bytes != NULL;
}

/* The text of a method, which is kept when its number is in order; else it is in *own, to be freed. NULL: memory is out. */
static const method_text *text_of(jsonl *j, uint32_t stream, uint32_t number, method_text *own)
{
    stream_state *st = &j->streams.items[stream];
    if (number < st->methods.count && st->methods.items[number].bytes)
        return &st->methods.items[number];
    if (!make_method_text(catalog_method_of(j->catalog, stream, number), own))
        return NULL;
    if (number >= catalog_method_limit(j->catalog, stream))
        return own;
    if (!vec_reserve(&st->methods, (size_t)number + 1))
        return own;
    while (st->methods.count <= number)
        st->methods.items[st->methods.count++] = (method_text){0};
    st->methods.items[number] = *own;
    own->bytes = NULL;
    return &st->methods.items[number];
}

static void defined(void *context, uint32_t process, ev head)
{
    jsonl *j = context;
    stream_state *st = &j->streams.items[process];
    uint32_t number = ev_define_of(head);
    if (ev_define_what(head) != EV_DEFINE_METHOD || number >= st->methods.count)
        return;
    mem_free(st->methods.items[number].bytes);
    st->methods.items[number] = (method_text){0};
}

static char *put(char *to, const char *text)
{
    size_t count = strlen(text);
    memcpy(to, text, count);
    return to + count;
}

/* {"pid":…,"thread":…,"fiber":…,"depth": */
static void make_head(jsonl *j, uint32_t fiber)
{
    const catalog_fiber *is = catalog_fiber_at(j->catalog, fiber);
    const catalog_thread *thread = catalog_thread_at(j->catalog, is->thread);
    char *to = pen_digits(put(j->head, "{\"pid\":"), catalog_process_at(j->catalog, thread->process)->pid);
    to = pen_digits(put(to, ",\"thread\":"), thread->number);
    to = pen_digits(put(to, ",\"fiber\":"), is->number);
    j->head_bytes = (size_t)(put(to, ",\"depth\":") - j->head);
    j->head_fiber = fiber;
}

static int write_line(jsonl *j, uint32_t stream, const waiting *call)
{
    static const char *const ends[] = {
        [SIM_CLOSED_RETURN] = ",\"closed_by\":\"return\"",
        [SIM_CLOSED_UNWOUND] = ",\"closed_by\":\"unwound\"",
        [SIM_CLOSED_END] = ",\"closed_by\":\"end\"",
        [SIM_OPEN] = ",\"closed_by\":null",
    };
    method_text own = {0};
    const method_text *text = text_of(j, stream, call->method & ~WALK_OPEN_AT_START, &own);
    if (!text)
        return -ENOMEM;
    if (j->head_fiber != call->fiber)
        make_head(j, call->fiber);
    char *begin = pen_room(j->pen, text->count + 384), *to = begin; /* head 128, three numbers 60, words 100 */
    if (to) {
        memcpy(to, j->head, j->head_bytes);
        to = pen_digits(to + j->head_bytes, call->depth);
        memcpy(to, text->bytes, text->count);
        to = pen_digits(to + text->count, call->begin_ns > j->origin_ns ? call->begin_ns - j->origin_ns : 0);
        to = put(to, ",\"duration_ns\":");
        to = call->closed <= SIM_CLOSED_UNWOUND ? pen_digits(to, call->end_ns - call->begin_ns) : put(to, "null");
        to = put(to, ends[call->closed <= SIM_OPEN ? call->closed : SIM_OPEN]);
        to = put(to, call->method & WALK_OPEN_AT_START ? ",\"open_at_start\":true}\n" : "}\n");
        j->pen->used += (size_t)(to - begin);
    }
    mem_free(own.bytes);
    return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static uint64_t start_of(const walk_frame *frame) { return (uint64_t)frame->mark[1] << 32 | frame->mark[0]; }

static int write_first(jsonl *j, uint32_t stream, stream_state *st)
{
    return write_line(j, stream, &st->ring[st->written_count++ % JSONL_WINDOW]);
}

static int opened(void *context, walk_fiber *fiber)
{
    jsonl *j = context;
    stream_state *st = &j->streams.items[fiber->process];
    walk_frame *top = &fiber->frames.items[fiber->frames.count - 1];
    uint64_t start = st->start_count++;
    top->mark[0] = (uint32_t)start;
    top->mark[1] = (uint32_t)(start >> 32);
    if (!j->writes)
        return 0;
    int error = start - st->written_count == JSONL_WINDOW ? write_first(j, fiber->process, st) : 0;
    waiting *place = &st->ring[start % JSONL_WINDOW];
    *place = (waiting){
        .begin_ns = top->begin_ns,
        .method = top->method,
        .fiber = fiber->id,
        .depth = (uint32_t)fiber->frames.count - 1,
        .closed = UNKNOWN,
    };
    if (st->next_long < st->long_calls.count && st->long_calls.items[st->next_long].start == start) {
        place->end_ns = st->long_calls.items[st->next_long].end_ns;
        place->closed = st->long_calls.items[st->next_long++].closed;
    }
    return error;
}

static int closed(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed how)
{
    jsonl *j = context;
    stream_state *st = &j->streams.items[fiber->process];
    uint64_t start = start_of(frame);
    bool is_long = st->start_count - start > JSONL_WINDOW;
    if (j->writes && !is_long) {
        st->ring[start % JSONL_WINDOW].end_ns = end_ns;
        st->ring[start % JSONL_WINDOW].closed = (uint32_t)how;
    } else if (!j->writes && is_long) {
        long_call *call = vec_push(&st->long_calls);
        if (!call)
            return -ENOMEM;
        *call = (long_call){start, end_ns, (uint32_t)how};
    }
    return 0;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

uint32_t jsonl_stream_open(jsonl *j, uint32_t pid)
{
    uint32_t stream = j->opened_count;
    if (!j->writes) {
        stream_state *new_one = vec_push(&j->streams);
        if (!new_one)
            return JSONL_STREAM_NONE;
        *new_one = (stream_state){0};
    }
    if (stream >= j->streams.count)
        return JSONL_STREAM_NONE; /* not the streams of the first pass */
    stream_state *st = &j->streams.items[stream];
    st->start_count = 0;
    if (j->writes && !(st->ring = mem_alloc(JSONL_WINDOW, sizeof *st->ring)))
        return JSONL_STREAM_NONE;
    if (catalog_process_add(j->catalog, pid, 0) != stream || walk_stream_open(j->walk, stream) != stream)
        return JSONL_STREAM_NONE;
    return j->opened_count++;
}

int jsonl_run(jsonl *j, uint32_t stream, const ev *events, size_t event_count)
{
    return walk_run(j->walk, stream, events, event_count);
}

int jsonl_stream_close(jsonl *j, uint32_t stream, bool has_ended)
{
    int error = walk_stream_close(j->walk, stream, has_ended ? SIM_CLOSED_END : SIM_OPEN);
    stream_state *st = &j->streams.items[stream];
    while (j->writes && st->ring && st->written_count < st->start_count && !error)
        error = write_first(j, stream, st);
    mem_free(st->ring);
    st->ring = NULL;
    forget_methods(st);
    return error;
}

static int by_start(const void *a, const void *b)
{
    const long_call *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

int jsonl_second_pass(jsonl *j)
{
    for (size_t i = 0; i < j->streams.count; i++) {
        stream_state *st = &j->streams.items[i];
        if (st->long_calls.count > 0)
            qsort(st->long_calls.items, st->long_calls.count, sizeof *st->long_calls.items, by_start);
    }
    j->writes = true;
    return begin_pass(j);
}

uint64_t jsonl_dropped(const jsonl *j) { return catalog_dropped(j->catalog); }
