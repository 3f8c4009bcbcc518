/* bench/engine.c - how many events a second does the parallel scan take, and what share of a plain copy is that?
 *
 * Input: random walks of calls and returns with a fixed seed, made once, larger than any cache. Every variant is run several
 * times in turn with a plain copy of the same events, so that a noisy machine hits both; medians are printed. The answers
 * are checked: as many spans as there were returns.
 */
#include "base/mem.h"
#include "base/workers.h"
#include "history/figures.h"
#include "history/history.h"
#include "sim/block.h"
#include "sim/sim.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_COUNT (UINT32_C(1) << 22)
#define BLOCK_SIZE 16384u
#define ROUNDS 9
#define METHODS 500u
#define SEED UINT64_C(20240229)

typedef struct walk {
    uint32_t depth_max, threads, fibers_per_thread;
    uint32_t run_events; /* events between two SWITCHes, on average; 0: none */
} walk;

typedef struct fiber_state {
    uint32_t base, depth;
} fiber_state;

/* Starts half-way up, so that a deep walk is deep. */
static uint64_t make(ev *out, uint32_t count, const walk *how)
{
    uint64_t state = SEED, ticks = 1000, returns = 0;
    uint32_t fiber_count = how->threads * how->fibers_per_thread, current = 0, i = 0;
    fiber_state *fibers = calloc(fiber_count, sizeof *fibers);
    uint32_t *depths = calloc((size_t)fiber_count * (how->depth_max + 1), sizeof *depths);
    if (!fibers || !depths)
        exit(1);
    for (uint32_t f = 0; f < fiber_count; f++)
        fibers[f].base = 0x7f000000u + f * 0x01000040u;
    out[i++] = ev_make(EV_SWITCH, ticks, 1, 1);
    while (i < count) {
        fiber_state *f = &fibers[current];
        ticks += 20 + bench_random(&state) % 64;
        if (how->run_events && bench_random(&state) % how->run_events == 0) {
            current = (uint32_t)(bench_random(&state) % fiber_count);
            out[i++] = ev_make(EV_SWITCH, ticks, current + 1, current / how->fibers_per_thread + 1);
            continue;
        }
        bool deepen = f->depth == 0 || (f->depth < how->depth_max && (bench_random(&state) & 1)) ||
                      (how->depth_max > 1000 && f->depth < how->depth_max / 2 && bench_random(&state) % 8);
        if (deepen) {
            f->depth++;
            out[i++] = ev_make(EV_CALL, ticks, 1 + (uint32_t)(bench_random(&state) % METHODS), f->base - f->depth * 56u);
        } else {
            out[i++] = ev_make(EV_RETURN, ticks, 0, f->base - f->depth * 56u);
            f->depth--;
            returns++;
        }
    }
    free(fibers);
    free(depths);
    return returns;
}

typedef struct sink_state {
    uint64_t spans;
    history *history;
    figures *figures;
} sink_state;

static void sink(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    sink_state *s = context;
    s->spans += count;
    if (s->history)
        history_append(s->history, track, spans, count);
    if (s->figures)
        figures_take(s->figures, track, spans, count);
}

static double time_copy(const ev *events, ev *to)
{
    double t = bench_thread_s();
    memcpy(to, events, sizeof *events * EVENT_COUNT);
    t = bench_thread_s() - t;
    if (memcmp(&to[EVENT_COUNT - 1], &events[EVENT_COUNT - 1], sizeof *to) != 0)
        exit(1);
    return t;
}

static double time_scan(const ev *events, uint64_t returns, workers *w, bool store, bool counts)
{
    catalog *c;
    sim *s;
    sink_state result = {0};
    if (catalog_new(&c) != 0 || (counts && figures_new(&result.figures, c) != 0) || (store && history_new(&result.history, (size_t)3 << 30) != 0) ||
        sim_new(&s, &(sim_desc){.workers = w, .catalog = c, .sink = sink, .context = &result}) != 0)
        exit(1);
    uint32_t process = catalog_process_add(c, 1, 1), stream = sim_stream_open(s, process, CLOCK_SOURCE_MONOTONIC);
    static sim_block blocks[EVENT_COUNT / BLOCK_SIZE];
    for (uint32_t i = 0; i < EVENT_COUNT / BLOCK_SIZE; i++)
        blocks[i] = (sim_block){stream, BLOCK_SIZE, events + (size_t)i * BLOCK_SIZE};
    sim_run(s, blocks, 32); /* pages of scratch memory are touched once and then reused, as in a long session */
    result.spans = 0;
    sim_delete(s);
    if (sim_new(&s, &(sim_desc){.workers = w, .catalog = c, .sink = sink, .context = &result}) != 0)
        exit(1);
    process = catalog_process_add(c, 1, 1), stream = sim_stream_open(s, process, CLOCK_SOURCE_MONOTONIC);
    for (uint32_t i = 0; i < EVENT_COUNT / BLOCK_SIZE; i++)
        blocks[i].stream = stream;
    double t = w ? bench_wall_s() : bench_thread_s();
    if (sim_run(s, blocks, EVENT_COUNT / BLOCK_SIZE) != 0)
        exit(1);
    t = (w ? bench_wall_s() : bench_thread_s()) - t;
    if (result.spans != returns && !store)
        fprintf(stderr, "engine: %llu spans, wanted %llu\n", (unsigned long long)result.spans, (unsigned long long)returns), exit(1);
    sim_delete(s);
    history_delete(result.history);
    figures_delete(result.figures);
    catalog_delete(c);
    return t;
}

static double time_stage(const ev *events, int stage)
{
    static block_work w;
    double total = 0;
    timebase clock;
    timebase_init(&clock);
    for (uint32_t i = 0; i < EVENT_COUNT / BLOCK_SIZE; i++) {
        double t = bench_thread_s();
        block_summarise(&w, events + (size_t)i * BLOCK_SIZE, BLOCK_SIZE);
        double t2 = bench_thread_s();
        block_line *line = vec_push(&w.lines);
        *line = (block_line){0, clock.line};
        block_emit(&w);
        total += stage == 0 ? t2 - t : bench_thread_s() - t2;
    }
    return total;
}

typedef struct row {
    const char *name;
    walk how;
    ev *events;
    uint64_t returns;
    /* Seconds a round, for EVENT_COUNT events each. */
    double copy[ROUNDS], scan[ROUNDS], store[ROUNDS], counted[ROUNDS], two[ROUNDS], summarise[ROUNDS], emit[ROUNDS];
} row;

enum { WALK, DEEP, THREADS, FIBERS, ROWS };
static row rows[ROWS] = {
    [WALK] = {.name = "depth 24, one thread", .how = {24, 1, 1, 0}},
    [DEEP] = {.name = "depth 10,000", .how = {10000, 1, 1, 0}},
    [THREADS] = {.name = "64 threads", .how = {24, 64, 1, 200}},
    [FIBERS] = {.name = "1,000 fibers", .how = {24, 1, 1000, 200}},
};

static void measure(row *r, int round, ev *copy, workers *two)
{
    r->copy[round] = time_copy(r->events, copy);
    r->scan[round] = time_scan(r->events, r->returns, NULL, false, false);
    r->store[round] = time_scan(r->events, r->returns, NULL, true, false);
    r->counted[round] = time_scan(r->events, r->returns, NULL, true, true);
    r->two[round] = time_scan(r->events, r->returns, two, false, false);
    r->summarise[round] = time_stage(r->events, 0);
    r->emit[round] = time_stage(r->events, 1);
}

/* Median over the rounds of a[i] / b[i]: both sides of a quotient were taken within the same second or so. */
static double ratio(const double *a, const double *b)
{
    double quotients[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        quotients[i] = a[i] / b[i];
    return bench_median(quotients, ROUNDS);
}

static double rate(const double *seconds)
{
    double sorted[ROUNDS];
    memcpy(sorted, seconds, sizeof sorted);
    return EVENT_COUNT / bench_median(sorted, ROUNDS);
}

/* The two benchmarks share a build folder; the other answers for the history alone. */
static void run_store_bench(const char *own_path)
{
    char path[4096];
    const char *slash = strrchr(own_path, '/');
    snprintf(path, sizeof path, "%.*sbench_store", slash ? (int)(slash - own_path + 1) : 0, own_path);
    fflush(stdout);
    execl(path, "bench_store", "--query", (char *)NULL);
    fprintf(stderr, "engine: %s can't be run: store.query_ratio is left out\n", path);
    exit(1);
}

int main(int argc, char **argv)
{
    (void)argc;
    ev *copy = mem_aligned(64, sizeof *copy * EVENT_COUNT);
    workers *two = NULL;
    if (!copy || workers_new(&two, 2) != 0)
        return 1;
    memset(copy, 1, sizeof *copy * EVENT_COUNT);
    for (int r = 0; r < ROWS; r++) {
        rows[r].events = mem_aligned(64, sizeof(ev) * EVENT_COUNT);
        if (!rows[r].events)
            return 1;
        rows[r].returns = make(rows[r].events, EVENT_COUNT, &rows[r].how);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int r = 0; r < ROWS; r++)
            measure(&rows[r], round, copy, two);
    printf("M events/s, medians of %d rounds; ratios are taken within a round\n", ROUNDS);
    printf("%-21s %6s %10s %6s %6s %7s %8s %8s %10s %11s %9s\n", "walk", "copy", "summarise", "emit", "scan", "+store", "+figures", "2 cores", "scan/copy",
           "store/copy", "scan/walk");
    for (int r = 0; r < ROWS; r++) {
        row *w = &rows[r];
        printf("%-21s %6.0f %10.0f %6.0f %6.0f %7.0f %8.0f %8.0f %10.3f %11.3f %9.2f\n", w->name, rate(w->copy) / 1e6, rate(w->summarise) / 1e6,
               rate(w->emit) / 1e6, rate(w->scan) / 1e6, rate(w->store) / 1e6, rate(w->counted) / 1e6, rate(w->two) / 1e6, ratio(w->copy, w->scan),
               ratio(w->copy, w->store), ratio(rows[WALK].scan, w->scan));
    }
    printf("\nengine.copy_bytes_per_s: %.0f\n", rate(rows[WALK].copy) * sizeof(ev));
    printf("engine.events_per_s.1core: %.0f\n", rate(rows[WALK].scan));
    printf("engine.vs_copy: %.3f\n", ratio(rows[WALK].copy, rows[WALK].scan));
    printf("engine.with_store_vs_copy: %.3f\n", ratio(rows[WALK].copy, rows[WALK].store));
    printf("engine.with_figures_vs_store: %.3f\n", ratio(rows[WALK].store, rows[WALK].counted));
    printf("engine.scaling.2cores: %.2f\n", ratio(rows[WALK].scan, rows[WALK].two));
    printf("engine.deep_ratio: %.2f\n", ratio(rows[WALK].scan, rows[DEEP].scan));
    printf("engine.threads_ratio: %.2f\n", ratio(rows[WALK].scan, rows[THREADS].scan));
    printf("engine.fibers_ratio: %.2f\n", ratio(rows[WALK].scan, rows[FIBERS].scan));
    for (int r = 0; r < ROWS; r++)
        mem_free(rows[r].events);
    workers_delete(two);
    mem_free(copy);
    run_store_bench(argv[0]);
}
