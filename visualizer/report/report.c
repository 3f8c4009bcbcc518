#include "report/report.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "base/vec.h"
#include "report/activity.h"
#include "sim/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame's marks: its method and its arc. */
enum { METHOD = 0, ARC = 1 };
#define IS_RECURSIVE 0x80000000u     /* in mark[METHOD]: the method was open below it already */
#define IS_ARC_RECURSIVE 0x80000000u /* in mark[ARC] */
#define INDEX_MAX 0x7ffffffeu

typedef VEC(uint32_t) ids;

/* What a stream's numbers are here. */
typedef struct stream_state {
    ids methods; /* method number -> index, REPORT_NONE: not asked for yet */
} stream_state;

struct report {
    report_desc desc;
    pattern thread, method;
    uint32_t thread_number; /* 0: threads are not chosen by number */
    catalog *catalog;
    walk *walk;
    VEC(stream_state) streams; /* by the catalog's process id, which is the stream's number */
    VEC(report_method) methods;
    VEC(uint32_t) buckets; /* methods by content: open addressing, REPORT_NONE: free */
    VEC(report_arc) arcs;
    map arc_ids; /* caller << 32 | callee */
    VEC(activity) activities; /* by fiber */
    activity spare;           /* of the last stack that became empty */
    VEC(report_thread) threads; /* by the catalog's id until report_finish */
    VEC(report_process) processes; /* likewise */
    VEC(report_long_call) longest; /* a heap, shortest first, until report_finish */
    own_sums own;
    map named; /* stream << 32 | thread number: its name matched at some time */
    uint64_t event_count, begin_ns, end_ns;
};

static int opened(void *context, walk_fiber *fiber);
static int closed(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed how);
static void gvl(void *context, uint32_t thread, sim_gvl state, uint64_t begin_ns, uint64_t end_ns);
static void gc(void *context, uint32_t process, uint64_t begin_ns, uint64_t end_ns);
static int thread_event(void *context, uint32_t thread, ev_kind kind);
static void defined(void *context, uint32_t process, ev head);
static int noted(void *context, const sim_note *note);

static int init_filters(report *r, char *error, size_t error_bytes)
{
    char why[128], *end;
    int result = pattern_init(&r->method, r->desc.method, why, sizeof why);
    const char *which = "--method", *text = r->desc.method;
    if (result == 0) {
        which = "--thread";
        text = r->desc.thread;
        result = pattern_init(&r->thread, text, why, sizeof why);
    }
    if (result) {
        snprintf(error, error_bytes, "%s %s: no regular expression: %s", which, text, why);
        return result;
    }
    unsigned long number = r->desc.thread ? strtoul(r->desc.thread, &end, 10) : 0;
    if (number > 0 && number <= EV_NUMBER_MAX && *end == '\0')
        r->thread_number = (uint32_t)number;
    return 0;
}

int report_new(report **out, const report_desc *desc, char *error, size_t error_bytes)
{
    snprintf(error, error_bytes, "memory is out");
    report *r = *out = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->desc = *desc;
    r->desc.to_ns = desc->to_ns ? desc->to_ns : UINT64_MAX;
    int result = init_filters(r, error, error_bytes);
    if (result == 0)
        result = catalog_new(&r->catalog);
    if (result == 0)
        result = walk_new(&r->walk, r->catalog, &(walk_listener){opened, closed, gvl, gc, thread_event, noted, defined, r});
    r->own.from_ns = r->desc.from_ns;
    r->own.to_ns = r->desc.to_ns;
    if (result == 0)
        walk_count(r->walk, r->desc.from_ns, r->desc.to_ns);
    if (result) {
        report_delete(r);
        *out = NULL;
    }
    return result;
}

void report_delete(report *r)
{
    if (!r)
        return;
    walk_delete(r->walk);
    for (size_t i = 0; i < r->streams.count; i++)
        vec_free(&r->streams.items[i].methods);
    for (size_t i = 0; i < r->activities.count; i++)
        activity_free(&r->activities.items[i]);
    activity_free(&r->spare);
    vec_free(&r->streams);
    vec_free(&r->methods);
    vec_free(&r->buckets);
    vec_free(&r->arcs);
    map_free(&r->arc_ids);
    vec_free(&r->activities);
    vec_free(&r->threads);
    vec_free(&r->processes);
    vec_free(&r->longest);
    own_free(&r->own);
    map_free(&r->named);
    pattern_free(&r->thread);
    pattern_free(&r->method);
    catalog_delete(r->catalog);
    mem_free(r);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const catalog_method *m)
{
    uint64_t hash = hash_bytes(HASH_BEGIN ^ m->line ^ (uint64_t)m->kind << 32, m->name, m->name_bytes);
    hash = hash_bytes(hash, m->path, m->path_bytes);
    return hash ^ hash >> 29;
}

static bool is_same(const catalog_method *a, const catalog_method *b)
{
    return a->name_bytes == b->name_bytes && a->path_bytes == b->path_bytes && a->line == b->line && a->kind == b->kind &&
           memcmp(a->name, b->name, a->name_bytes) == 0 && memcmp(a->path, b->path, a->path_bytes) == 0;
}

/* The bucket that holds m, or the free one where it would go. */
static uint32_t *find_bucket(const report *r, const catalog_method *m)
{
    size_t mask = r->buckets.count - 1, i = (size_t)hash_of(m) & mask;
    while (r->buckets.items[i] != REPORT_NONE && !is_same(r->methods.items[r->buckets.items[i]].is, m))
        i = (i + 1) & mask;
    return &r->buckets.items[i];
}

static bool grow_buckets(report *r)
{
    size_t count = r->buckets.count ? r->buckets.count * 2 : 256;
    if (!vec_reserve(&r->buckets, count))
        return false;
    r->buckets.count = count;
    memset(r->buckets.items, 0xff, count * sizeof *r->buckets.items);
    for (size_t i = 0; i < r->methods.count; i++)
        *find_bucket(r, r->methods.items[i].is) = (uint32_t)i;
    return true;
}

/* The index of the method with this content, REPORT_NONE: memory is out. */
static uint32_t intern(report *r, const catalog_method *m)
{
    if ((r->methods.count + 1) * 2 > r->buckets.count && !grow_buckets(r))
        return REPORT_NONE;
    uint32_t *bucket = find_bucket(r, m);
    if (*bucket != REPORT_NONE)
        return *bucket;
    report_method *new_one = r->methods.count < INDEX_MAX ? vec_push(&r->methods) : NULL;
    if (!new_one)
        return REPORT_NONE;
    *new_one = (report_method){.is = m, .is_shown = pattern_matches(&r->method, m->name, m->name_bytes), .min_ns = UINT64_MAX};
    return *bucket = (uint32_t)(r->methods.count - 1);
}

static uint32_t method_of(report *r, uint32_t process, uint32_t number)
{
    ids *known = &r->streams.items[process].methods;
    if (number < known->count && known->items[number] != REPORT_NONE)
        return known->items[number];
    uint32_t index = intern(r, catalog_method_of(r->catalog, process, number));
    if (index == REPORT_NONE || number >= catalog_method_limit(r->catalog, process))
        return index; /* undefined so far: ask again */
    if (number >= known->count) {
        if (!vec_reserve(known, (size_t)number + 1))
            return REPORT_NONE;
        memset(known->items + known->count, 0xff, ((size_t)number + 1 - known->count) * sizeof *known->items);
        known->count = (size_t)number + 1;
    }
    return known->items[number] = index;
}

static void defined(void *context, uint32_t process, ev head)
{
    report *r = context;
    uint32_t number = ev_define_of(head);
    if (ev_define_what(head) == EV_DEFINE_METHOD && number < r->streams.items[process].methods.count)
        r->streams.items[process].methods.items[number] = REPORT_NONE;
}

static uint32_t arc_of(report *r, uint32_t caller, uint32_t callee)
{
    uint64_t key = (uint64_t)caller << 32 | callee;
    uint32_t id = map_get(&r->arc_ids, key);
    if (id != MAP_NONE)
        return id;
    if (r->arcs.count >= INDEX_MAX || !vec_reserve(&r->arcs, r->arcs.count + 1) ||
        map_put(&r->arc_ids, key, (uint32_t)r->arcs.count) != 0)
        return REPORT_NONE;
    r->arcs.items[r->arcs.count] = (report_arc){.caller = caller, .callee = callee};
    return (uint32_t)r->arcs.count++;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static bool is_chosen(const report *r, uint32_t id)
{
    const catalog_thread *t = catalog_thread_at(r->catalog, id);
    uint32_t pid = catalog_process_at(r->catalog, t->process)->pid;
    if (r->desc.pid && pid != r->desc.pid)
        return false;
    if (r->thread_number)
        return t->number == r->thread_number;
    if (!r->desc.thread || map_get(&r->named, (uint64_t)t->process << 32 | t->number) != MAP_NONE)
        return true;
    char title[CATALOG_TITLE_BYTES];
    catalog_thread_title(r->catalog, id, title);
    return pattern_matches(&r->thread, title, strlen(title));
}

/* NULL: memory is out. */
static report_thread *thread_at(report *r, uint32_t id)
{
    if (id >= r->threads.count && !vec_reserve(&r->threads, (size_t)id + 1))
        return NULL;
    for (; r->threads.count <= id; r->threads.count++)
        r->threads.items[r->threads.count] = (report_thread){.id = REPORT_NONE};
    report_thread *t = &r->threads.items[id];
    if (t->id == REPORT_NONE) {
        const catalog_thread *is = catalog_thread_at(r->catalog, id);
        *t = (report_thread){.process = is->process, .id = id, .is_counted = is_chosen(r, id)};
    }
    return t;
}

/* A thread that is only spoken of (made, and dead before it ran) has fired no event itself. */
static int thread_event(void *context, uint32_t thread, ev_kind kind)
{
    report_thread *t = thread_at(context, thread);
    if (!t)
        return -ENOMEM;
    if (kind == EV_SWITCH || kind == EV_THREAD_RESUMED)
        t->is_seen = true;
    return 0;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static uint64_t clip(const report *r, uint64_t ns)
{
    return ns < r->desc.from_ns ? r->desc.from_ns : ns > r->desc.to_ns ? r->desc.to_ns : ns;
}

static bool is_inside(const report *r, uint64_t begin_ns, uint64_t end_ns)
{
    return begin_ns < r->desc.to_ns && (begin_ns >= r->desc.from_ns || end_ns > r->desc.from_ns);
}

static activity *activity_of(report *r, uint32_t fiber)
{
    if (fiber >= r->activities.count) {
        if (!vec_reserve(&r->activities, (size_t)fiber + 1))
            return NULL;
        memset(r->activities.items + r->activities.count, 0, ((size_t)fiber + 1 - r->activities.count) * sizeof(activity));
        r->activities.count = (size_t)fiber + 1;
    }
    return &r->activities.items[fiber];
}

static int opened(void *context, walk_fiber *fiber)
{
    report *r = context;
    walk_frame *frames = fiber->frames.items, *top = &frames[fiber->frames.count - 1];
    report_thread *t = thread_at(r, fiber->thread);
    activity *a = activity_of(r, fiber->id);
    top->mark[METHOD] = REPORT_NONE;
    if (!t || !a)
        return -ENOMEM;
    t->is_seen = true;
    if (!t->is_counted)
        return 0;
    uint32_t method = method_of(r, fiber->process, top->method & ~WALK_OPEN_AT_START);
    uint32_t caller = fiber->frames.count > 1 ? frames[fiber->frames.count - 2].mark[METHOD] : REPORT_NONE;
    uint32_t arc = method == REPORT_NONE ? REPORT_NONE : arc_of(r, caller == REPORT_NONE ? caller : caller & ~IS_RECURSIVE, method);
    bool is_open, is_arc_open;
    if (arc == REPORT_NONE || !activity_enter(a, method, arc, &r->spare, &is_open, &is_arc_open))
        return -ENOMEM;
    top->mark[METHOD] = method | (is_open ? IS_RECURSIVE : 0);
    top->mark[ARC] = arc | (is_arc_open ? IS_ARC_RECURSIVE : 0);
    return 0;
}

static bool is_shorter(const report_long_call *a, const report_long_call *b)
{
    return a->duration_ns != b->duration_ns ? a->duration_ns < b->duration_ns : a->begin_ns > b->begin_ns;
}

/* Put a call at the top of the heap, which has a gap there, and let it sink. */
static void sink(report_long_call *heap, size_t count, report_long_call call)
{
    size_t i = 0;
    for (size_t child; (child = i * 2 + 1) < count; i = child) {
        if (child + 1 < count && is_shorter(&heap[child + 1], &heap[child]))
            child++;
        if (!is_shorter(&heap[child], &call))
            break;
        heap[i] = heap[child];
    }
    heap[i] = call;
}

static int keep_longest(report *r, report_long_call call)
{
    if (r->longest.count == r->desc.longest_count) {
        if (r->longest.count > 0 && is_shorter(&r->longest.items[0], &call))
            sink(r->longest.items, r->longest.count, call);
        return 0;
    }
    if (!vec_reserve(&r->longest, r->longest.count + 1))
        return -ENOMEM;
    size_t i = r->longest.count++;
    for (; i > 0 && is_shorter(&call, &r->longest.items[(i - 1) / 2]); i = (i - 1) / 2)
        r->longest.items[i] = r->longest.items[(i - 1) / 2];
    r->longest.items[i] = call;
    return 0;
}

static void count(report_method *m, report_arc *arc, const walk_frame *frame, uint64_t duration_ns, bool is_call)
{
    uint64_t self_ns = duration_ns > frame->below_ns ? duration_ns - frame->below_ns : 0;
    m->activations++;
    m->sum_ns += duration_ns;
    m->calls += is_call;
    m->self_ns += self_ns;
    m->total_ns += frame->mark[METHOD] & IS_RECURSIVE ? 0 : duration_ns;
    m->min_ns = duration_ns < m->min_ns ? duration_ns : m->min_ns;
    m->max_ns = duration_ns > m->max_ns ? duration_ns : m->max_ns;
    arc->activations++;
    arc->calls += is_call;
    arc->self_ns += self_ns;
    arc->total_ns += frame->mark[ARC] & IS_ARC_RECURSIVE ? 0 : duration_ns;
}

static int closed(void *context, walk_fiber *fiber, const walk_frame *frame, uint64_t end_ns, sim_closed how)
{
    report *r = context;
    if (frame->mark[METHOD] == REPORT_NONE)
        return 0;
    uint32_t method = frame->mark[METHOD] & ~IS_RECURSIVE, arc = frame->mark[ARC] & ~IS_ARC_RECURSIVE;
    activity *a = &r->activities.items[fiber->id];
    activity_leave(a, method, arc);
    if (fiber->frames.count == 0)
        activity_give(a, &r->spare);
    if (!is_inside(r, frame->begin_ns, end_ns))
        return 0;
    uint64_t begin_ns = clip(r, frame->begin_ns), duration_ns = clip(r, end_ns) - begin_ns;
    bool is_call = !(frame->method & WALK_OPEN_AT_START) && frame->begin_ns >= r->desc.from_ns;
    report_thread *t = &r->threads.items[fiber->thread];
    uint32_t depth = (uint32_t)fiber->frames.count;
    count(&r->methods.items[method], &r->arcs.items[arc], frame, duration_ns, is_call);
    t->calls += is_call;
    t->max_depth = depth + 1 > t->max_depth ? depth + 1 : t->max_depth;
    if (depth > 0)
        fiber->frames.items[depth - 1].below_ns += duration_ns;
    if (!r->methods.items[method].is_shown)
        return 0;
    bool is_open = how == SIM_CLOSED_END || how == SIM_OPEN;
    return keep_longest(r, (report_long_call){begin_ns, duration_ns, method, fiber->thread, depth, is_open});
}

/* Is what happens there measured? thread SIM_TRACK_NONE: nobody knows where. */
static int is_noted(report *r, const sim_note *note, bool *is)
{
    report_thread *t = note->thread == SIM_TRACK_NONE ? NULL : thread_at(r, note->thread);
    if (note->thread != SIM_TRACK_NONE && !t)
        return -ENOMEM;
    *is = t ? t->is_counted : !r->desc.thread && (!r->desc.pid || catalog_process_at(r->catalog, note->process)->pid == r->desc.pid);
    return 0;
}

static int noted(void *context, const sim_note *note)
{
    report *r = context;
    bool is_counted;
    if (note->kind == EV_SPAN_END) /* of one that was not counted: nothing */
        return own_end(&r->own, note->process, note->span, note->at_ns);
    const char *text = catalog_string_of(r->catalog, note->process, note->string);
    int error = is_noted(r, note, &is_counted);
    if (error || !is_counted)
        return error;
    return note->kind == EV_MARK ? own_mark(&r->own, text, note->at_ns) : own_begin(&r->own, note->process, note->span, text, note->at_ns);
}

static void gvl(void *context, uint32_t thread, sim_gvl state, uint64_t begin_ns, uint64_t end_ns)
{
    report *r = context;
    if (thread < r->threads.count && is_inside(r, begin_ns, end_ns))
        r->threads.items[thread].gvl_ns[state] += clip(r, end_ns) - clip(r, begin_ns);
}

static void gc(void *context, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
    report *r = context;
    if (!is_inside(r, begin_ns, end_ns))
        return;
    report_process *p = &r->processes.items[process];
    uint64_t pause_ns = clip(r, end_ns) - clip(r, begin_ns);
    p->gc_count++;
    p->gc_total_ns += pause_ns;
    p->gc_longest_ns = pause_ns > p->gc_longest_ns ? pause_ns : p->gc_longest_ns;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

bool report_needs_names(const report *r) { return r->desc.thread && !r->thread_number; }

int report_look_at_name(report *r, uint32_t stream, ev head, const void *payload)
{
    ev_thread_def def;
    if (ev_define_what(head) != EV_DEFINE_THREAD || head.place < sizeof def)
        return 0;
    memcpy(&def, payload, sizeof def);
    size_t rest = head.place - sizeof def, bytes = def.name_bytes < rest ? def.name_bytes : rest;
    char name[256]; /* of a longer one the beginning */
    bytes = bytes < sizeof name - 1 ? bytes : sizeof name - 1;
    memcpy(name, (const char *)payload + sizeof def, bytes);
    name[bytes] = '\0';
    if (bytes == 0 || !pattern_matches(&r->thread, name, bytes))
        return 0;
    return map_put(&r->named, (uint64_t)stream << 32 | ev_define_of(head), 1);
}

uint32_t report_stream_open(report *r, uint32_t pid)
{
    stream_state *st = vec_push(&r->streams);
    report_process *p = vec_push(&r->processes);
    if (!st || !p) {
        r->streams.count -= st != NULL;
        return REPORT_NONE;
    }
    *st = (stream_state){0};
    *p = (report_process){.id = catalog_process_add(r->catalog, pid, 0)};
    if (p->id == CATALOG_NONE || walk_stream_open(r->walk, p->id) == WALK_STREAM_NONE) {
        r->streams.count--;
        r->processes.count--;
        return REPORT_NONE;
    }
    return p->id;
}

int report_run(report *r, uint32_t stream, const ev *events, size_t event_count)
{
    return walk_run(r->walk, stream, events, event_count);
}

int report_stream_close(report *r, uint32_t stream, bool has_ended)
{
    int error = walk_stream_close(r->walk, stream, has_ended ? SIM_CLOSED_END : SIM_OPEN);
    return error ? error : own_end_process(&r->own, stream, walk_stream_info_of(r->walk, stream).end_ns);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* The process that a stream belongs to: its own, but for a Ractor's, which belongs to the main one of the same pid. */
static uint32_t owner_of(const report *r, uint32_t stream)
{
    const catalog_process *p = catalog_process_at(r->catalog, stream);
    if (p->ractor <= 1)
        return stream;
    for (uint32_t i = stream; i-- > 0;) { /* the latest: exec makes another process of the same pid */
        const catalog_process *other = catalog_process_at(r->catalog, i);
        if (other->pid == p->pid && other->ractor <= 1)
            return i;
    }
    return stream;
}

/* Totals, and each stream's share put to its process. */
static void merge_streams(report *r)
{
    for (uint32_t i = 0; i < r->processes.count; i++) {
        walk_stream_info info = walk_stream_info_of(r->walk, i);
        const catalog_process *is = catalog_process_at(r->catalog, i);
        report_process *from = &r->processes.items[i], *to = &r->processes.items[owner_of(r, i)];
        r->event_count += info.event_count;
        from->begin_ns = info.begin_ns;
        from->end_ns = info.end_ns;
        from->is_shown = to == from && (!r->desc.pid || is->pid == r->desc.pid);
        if (info.begin_ns && (!r->begin_ns || info.begin_ns < r->begin_ns))
            r->begin_ns = info.begin_ns;
        r->end_ns = info.end_ns > r->end_ns ? info.end_ns : r->end_ns;
        if (to == from)
            continue;
        to->end_ns = from->end_ns > to->end_ns ? from->end_ns : to->end_ns;
        to->gc_count += from->gc_count;
        to->gc_total_ns += from->gc_total_ns;
        to->gc_longest_ns = from->gc_longest_ns > to->gc_longest_ns ? from->gc_longest_ns : to->gc_longest_ns;
    }
}

static int by_process(const void *a, const void *b)
{
    const report_thread *x = a, *y = b;
    return x->process != y->process ? (x->process < y->process ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

static int longest_first(const void *a, const void *b)
{
    return is_shorter(a, b) ? 1 : is_shorter(b, a) ? -1 : 0;
}

/* Leave out what the filters do not show, and let threads speak of processes by their new place. */
static int keep_shown(report *r)
{
    ids place = {0};
    if (!vec_reserve(&place, r->processes.count + 1))
        return -ENOMEM;
    size_t shown = 0;
    for (uint32_t i = 0; i < r->processes.count; i++)
        place.items[i] = r->processes.items[i].is_shown ? (uint32_t)shown++ : REPORT_NONE;
    size_t kept = 0;
    for (size_t i = 0; i < r->threads.count; i++) {
        report_thread t = r->threads.items[i];
        if (t.id == REPORT_NONE || !t.is_seen || !t.is_counted)
            continue;
        t.process = place.items[owner_of(r, t.process)];
        if (t.process != REPORT_NONE)
            r->threads.items[kept++] = t;
    }
    r->threads.count = kept;
    for (uint32_t i = 0; i < r->processes.count; i++)
        if (place.items[i] != REPORT_NONE)
            r->processes.items[place.items[i]] = r->processes.items[i];
    r->processes.count = shown;
    vec_free(&place);
    return 0;
}

int report_finish(report *r)
{
    merge_streams(r);
    r->begin_ns = r->desc.origin_ns ? r->desc.origin_ns : r->begin_ns;
    int error = keep_shown(r);
    if (error)
        return error;
    if (r->threads.count > 0)
        qsort(r->threads.items, r->threads.count, sizeof *r->threads.items, by_process);
    if (r->longest.count > 0)
        qsort(r->longest.items, r->longest.count, sizeof *r->longest.items, longest_first);
    for (size_t i = 0; i < r->methods.count; i++)
        if (r->methods.items[i].activations == 0)
            r->methods.items[i].min_ns = 0;
    return 0;
}

report_model report_model_of(const report *r)
{
    uint64_t begin_ns = clip(r, r->begin_ns), end_ns = clip(r, r->end_ns);
    return (report_model){
        .catalog = r->catalog,
        .methods = r->methods.items,
        .arcs = r->arcs.items,
        .threads = r->threads.items,
        .processes = r->processes.items,
        .longest = r->longest.items,
        .own = r->own.names.items,
        .method_count = r->methods.count,
        .arc_count = r->arcs.count,
        .thread_count = r->threads.count,
        .process_count = r->processes.count,
        .longest_count = r->longest.count,
        .own_count = r->own.names.count,
        .begin_ns = begin_ns,
        .end_ns = end_ns > begin_ns ? end_ns : begin_ns,
        .origin_ns = r->begin_ns,
        .event_count = r->event_count,
        .dropped = catalog_dropped(r->catalog),
        .waited = catalog_waited(r->catalog),
    };
}
