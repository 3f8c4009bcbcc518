/* bench/store.c - how fast does the history take spans in, and does a picture cost more when more lies below it?
 * Input: one track, a call stack whose depth walks at random between 0 and 24, as the simulation gives its spans out: runs of
 * up to 4096 spans in the order of their ends. Fixed seed. The baseline is a plain copy of as many 16-byte events (two a
 * span), block by block from and to memory of the same size, in the same rounds. Medians of interleaved rounds.
 * The queries: all rows of the track over 1280 pixels: the whole session, its middle quarter, and a window of the same
 * length in time in both sessions, which shows the same spans and differs in what lies around it.
 * Times are of the thread's CPU clock: the machine's other work is not what is asked for.
 */
#include "base/mem.h"
#include "history/store.h"

#include "support/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTHS 24u
#define RUN 4096u
#define PIXELS 1280u
#define ROUNDS 5
#define QUERY_ROUNDS 31
#define SMALL_COUNT ((size_t)1000 * 1000)
#define LARGE_COUNT ((size_t)100 * 1000 * 1000)
#define EVENT_BYTES 16u

/* A program whose stack depth walks at random. */
typedef struct program {
    uint64_t state, now_ns;
    uint64_t open_ns[DEPTHS];
    uint32_t open_method[DEPTHS];
    uint32_t depth;
} program;

static void program_run(program *p, sim_span *spans, size_t count)
{
    for (size_t i = 0; i < count;) {
        uint64_t r = bench_random(&p->state);
        p->now_ns += 20 + (r & 127);
        bool calls = p->depth == 0 || (p->depth < DEPTHS && (r >> 32 & 1));
        if (calls) {
            p->open_ns[p->depth] = p->now_ns;
            p->open_method[p->depth++] = 1 + (uint32_t)((r >> 40 & 31) * (r >> 45 & 31)); /* some are called more than others */
            continue;
        }
        p->depth--;
        spans[i++] = (sim_span){.begin_ns = p->open_ns[p->depth], .end_ns = p->now_ns, .value = p->open_method[p->depth],
                                .depth = p->depth};
    }
}

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "store: not enough memory\n");
        exit(1);
    }
    return p;
}

/* Appends count spans and says how long the history alone took. */
static double fill(history *h, program *p, size_t count)
{
    static sim_span run[RUN];
    double spent = 0;
    for (size_t done = 0; done < count;) {
        size_t n = count - done < RUN ? count - done : RUN;
        program_run(p, run, n);
        double begin = bench_thread_s();
        if (history_append(h, 0, run, n) != 0) {
            fprintf(stderr, "store: an append failed\n");
            exit(1);
        }
        spent += bench_thread_s() - begin;
        done += n;
    }
    return spent;
}

static history *make(size_t count, program *p, double *spent)
{
    history *h;
    if (history_new(&h, (size_t)4 << 30) != 0)
        need(NULL);
    *p = (program){.state = 20250101, .now_ns = UINT64_C(1) << 50};
    *spent = fill(h, p, count);
    return h;
}

/* Copies 2 * span_count events through blocks like a drain's: from one that is in the cache to fresh memory. */
static double copy_events(size_t span_count)
{
    size_t bytes = span_count * 2 * EVENT_BYTES, block = RUN * 2 * EVENT_BYTES;
    unsigned char *from = need(mem_zalloc(1, block)), *to = need(mem_aligned(4096, bytes + block));
    memset(to, 1, bytes + block); /* a copy, not page faults */
    double begin = bench_thread_s();
    for (size_t done = 0; done < bytes; done += block)
        memcpy(to + done, from, block);
    double spent = bench_thread_s() - begin;
    mem_free(from);
    mem_free(to);
    return spent;
}

static double query_all(const history *h, uint64_t begin_ns, uint64_t end_ns, size_t *answers, uint64_t *visited)
{
    static history_node out[4 * PIXELS];
    uint64_t resolution_ns = (end_ns - begin_ns) / PIXELS;
    *answers = 0;
    *visited = 0;
    double begin = bench_thread_s();
    for (uint32_t depth = 0; depth < history_rows(h, 0); depth++) {
        uint64_t looked_at;
        *answers += history_query_counted(h, 0, depth, begin_ns, end_ns, resolution_ns, false, out, 4 * PIXELS, &looked_at);
        *visited += looked_at;
    }
    return bench_thread_s() - begin;
}

typedef struct window {
    const char *name;
    uint64_t divisor;   /* the middle part of the session … */
    uint64_t width_ns;  /* … or as long as this */
} window;

static double compare_queries(const history *small, const history *large, const window *w)
{
    const history *both[2] = {small, large};
    double times[2][QUERY_ROUNDS];
    size_t answers[2];
    uint64_t visited[2];
    for (int round = 0; round < QUERY_ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            uint64_t begin_ns, end_ns;
            if (!history_extent(both[i], 0, &begin_ns, &end_ns))
                exit(1);
            uint64_t width = w->divisor ? (end_ns - begin_ns) / w->divisor : w->width_ns, middle = begin_ns + (end_ns - begin_ns) / 2;
            times[i][round] = query_all(both[i], middle - width / 2, middle + width / 2, &answers[i], &visited[i]);
        }
    double few = bench_median(times[0], QUERY_ROUNDS), many = bench_median(times[1], QUERY_ROUNDS);
    printf("%-8s  %8.3f ms %8zu answers %9llu visited   %8.3f ms %8zu answers %9llu visited   ratio %.2f\n", w->name, few * 1e3,
           answers[0], (unsigned long long)visited[0], many * 1e3, answers[1], (unsigned long long)visited[1], many / few);
    return many / few;
}

/* Appending: prints the rates. */
static void bench_append(void)
{
    double fresh[ROUNDS], copy[ROUNDS];
    size_t round_count = LARGE_COUNT / 10;
    program p;
    history_stats stats = {0};
    for (int round = 0; round < ROUNDS; round++) {
        copy[round] = copy_events(round_count);
        history *h = make(round_count, &p, &fresh[round]);
        stats = history_stats_of(h);
        history_delete(h);
    }
    double rate = (double)round_count / bench_median(fresh, ROUNDS), copy_rate = (double)round_count * 2 / bench_median(copy, ROUNDS);

    /* A history that is full: every chunk taken is one evicted. */
    double full[ROUNDS];
    history *h;
    if (history_new(&h, (size_t)64 << 20) != 0)
        need(NULL);
    p = (program){.state = 7, .now_ns = 1};
    fill(h, &p, round_count);
    for (int round = 0; round < ROUNDS; round++)
        full[round] = fill(h, &p, round_count);
    double full_rate = (double)round_count / bench_median(full, ROUNDS);
    history_delete(h);

    printf("append, one core     %7.1f M spans/s  %7.1f M events/s\n", rate / 1e6, rate / 5e5);
    printf("append, budget full  %7.1f M spans/s  %7.1f M events/s\n", full_rate / 1e6, full_rate / 5e5);
    printf("plain copy                              %7.1f M events/s\n", copy_rate / 1e6);
    printf("memory               %7.2f bytes a span (%zu spans)\n\n", (double)stats.used_bytes / (double)stats.span_count, round_count);
    printf("store.spans_per_s.1core: %.0f\n", rate);
    printf("store.events_per_s.1core: %.0f\n", rate * 2);
    printf("store.full_events_per_s.1core: %.0f\n", full_rate * 2);
    printf("store.vs_copy: %.3f\n\n", rate * 2 / copy_rate);
}

/* Querying: the same windows over few and over many spans. */
static void bench_query(void)
{
    program p;
    double spent;
    history *small = make(SMALL_COUNT, &p, &spent), *large = make(LARGE_COUNT, &p, &spent);
    printf("query, %u rows        1 M spans                                    100 M spans\n", DEPTHS);
    const window windows[] = {{"all", 1, 0}, {"1/4", 4, 0}, {"40 ms", 0, 40000000}, {"1 ms", 0, 1000000}};
    double worst = 0;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        double ratio = compare_queries(small, large, &windows[i]);
        worst = ratio > worst ? ratio : worst;
    }
    history_stats stats = history_stats_of(large);
    printf("100 M spans: %.2f bytes a span, evicted %llu\n\n", (double)stats.used_bytes / (double)stats.span_count,
           (unsigned long long)stats.evicted_count);
    history_delete(small);
    history_delete(large);
    printf("store.bytes_per_span: %.2f\n", (double)stats.used_bytes / (double)stats.span_count);
    printf("store.query_ratio: %.2f\n", worst);
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--query") != 0)
        bench_append();
    bench_query();
    return 0;
}
