#include "harness/scheduler/stamps.h"

#include "harness/scheduler/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

enum {
    RATE_BITS = 32,
    ANCHOR_MOST_NS = CLOCK_NS_PER_S, /* an older anchor may lie before the host was suspended */
    RATE_CHANGE_PARTS = 1000,        /* a rate that differs by more than a thousandth is no rate of this counter */
    AHEAD_MOST_NS = 5000,            /* how far the counter may be seen ahead of the clock */
    READ_TRIES = 4,
    READ_AT_ONCE_TICKS = 5000, /* a reading that took longer was interrupted */
};

static int64_t ns_since(const struct stamp_base *base, uint64_t ticks) {
    return (int64_t)((unsigned __int128)(ticks - base->from.ticks) * base->rate >> RATE_BITS);
}

/* 0: too little time has passed to know. */
static uint64_t rate_between(struct stamp_reading from, struct stamp_reading to) {
    int64_t passed_ns = to.mono_ns - from.mono_ns;
    if (from.ticks == 0 || passed_ns < STAMP_WINDOW_NS || passed_ns > ANCHOR_MOST_NS || to.ticks <= from.ticks)
        return 0;
    return (uint64_t)(((unsigned __int128)passed_ns << RATE_BITS) / (to.ticks - from.ticks));
}

static bool rates_differ(uint64_t one, uint64_t other) {
    uint64_t difference = one > other ? one - other : other - one;
    return difference > other / RATE_CHANGE_PARTS;
}

/* How far the last stamp that the base may have given is after this reading; negative: before it. */
static int64_t last_stamp_after_ns(const struct stamp_base *base, struct stamp_reading now) {
    uint64_t passed = now.ticks - base->from.ticks;
    uint64_t last = base->from.ticks + (passed < base->window ? passed : base->window);
    return base->from.mono_ns + ns_since(base, last) - now.mono_ns;
}

void stamp_base_renew(struct stamp_base *base, struct stamp_reading now) {
    uint64_t rate = rate_between(base->anchor, now);
    bool keeps_rate = rate != 0 && (base->rate == 0 || !rates_differ(rate, base->rate));
    int64_t ahead_ns = base->window ? last_stamp_after_ns(base, now) : 0;
    if (ahead_ns > AHEAD_MOST_NS) base->distrusted = true;
    if (rate != 0 || base->anchor.ticks == 0 || now.mono_ns - base->anchor.mono_ns > ANCHOR_MOST_NS) base->anchor = now;
    base->from = now;
    if (ahead_ns > 0 && !base->distrusted) {
        base->from.mono_ns += ahead_ns;
        base->from.wall_ns += ahead_ns;
    }
    base->rate = keeps_rate ? rate : 0;
    base->window = keeps_rate && !base->distrusted ? ((uint64_t)STAMP_WINDOW_NS << RATE_BITS) / rate : 0;
}

static void clocks_read(int64_t *mono_ns, int64_t *wall_ns) {
    *mono_ns = clock_real_mono_ns();
    *wall_ns = clock_real_wall_ns();
}

#if defined(__x86_64__)

/* CPUID 80000007H, EDX bit 8: the counter runs at a constant rate in all states of the processor. */
static bool counter_is_invariant(void) {
    static _Thread_local int known; /* 0: not asked yet, 1: yes, 2: no */
    unsigned a, b, c, d = 0;
    if (known == 0) known = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1 << 8) ? 1 : 2;
    return known == 1;
}

/* False: it was interrupted, so the counter and the clocks are not of one moment. */
static bool reading_take(struct stamp_reading *now) {
    for (int tries = 0; tries < READ_TRIES; tries++) {
        uint64_t before = __rdtsc();
        now->mono_ns = clock_real_mono_ns();
        uint64_t after = __rdtsc();
        now->wall_ns = clock_real_wall_ns();
        now->ticks = before + (after - before) / 2;
        if (__rdtsc() - before <= READ_AT_ONCE_TICKS) return true;
    }
    return false;
}

/* Outside its window: compares the counter with the clocks, where it is trusted. */
static void compared_stamps(struct stamp_base *base, int64_t *mono_ns, int64_t *wall_ns) {
    struct stamp_reading now;
    if (base->distrusted || !counter_is_invariant() || !reading_take(&now)) {
        clocks_read(mono_ns, wall_ns);
        return;
    }
    stamp_base_renew(base, now);
    *mono_ns = base->from.mono_ns;
    *wall_ns = base->from.wall_ns;
}

void stamps_take(int64_t *mono_ns, int64_t *wall_ns) {
    static _Thread_local struct stamp_base base;
    static _Thread_local int64_t latest_ns; /* a clock that is read again may be a little behind the counter */
    uint64_t ticks = __rdtsc();
    if (__builtin_expect(ticks - base.from.ticks < base.window, 1)) {
        int64_t passed_ns = ns_since(&base, ticks);
        *mono_ns = base.from.mono_ns + passed_ns;
        *wall_ns = base.from.wall_ns + passed_ns;
    } else {
        compared_stamps(&base, mono_ns, wall_ns);
    }
    if (*mono_ns < latest_ns) *mono_ns = latest_ns;
    latest_ns = *mono_ns;
}

#else

void stamps_take(int64_t *mono_ns, int64_t *wall_ns) {
    clocks_read(mono_ns, wall_ns);
}

#endif
