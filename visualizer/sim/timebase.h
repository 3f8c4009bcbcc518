/* sim/timebase.h - ticks of a stream to CLOCK_MONOTONIC ns.
 * For:     sim/ and its reference.
 * Idea:    a line through calibration pairs. Each new pair begins a new line where the old one stands at the last event, so
 *          that time never jumps, with a slope that meets the true time about a second later.
 * Use:     timebase_init; timebase_calibrate at each CLOCK definition; timebase_ns.
 * Units:   ticks in, ns out. A tick before the line's base gives the base: time does not run backwards over a border.
 */
#ifndef RRTRACE_SIM_TIMEBASE_H
#define RRTRACE_SIM_TIMEBASE_H

#include "wire/event.h"

#include <stdint.h>

/* One line; small, copied into blocks. */
typedef struct timebase_line {
    uint64_t base_ticks, base_ns;
    uint64_t ns_per_tick_q32; /* fixed point, 32 fractional bits */
} timebase_line;

typedef struct timebase {
    timebase_line line;
    uint64_t first_ticks, first_ns; /* the first pair */
    uint32_t pair_count;
} timebase;

void timebase_init(timebase *t); /* 1 tick is 1 ns until calibrated */
/* last_ticks: of the last event before the definition; ignored for the first two pairs, which set the line. */
void timebase_calibrate(timebase *t, const ev_clock_def *pair, uint64_t last_ticks);

__extension__ typedef unsigned __int128 timebase_wide;

static inline uint64_t timebase_ns(const timebase_line *line, uint64_t ticks)
{
    uint64_t since = ticks - line->base_ticks;
    if ((int64_t)since < 0)
        return line->base_ns;
    return line->base_ns + (uint64_t)((timebase_wide)since * line->ns_per_tick_q32 >> 32);
}

#endif
