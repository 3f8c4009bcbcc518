/* bench/hour.c - does an hour at 5 million events a second stay inside --memory, and cost the picture no more than a second?
 *
 * Simulated time: a stretch of calls and returns on eight threads, fixed seed, is fed through the parallel scan into the
 * history again and again with its clock moved on, until the stream has lasted an hour. Printed as it goes: what the history
 * says it uses, what the process really has, and what a frame's queries take. bench/hour MINUTES runs a shorter one.
 */
#include "base/mem.h"
#include "history/history.h"
#include "sim/sim.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_PER_S UINT64_C(5000000)
#define NS_PER_EVENT (1000000000u / EVENTS_PER_S)
#define STRETCH (UINT32_C(1) << 22)
#define BLOCK_SIZE 16384u
#define BLOCKS_A_RUN 16u
#define THREADS 8u
#define DEPTH_MAX 24u
#define METHODS 500u
#define MEMORY_BYTES ((size_t)1 << 30) /* the default */
#define PIXELS 1920u
#define WINDOW_NS UINT64_C(10000000000)
#define QUERY_ROUNDS 15
#define SEED UINT64_C(20240229)

/* Ends with every stack empty, so that it can follow itself. */
static void make_stretch(ev *out)
{
    uint64_t state = SEED;
    uint32_t depth[THREADS] = {0}, current = 0, open = 0;
    for (uint32_t i = 0; i < STRETCH; i++) {
        uint64_t dice = bench_random(&state), ticks = (uint64_t)i * NS_PER_EVENT + dice % NS_PER_EVENT;
        uint32_t rest = STRETCH - i - THREADS * 2 - 2;
        bool ends = open >= rest || rest > STRETCH;
        if (i == 0 || (ends ? depth[current] == 0 : dice % 401 == 0)) {
            if (ends && open > 0)
                while (depth[current] == 0)
                    current = (current + 1) % THREADS;
            else
                current = (uint32_t)(dice >> 32) % THREADS;
            out[i] = ev_make(EV_SWITCH, ticks, current + 1, current + 1);
            continue;
        }
        uint32_t base = 0x10000000u * (current + 1);
        if (!ends && (depth[current] == 0 || (depth[current] < DEPTH_MAX && (dice >> 20 & 1)))) {
            out[i] = ev_make(EV_CALL, ticks, 1 + (uint32_t)((dice >> 32) % METHODS), base - ++depth[current] * 64u);
            open++;
        } else {
            out[i] = ev_make(EV_RETURN, ticks, 0, base - depth[current]-- * 64u);
            open--;
        }
    }
    if (open != 0)
        fprintf(stderr, "hour: the stretch leaves %u frames open\n", open), exit(1);
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &pages, &resident) != 2)
        exit(1);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void sink(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    if (history_append(context, track, spans, count) != 0)
        exit(1);
}

/* What a frame asks: every row, a node a pixel. Median ms of this thread's own time. */
static double query_ms(const history *h, const catalog *c, uint64_t begin_ns, uint64_t end_ns)
{
    static history_node nodes[4 * PIXELS];
    double rounds[QUERY_ROUNDS];
    for (int round = 0; round < QUERY_ROUNDS; round++) {
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t f = 0; f < catalog_fiber_count(c); f++) {
            uint32_t track = catalog_fiber_at(c, f)->track;
            for (uint32_t depth = 0; depth < history_rows(h, track); depth++)
                history_query(h, track, depth, begin_ns, end_ns, (end_ns - begin_ns) / PIXELS, nodes, 4 * PIXELS);
        }
        rounds[round] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) * 1e-6;
    }
    return bench_median(rounds, QUERY_ROUNDS);
}

typedef struct run {
    const ev *stretch;
    ev *blocks; /* BLOCKS_A_RUN blocks with the clock moved on */
    catalog *catalog;
    sim *sim;
    history *history;
    uint32_t stream;
    uint64_t event_count, used_max, resident_max, base_bytes;
} run;

static void feed_stretch(run *r)
{
    for (uint32_t done = 0; done < STRETCH; done += BLOCK_SIZE * BLOCKS_A_RUN) {
        sim_block blocks[BLOCKS_A_RUN];
        for (uint32_t i = 0; i < BLOCK_SIZE * BLOCKS_A_RUN; i++) {
            r->blocks[i] = r->stretch[done + i];
            r->blocks[i].head += r->event_count * NS_PER_EVENT;
        }
        for (uint32_t i = 0; i < BLOCKS_A_RUN; i++)
            blocks[i] = (sim_block){r->stream, BLOCK_SIZE, r->blocks + (size_t)i * BLOCK_SIZE};
        if (sim_run(r->sim, blocks, BLOCKS_A_RUN) != 0)
            exit(1);
    }
    r->event_count += STRETCH;
    size_t used = history_stats_of(r->history).used_bytes, resident = resident_bytes() - r->base_bytes;
    r->used_max = used > r->used_max ? used : r->used_max;
    r->resident_max = resident > r->resident_max ? resident : r->resident_max;
}

/* Returns what the queries of the last ten seconds take, ms. */
static double report(const run *r, double *all_ms)
{
    uint64_t now_ns = sim_stream_now_ns(r->sim, r->stream);
    double last = query_ms(r->history, r->catalog, now_ns > WINDOW_NS ? now_ns - WINDOW_NS : 0, now_ns);
    *all_ms = query_ms(r->history, r->catalog, 0, now_ns);
    history_stats s = history_stats_of(r->history);
    printf("%7.1f min %8.0f M spans %6.1f %% in outline  history %6zu MiB  resident %6zu MiB  last 10 s %6.2f ms  all %6.2f ms\n",
           (double)now_ns / 60e9, (double)s.span_count / 1e6, 100.0 * (double)s.evicted_count / (double)s.span_count, s.used_bytes >> 20,
           (resident_bytes() - r->base_bytes) >> 20, last, *all_ms);
    fflush(stdout);
    return last;
}

int main(int argc, char **argv)
{
    double minutes = argc > 1 ? atof(argv[1]) : 60;
    ev *stretch = mem_aligned(64, sizeof *stretch * STRETCH);
    run r = {.stretch = stretch, .blocks = mem_aligned(64, sizeof(ev) * BLOCK_SIZE * BLOCKS_A_RUN)};
    if (!stretch || !r.blocks || minutes <= 0)
        return 1;
    make_stretch(stretch);
    memset(r.blocks, 1, sizeof(ev) * BLOCK_SIZE * BLOCKS_A_RUN);
    r.base_bytes = resident_bytes();
    if (catalog_new(&r.catalog) != 0 || history_new(&r.history, MEMORY_BYTES) != 0 ||
        sim_new(&r.sim, &(sim_desc){.catalog = r.catalog, .sink = sink, .context = r.history}) != 0)
        return 1;
    r.stream = sim_stream_open(r.sim, catalog_process_add(r.catalog, 1, 1), CLOCK_SOURCE_MONOTONIC);
    double first = 0, last = 0, first_all = 0, last_all = 0;
    uint64_t next_ns = 0, cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while ((double)r.event_count / (double)EVENTS_PER_S < minutes * 60) {
        feed_stretch(&r);
        uint64_t now_ns = sim_stream_now_ns(r.sim, r.stream);
        if (now_ns < next_ns || now_ns < WINDOW_NS)
            continue;
        last = report(&r, &last_all);
        if (first == 0)
            first = last, first_all = last_all;
        next_ns = now_ns < UINT64_C(60000000000) ? now_ns + UINT64_C(15000000000) : now_ns + UINT64_C(300000000000);
    }
    last = report(&r, &last_all);
    cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    history_stats s = history_stats_of(r.history);
    printf("\nhour.events: %llu\n", (unsigned long long)r.event_count);
    printf("hour.spans: %llu\n", (unsigned long long)s.span_count);
    printf("hour.events_per_s.1core: %.0f\n", (double)r.event_count * 1e9 / (double)cpu_ns);
    printf("hour.used_vs_memory: %.3f\n", (double)r.used_max / (double)MEMORY_BYTES);
    printf("hour.resident_vs_memory: %.3f\n", (double)r.resident_max / (double)MEMORY_BYTES);
    printf("hour.query_ratio.last_10s: %.2f\n", last / first);
    printf("hour.query_ratio.all: %.2f\n", last_all / first_all);
    sim_delete(r.sim);
    history_delete(r.history);
    catalog_delete(r.catalog);
    mem_free(r.blocks);
    mem_free(stretch);
    return 0;
}
