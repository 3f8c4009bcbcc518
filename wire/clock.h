/* wire/clock.h - the cheapest monotonic counter of this machine, read the same way by both processes.
 * For:     ext/ (the ticks of events), intake/ (calibrations against CLOCK_MONOTONIC).
 * Idea:    a counter that all cores share needs no system call: TSC on x86-64 when the CPU says that it is invariant,
 *          CNTVCT_EL0 on arm64; anywhere else clock_gettime.
 * Use:     source = clock_source_detect() once; then clock_ticks(source).
 * Threads: any.
 * Units:   ticks have none; pairs of (ticks, CLOCK_MONOTONIC ns) give the rate. CLOCK_SOURCE_MONOTONIC ticks are ns.
 * Source:  Intel SDM vol. 3, 18.17.1 (invariant TSC, CPUID.80000007H:EDX[8]); Arm ARM D12.2. Measured on a 2-core x86-64
 *          virtual machine: clock_gettime about 24 ns, TSC about 3 ns.
 */
#ifndef RRTRACE_WIRE_CLOCK_H
#define RRTRACE_WIRE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CLOCK_SOURCE_MONOTONIC = 1, CLOCK_SOURCE_TSC = 2, CLOCK_SOURCE_CNTVCT = 3 };

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint32_t clock_source_detect(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)))
        return CLOCK_SOURCE_TSC;
#elif defined(__aarch64__)
    return CLOCK_SOURCE_CNTVCT;
#endif
    return CLOCK_SOURCE_MONOTONIC;
}

/* Does this source need no call? Then clock_counter reads it. */
static inline bool clock_is_counter(uint32_t source) { return __builtin_expect(source != CLOCK_SOURCE_MONOTONIC, 1); }

static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0; /* no source is a counter here */
#endif
}

static inline uint64_t clock_ticks(uint32_t source)
{
    return clock_is_counter(source) ? clock_counter() : clock_ns(CLOCK_MONOTONIC);
}

/* One calibration pair: the ticks in the middle of the tightest of a few looks at CLOCK_MONOTONIC. */
static inline void clock_pair(uint32_t source, uint64_t *ticks, uint64_t *monotonic_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = clock_ticks(source), ns = clock_ns(CLOCK_MONOTONIC), after = clock_ticks(source);
        if (after - before < best) {
            best = after - before;
            *ticks = before + (after - before) / 2;
            *monotonic_ns = ns;
        }
    }
}

#endif
