#include "history/figures.h"

#include "base/mem.h"
#include "base/vec.h"
#include "wire/event.h"

#include <errno.h>

#define DEPTH_MAX (1u << 20) /* as history/: deeper is insane */

typedef VEC(uint64_t) sums;

typedef struct track {
    uint32_t process; /* CATALOG_NONE: no calls */
    sums child_ns;    /* by depth: time of the finished calls there since a call one above it ended */
} track;

typedef VEC(figures_method) methods;

struct figures {
    const catalog *catalog; /* borrowed */
    VEC(track) tracks;
    VEC(methods) processes;
    VEC(sums) spare; /* of tracks whose stack is empty: fibers come and go by the thousand */
    uint32_t fibers_seen;
};

int figures_new(figures **out, const catalog *c)
{
    figures *f = *out = mem_zalloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->catalog = c;
    return 0;
}

void figures_delete(figures *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->tracks.count; i++)
        vec_free(&f->tracks.items[i].child_ns);
    for (size_t i = 0; i < f->spare.count; i++)
        vec_free(&f->spare.items[i]);
    for (size_t i = 0; i < f->processes.count; i++)
        vec_free(&f->processes.items[i]);
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

static bool grow_depths(figures *f, sums *s, size_t count)
{
    if (s->capacity == 0 && f->spare.count > 0)
        *s = f->spare.items[--f->spare.count];
    return count <= DEPTH_MAX && vec_cover(s, count);
}

/* The stack is empty: its sums are all 0 but the lowest, which nobody asks for. */
static void put_aside(figures *f, track *t)
{
    sums *place = t->child_ns.capacity > 0 ? vec_push(&f->spare) : NULL;
    if (!place)
        return;
    t->child_ns.items[0] = 0;
    *place = t->child_ns;
    t->child_ns = (sums){0};
}

void figures_take(figures *f, uint32_t number, const sim_span *spans, size_t span_count)
{
    track *t = track_of(f, number);
    methods *m = t ? methods_of(f, t->process) : NULL;
    if (!m)
        return;
    for (const sim_span *span = spans, *end = spans + span_count; span < end; span++) {
        size_t depth = span->depth;
        if ((span->value >= m->count && !grow_methods(m, (size_t)span->value + 1)) ||
            (depth + 2 > t->child_ns.count && !grow_depths(f, &t->child_ns, depth + 2)))
            continue;
        uint64_t *child_ns = t->child_ns.items + depth, length_ns = span->end_ns - span->begin_ns, below_ns = child_ns[1];
        figures_method *of = &m->items[span->value];
        child_ns[0] += length_ns;
        child_ns[1] = 0;
        of->calls += !span->open_at_start;
        of->sum_ns += length_ns;
        of->self_ns += length_ns > below_ns ? length_ns - below_ns : 0;
        of->longest_ns = length_ns > of->longest_ns ? length_ns : of->longest_ns;
    }
    if (span_count > 0 && spans[span_count - 1].depth == 0)
        put_aside(f, t);
}

figures_method figures_of(const figures *f, uint32_t process, uint32_t method)
{
    if (process >= f->processes.count || method >= f->processes.items[process].count)
        return (figures_method){0};
    return f->processes.items[process].items[method];
}

uint32_t figures_limit(const figures *f, uint32_t process)
{
    return process < f->processes.count ? (uint32_t)f->processes.items[process].count : 0;
}
