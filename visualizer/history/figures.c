#include "history/figures.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "wire/event.h"

#include <errno.h>

#define DEPTH_MAX (1u << 20) /* as history/: deeper is insane */

typedef struct level { /* one depth of a stack */
    uint64_t child_ns;   /* time of the finished calls there since a call one below it ended */
    uint64_t ended;      /* figures.clock when a call there last ended */
} level;

typedef VEC(level) levels;

typedef struct track {
    uint32_t process; /* CATALOG_NONE: no calls */
    levels levels;
    uint64_t emptied; /* figures.clock when levels was put aside: nothing older is below anything */
} track;

typedef struct method { /* a cache line */
    uint64_t calls, sum_ns, self_ns, longest_ns;
    /* Its calls on the track that had it last, while it is not watched: */
    uint64_t run_begin_ns, run_end_ns, run_ns;
    uint32_t run_track;
    uint32_t watch; /* index, + 1; 0: it was never seen within itself */
} method;

_Static_assert(sizeof(method) == 64, "one look-up a span");

typedef VEC(method) methods;

typedef struct kept { /* time that a call around it would take off */
    uint64_t begin_ns, ns;
    uint64_t clock;   /* when depth was right */
    uint64_t depth;   /* what is open below this was open all the time since it began */
} kept;

typedef VEC(kept) kepts;

struct figures {
    const catalog *catalog; /* borrowed */
    VEC(track) tracks;
    VEC(methods) processes;
    VEC(levels) spare; /* of tracks whose stack is empty: fibers come and go by the thousand */
    VEC(uint64_t) nested_ns; /* by watch: what sum_ns has more than total_ns */
    map lists;               /* watch << 32 | track: index in kept */
    VEC(kepts) kept;
    uint64_t clock;          /* spans so far */
    uint32_t fibers_seen;
};

int figures_new(figures **out, const catalog *c)
{
    figures *f = *out = mem_zalloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->catalog = c;
    map_init(&f->lists);
    return 0;
}

void figures_delete(figures *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->tracks.count; i++)
        vec_free(&f->tracks.items[i].levels);
    for (size_t i = 0; i < f->spare.count; i++)
        vec_free(&f->spare.items[i]);
    for (size_t i = 0; i < f->processes.count; i++)
        vec_free(&f->processes.items[i]);
    for (size_t i = 0; i < f->kept.count; i++)
        vec_free(&f->kept.items[i]);
    vec_free(&f->kept);
    vec_free(&f->nested_ns);
    map_free(&f->lists);
    vec_free(&f->tracks);
    vec_free(&f->spare);
    vec_free(&f->processes);
    mem_free(f);
}

/* Fibers since the last time: their tracks have calls. */
static void look_at_fibers(figures *f)
{
    uint32_t count = catalog_fiber_count(f->catalog);
    for (; f->fibers_seen < count; f->fibers_seen++) {
        const catalog_fiber *fiber = catalog_fiber_at(f->catalog, f->fibers_seen);
        while (f->tracks.count <= fiber->track) {
            track *t = vec_push(&f->tracks);
            if (!t)
                return;
            *t = (track){.process = CATALOG_NONE};
        }
        f->tracks.items[fiber->track].process = catalog_thread_at(f->catalog, fiber->thread)->process;
    }
}

static track *track_of(figures *f, uint32_t number)
{
    if (number >= f->tracks.count || f->tracks.items[number].process == CATALOG_NONE)
        look_at_fibers(f);
    track *t = number < f->tracks.count ? &f->tracks.items[number] : NULL;
    return t && t->process != CATALOG_NONE ? t : NULL;
}

static methods *methods_of(figures *f, uint32_t process)
{
    while (f->processes.count <= process) {
        methods *m = vec_push(&f->processes);
        if (!m)
            return NULL;
        *m = (methods){0};
    }
    return &f->processes.items[process];
}

static bool grow_methods(methods *m, size_t count)
{
    return count <= EV_NUMBER_MAX && vec_cover(m, count);
}

static bool grow_depths(figures *f, levels *s, size_t count)
{
    if (s->capacity == 0 && f->spare.count > 0)
        *s = f->spare.items[--f->spare.count];
    return count <= DEPTH_MAX && vec_cover(s, count);
}

/* The stack is empty: its sums are all 0 but the lowest, which nobody asks for. */
static void put_aside(figures *f, track *t)
{
    levels *place = t->levels.capacity > 0 ? vec_push(&f->spare) : NULL;
    if (!place)
        return;
    t->levels.items[0].child_ns = 0;
    *place = t->levels;
    t->levels = (levels){0};
    t->emptied = f->clock;
}

/* ---- methods within themselves -------------------------------------------------------------------------------- */

/* NULL: there is none (yet), or memory is out. */
static kepts *list_of(const figures *f, uint32_t watch, uint32_t track_number)
{
    uint32_t index = map_get(&f->lists, (uint64_t)watch << 32 | track_number);
    return index == MAP_NONE ? NULL : &f->kept.items[index];
}

static kepts *make_list(figures *f, uint32_t watch, uint32_t track_number)
{
    kepts *list = list_of(f, watch, track_number);
    if (list)
        return list;
    list = vec_push(&f->kept);
    if (!list)
        return NULL;
    *list = (kepts){0};
    if (map_put(&f->lists, (uint64_t)watch << 32 | track_number, (uint32_t)f->kept.count - 1) == 0)
        return list;
    f->kept.count--;
    return NULL;
}

/* Calls that it lay in have ended since: it now lies in the one below them. */
static void sink_to_open(kept *k, const track *t, uint64_t clock)
{
    if (k->clock <= t->emptied)
        k->depth = 0;
    while (k->depth > 0 && t->levels.items[k->depth - 1].ended > k->clock)
        k->depth--;
    k->clock = clock;
}

/* Entries between which no open call begins are one. */
static void join_newest(kepts *list, const track *t, uint64_t clock)
{
    while (list->count > 0) {
        kept *newest = &list->items[list->count - 1];
        sink_to_open(newest, t, clock);
        if (newest->depth == 0) {
            list->count = 0; /* the stack was empty since: nothing can be around it any more */
            return;
        }
        if (list->count == 1)
            return;
        kept *before = newest - 1;
        sink_to_open(before, t, clock);
        if (before->depth < newest->depth)
            return;
        before->ns += newest->ns;
        before->depth = newest->depth;
        list->count--;
    }
}

/* The time in the list that began since then, taken out. */
static uint64_t take_since(kepts *list, uint64_t begin_ns)
{
    uint64_t ns = 0;
    while (list->count > 0 && list->items[list->count - 1].begin_ns >= begin_ns)
        ns += list->items[--list->count].ns;
    return ns;
}

static void keep(kepts *list, uint64_t begin_ns, uint64_t ns, uint64_t depth, uint64_t clock)
{
    kept *newest = list->count > 0 ? &list->items[list->count - 1] : NULL;
    if (newest && newest->depth >= depth) {
        newest->ns += ns;
        newest->depth = depth;
        newest->clock = clock;
        return;
    }
    newest = vec_push(list);
    if (newest)
        *newest = (kept){.begin_ns = begin_ns, .ns = ns, .depth = depth, .clock = clock};
}

/* A call of a watched method has ended. */
static void take_watched(figures *f, const method *of, const track *t, uint32_t track_number, const sim_span *span)
{
    kepts *list = make_list(f, of->watch - 1, track_number);
    if (!list)
        return;
    f->nested_ns.items[of->watch - 1] += take_since(list, span->begin_ns);
    join_newest(list, t, f->clock);
    keep(list, span->begin_ns, span->end_ns - span->begin_ns, span->depth, f->clock);
}

/* It is seen within itself for the first time: from here on it is watched. below_ns: time of all that the call has called. */
static void watch(figures *f, method *of, uint32_t track_number, const sim_span *span, uint64_t below_ns)
{
    uint64_t *nested_ns = vec_push(&f->nested_ns);
    if (!nested_ns)
        return;
    *nested_ns = of->run_begin_ns >= span->begin_ns || of->run_ns < below_ns ? of->run_ns : below_ns;
    of->watch = (uint32_t)f->nested_ns.count;
    uint64_t before_ns = of->run_ns - *nested_ns;
    kepts *list = make_list(f, of->watch - 1, track_number);
    if (list && of->run_begin_ns < span->begin_ns && span->depth > 0)
        keep(list, of->run_begin_ns, before_ns, span->depth, f->clock);
    if (list)
        keep(list, span->begin_ns, span->end_ns - span->begin_ns, span->depth, f->clock);
}

/* Is the method within itself? If it may be, its time is kept. */
static inline void look_within(figures *f, method *of, const track *t, uint32_t track_number, const sim_span *span, uint64_t below_ns)
{
    if (of->watch) {
        take_watched(f, of, t, track_number, span);
    } else if (of->run_track != track_number || of->run_ns == 0) {
        of->run_track = track_number;
        of->run_begin_ns = span->begin_ns;
        of->run_ns = span->end_ns - span->begin_ns;
    } else if (of->run_end_ns > span->begin_ns) {
        watch(f, of, track_number, span, below_ns);
    } else {
        of->run_ns += span->end_ns - span->begin_ns;
    }
    of->run_end_ns = span->end_ns;
}

/* ---- all calls ------------------------------------------------------------------------------------------------ */

void figures_take(figures *f, uint32_t number, const sim_span *spans, size_t span_count)
{
    track *t = track_of(f, number);
    methods *m = t ? methods_of(f, t->process) : NULL;
    if (!m)
        return;
    for (const sim_span *span = spans, *end = spans + span_count; span < end; span++) {
        size_t depth = span->depth;
        if ((span->value >= m->count && !grow_methods(m, (size_t)span->value + 1)) ||
            (depth + 2 > t->levels.count && !grow_depths(f, &t->levels, depth + 2)))
            continue;
        level *at = t->levels.items + depth;
        uint64_t length_ns = span->end_ns - span->begin_ns, below_ns = at[1].child_ns;
        method *of = &m->items[span->value];
        f->clock++;
        look_within(f, of, t, number, span, below_ns);
        at[0].child_ns += length_ns;
        at[0].ended = f->clock;
        at[1].child_ns = 0;
        of->calls += !span->open_at_start;
        of->sum_ns += length_ns;
        of->self_ns += length_ns > below_ns ? length_ns - below_ns : 0;
        of->longest_ns = length_ns > of->longest_ns ? length_ns : of->longest_ns;
    }
    if (span_count > 0 && spans[span_count - 1].depth == 0)
        put_aside(f, t);
}

static const method *find_method(const figures *f, uint32_t process, uint32_t number)
{
    if (process >= f->processes.count || number >= f->processes.items[process].count)
        return NULL;
    return &f->processes.items[process].items[number];
}

figures_method figures_of(const figures *f, uint32_t process, uint32_t number)
{
    const method *of = find_method(f, process, number);
    if (!of)
        return (figures_method){0};
    uint64_t nested_ns = of->watch ? f->nested_ns.items[of->watch - 1] : 0;
    return (figures_method){of->calls, of->sum_ns, of->self_ns, of->longest_ns, of->sum_ns - nested_ns};
}

uint64_t figures_within(const figures *f, uint32_t process, uint32_t number, uint32_t track_number, uint64_t begin_ns)
{
    const method *of = find_method(f, process, number);
    if (!of)
        return 0;
    if (!of->watch)
        return of->run_track == track_number && of->run_end_ns > begin_ns ? of->run_ns : 0;
    const kepts *list = list_of(f, of->watch - 1, track_number);
    uint64_t ns = 0;
    for (size_t i = list ? list->count : 0; i-- > 0 && list->items[i].begin_ns >= begin_ns;)
        ns += list->items[i].ns;
    return ns;
}

uint32_t figures_limit(const figures *f, uint32_t process)
{
    return process < f->processes.count ? (uint32_t)f->processes.items[process].count : 0;
}
