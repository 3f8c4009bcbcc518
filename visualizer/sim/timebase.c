#include "sim/timebase.h"

#define ONE_Q32 (UINT64_C(1) << 32)
#define CATCH_UP_NS 1e9 /* pairs come about every second: meet the true time by the next one */

void timebase_init(timebase *t) { *t = (timebase){.line = {.ns_per_tick_q32 = ONE_Q32}}; }

void timebase_calibrate(timebase *t, const ev_clock_def *pair, uint64_t last_ticks)
{
    t->pair_count++;
    if (t->pair_count == 1) {
        t->first_ticks = pair->ticks;
        t->first_ns = pair->monotonic_ns;
        t->line.base_ticks = pair->ticks;
        t->line.base_ns = pair->monotonic_ns;
        return;
    }
    if (pair->ticks <= t->first_ticks || pair->monotonic_ns <= t->first_ns)
        return; /* a liar, or a clock that was set back: keep the old line */
    /* The longer the baseline, the better the rate; its error is that of the two looks at the clock, some 50 ns. */
    double rate = (double)(pair->monotonic_ns - t->first_ns) / (double)(pair->ticks - t->first_ticks);
    if (t->pair_count > 2) {
        t->line.base_ns = timebase_ns(&t->line, last_ticks);
        t->line.base_ticks = last_ticks > t->line.base_ticks ? last_ticks : t->line.base_ticks;
        double expected = (double)t->line.base_ns + ((double)pair->ticks - (double)t->line.base_ticks) * rate;
        double behind = (double)pair->monotonic_ns - expected, slew = behind / CATCH_UP_NS;
        /* A sleeping laptop may put us seconds off: catch up at no more than twice or half the speed. */
        rate *= 1.0 + (slew > 1.0 ? 1.0 : slew < -0.5 ? -0.5 : slew);
    }
    double q32 = rate * (double)ONE_Q32;
    if (q32 >= 1.0 && q32 < (double)(UINT64_MAX >> 8))
        t->line.ns_per_tick_q32 = (uint64_t)q32;
}

