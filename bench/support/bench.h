/* bench/support/bench.h - what the benchmarks in C share: repeatable chance, clocks, medians, recorded events.
 * Use:     #include "support/bench.h"
 * Memory:  none, but for what bench_load gives, which is mem_free's.
 */
#ifndef RRTRACE_BENCH_H
#define RRTRACE_BENCH_H

#include "base/mem.h"
#include "wire/clock.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* xorshift64*, Vigna 2016. *state is not 0. */
static inline uint64_t bench_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* CPU time: what other programs take is not counted. */
static inline double bench_thread_s(void) { return (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-9; }
static inline double bench_process_s(void) { return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9; }
static inline double bench_wall_s(void) { return (double)clock_ns(CLOCK_MONOTONIC) * 1e-9; }

/* Sorts values[count], count >= 1; of an even number it is the upper one. */
static inline double bench_median(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && values[k] < values[k - 1]; k--) {
            double t = values[k];
            values[k] = values[k - 1];
            values[k - 1] = t;
        }
    return values[count / 2];
}

/* A stream as it was sent, from a file of plain slots. False: there is none that can be read. */
static inline bool bench_load(const char *path, ev **events, size_t *count)
{
    FILE *f = fopen(path, "rb");
    *events = NULL;
    if (!f)
        return false;
    long bytes = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    rewind(f);
    *count = bytes > 0 ? (size_t)bytes / sizeof(ev) : 0;
    *events = *count > 0 ? mem_alloc(*count + 1, sizeof(ev)) : NULL;
    bool is_read = *events && fread(*events, sizeof(ev), *count, f) == *count;
    fclose(f);
    return is_read;
}

#endif
