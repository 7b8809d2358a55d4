/* Both stamps of a record in one reading of the processor's counter.
 *
 * Two readings of the kernel's clocks cost 50 ns and more, nearly all of what an append costs. The time stamp counter
 * of x86 costs less than half of one. Each thread compares it with both clocks once a millisecond, and adds what the
 * counter has gone on since: the kernel adjusts CLOCK_MONOTONIC by at most 500 ppm, so a stamp is off by less than a
 * microsecond. Within a thread stamps never go back.
 *
 * Where the processor does not say that its counter runs at one rate in all its states, or the counter was seen to
 * leave the clock, the clocks are read. Decision 0129. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What clock_real_mono_ns and clock_real_wall_ns show. */
void stamps_take(int64_t *mono_ns, int64_t *wall_ns);

/* A reading of the counter and of both clocks at the same moment. */
struct stamp_reading {
    uint64_t ticks;
    int64_t mono_ns, wall_ns;
};

enum { STAMP_WINDOW_NS = 1000000 };

/* One thread's comparison; zero at the beginning. */
struct stamp_base {
    struct stamp_reading anchor; /* the reading that the rate counts from */
    struct stamp_reading from;   /* what stamps count from */
    uint64_t rate;               /* ns a tick, times 2^32; 0: not known yet */
    uint64_t window;             /* in ticks; 0: the counter is not used now */
    bool distrusted;             /* the counter was seen to leave the clock */
};

/* Takes a new reading in. Afterwards stamps count from base->from, whose mono_ns is not before any stamp of the old
 * base. */
void stamp_base_renew(struct stamp_base *base, struct stamp_reading now);
