/* bench/report.c - how many events a second do the report and the jsonl export take, from events in memory?
 *
 * Input: random walks of calls and returns with a fixed seed, larger than any cache. Each is run several times in turn with a
 * plain copy; medians of CPU time are printed. Answers are checked: as many calls as there were.
 */
#include "base/mem.h"
#include "export/jsonl.h"
#include "report/report.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_COUNT (UINT32_C(1) << 22)
#define BLOCK_SIZE 16384u
#define ROUNDS 7
#define METHODS 500u
#define SEED UINT64_C(20240229)

/* Methods call few others, as in programs: a callee is near its caller. */
static uint64_t make(ev *out, uint32_t depth_max, uint32_t fiber_count)
{
    uint64_t state = SEED, ticks = 1000, calls = 0;
    uint32_t current = 0, *depths = calloc(fiber_count, sizeof *depths), *methods = calloc((size_t)fiber_count * (depth_max + 1), sizeof *methods);
    if (!depths || !methods)
        exit(1);
    out[0] = ev_make(EV_SWITCH, ticks, 1, 1);
    for (uint32_t i = 1; i < EVENT_COUNT; i++) {
        ticks += 20 + bench_random(&state) % 64;
        uint64_t what = bench_random(&state);
        if (fiber_count > 1 && what % 200 == 0) {
            current = (uint32_t)(bench_random(&state) % fiber_count);
            out[i] = ev_make(EV_SWITCH, ticks, current + 1, current + 1);
            continue;
        }
        uint32_t *depth = &depths[current], *stack = &methods[(size_t)current * (depth_max + 1)];
        uint32_t base = 0x7f000000u + current * 0x01000040u;
        if (*depth == 0 || (*depth < depth_max && (what & 1024))) {
            stack[*depth + 1] = (stack[*depth] * 7 + (uint32_t)(what >> 40) % 8) % METHODS;
            ++*depth;
            out[i] = ev_make(EV_CALL, ticks, 1 + stack[*depth], base - *depth * 56u);
            calls++;
        } else {
            out[i] = ev_make(EV_RETURN, ticks, 0, base - *depth * 56u);
            --*depth;
        }
    }
    free(depths);
    free(methods);
    return calls;
}

#define DEFINE_SLOTS 4u /* a head, ev_method_def and up to 32 bytes of name */
static ev definitions[METHODS * DEFINE_SLOTS];

static void make_definitions(void)
{
    for (uint32_t i = 0; i < METHODS; i++) {
        char name[2 * sizeof(ev) + 1];
        ev_method_def def = {EV_METHOD_RUBY, i, (uint32_t)snprintf(name, sizeof name, "Shop::Kitchen%u#method_%03u", i % 20, i), 0};
        ev *to = &definitions[i * DEFINE_SLOTS];
        to[0] = ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_METHOD, i + 1), (DEFINE_SLOTS - 1) * (uint32_t)sizeof(ev));
        memcpy(&to[1], &def, sizeof def);
        memcpy(&to[2], name, sizeof name - 1);
    }
}

static double time_report(const ev *events, uint64_t calls)
{
    char error[256];
    report *r;
    if (report_new(&r, &(report_desc){.longest_count = 20}, error, sizeof error) != 0)
        exit(1);
    uint32_t stream = report_stream_open(r, 1);
    double t = bench_thread_s();
    report_run(r, stream, definitions, METHODS * DEFINE_SLOTS);
    for (uint32_t i = 0; i < EVENT_COUNT; i += BLOCK_SIZE)
        report_run(r, stream, events + i, BLOCK_SIZE);
    report_stream_close(r, stream, true);
    report_finish(r);
    t = bench_thread_s() - t;
    report_model m = report_model_of(r);
    for (size_t i = 0; i < m.method_count; i++)
        calls -= m.methods[i].calls;
    if (calls != 0)
        fprintf(stderr, "report: calls are missing\n"), exit(1);
    report_delete(r);
    return t;
}

static double time_jsonl(const ev *events)
{
    pen p;
    jsonl *j;
    int fd = open("/dev/null", O_WRONLY);
    if (pen_init(&p, fd) != 0 || jsonl_new(&j, &p, 0) != 0)
        exit(1);
    double t = bench_thread_s();
    for (int pass = 0; pass < 2; pass++) {
        uint32_t stream = jsonl_stream_open(j, 1);
        jsonl_run(j, stream, definitions, METHODS * DEFINE_SLOTS);
        for (uint32_t i = 0; i < EVENT_COUNT; i += BLOCK_SIZE)
            jsonl_run(j, stream, events + i, BLOCK_SIZE);
        jsonl_stream_close(j, stream, true);
        if (pass == 0)
            jsonl_second_pass(j);
    }
    pen_finish(&p);
    t = bench_thread_s() - t;
    jsonl_delete(j);
    pen_free(&p);
    close(fd);
    return t;
}

int main(void)
{
    static const struct { const char *name; uint32_t depth_max, fibers; } rows[] = {
        {"depth 24, one thread", 24, 1},
        {"depth 2,000", 2000, 1},
        {"1,000 threads", 24, 1000},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    ev *events = mem_aligned(64, sizeof *events * EVENT_COUNT), *copy = mem_aligned(64, sizeof *copy * EVENT_COUNT);
    if (!events || !copy)
        return 1;
    make_definitions();
    memset(copy, 1, sizeof *copy * EVENT_COUNT);
    double report_rate = 0, jsonl_rate = 0;
    printf("%-22s %10s %12s %12s\n", "walk", "copy M/s", "report M/s", "jsonl M/s");
    for (int r = 0; r < ROWS; r++) {
        uint64_t calls = make(events, rows[r].depth_max, rows[r].fibers);
        double copies[ROUNDS], reports[ROUNDS], exports[ROUNDS], m = EVENT_COUNT / 1e6;
        for (int i = 0; i < ROUNDS; i++) {
            double t = bench_thread_s();
            memcpy(copy, events, sizeof *events * EVENT_COUNT);
            copies[i] = bench_thread_s() - t;
            reports[i] = time_report(events, calls);
            exports[i] = time_jsonl(events);
        }
        double reported = m / bench_median(reports, ROUNDS), exported = m / bench_median(exports, ROUNDS);
        printf("%-22s %10.0f %12.1f %12.1f\n", rows[r].name, m / bench_median(copies, ROUNDS), reported, exported);
        if (r == 0) {
            report_rate = reported;
            jsonl_rate = exported;
        }
    }
    printf("\nreport.events_per_s: %.0f\n", report_rate * 1e6);
    printf("report.jsonl_events_per_s: %.0f\n", jsonl_rate * 1e6);
    mem_free(events);
    mem_free(copy);
    return 0;
}
