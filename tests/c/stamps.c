/* stamps: feeds harness/scheduler/stamps.h with readings of a simulated counter and clock, and compares its stamps with
 * the machine's clocks.
 *
 * Prints one JSON line: what a base came to in each case, and of LIVE stamps how often one went back, and how many ns
 * the 99 % that were nearest to the clocks were off at most. Exit status: 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/stamps.h"

enum { LIVE = 2000000, TICKS_PER_NS = 3 };

static const int64_t BEGIN_NS = 5000000000, WALL_NS = 1700000000000000000;

/* At `ns` of the clock the counter shows three ticks a ns, and `ticks_off` more. */
static struct stamp_reading at(int64_t ns, int64_t ticks_off) {
    return (struct stamp_reading){(uint64_t)(ns * TICKS_PER_NS + ticks_off), BEGIN_NS + ns, WALL_NS + ns};
}

static int64_t stamp_of(const struct stamp_base *base, uint64_t ticks) {
    return base->from.mono_ns + (int64_t)((unsigned __int128)(ticks - base->from.ticks) * base->rate >> 32);
}

static struct stamp_base trusted(void) {
    struct stamp_base base = {0};
    stamp_base_renew(&base, at(1000, 0));
    stamp_base_renew(&base, at(1000 + 2 * STAMP_WINDOW_NS, 0));
    return base;
}

/* Whether the counter is used, and how many ns the stamp half a window later is off. */
static void print_case(const char *name, const struct stamp_base *base, int64_t ns, int64_t ticks_off) {
    int64_t later = ns + STAMP_WINDOW_NS / 2;
    int64_t off = base->window ? stamp_of(base, at(later, ticks_off).ticks) - at(later, 0).mono_ns : 0;
    printf("\"%s\": {\"used\": %s, \"distrusted\": %s, \"off\": %" PRId64 "}, ", name, base->window ? "true" : "false",
           base->distrusted ? "true" : "false", off);
}

static void simulate(void) {
    int64_t ms = STAMP_WINDOW_NS, since = 1000 + 2 * ms;
    struct stamp_base base = {0};
    stamp_base_renew(&base, at(1000, 0));
    print_case("the first reading", &base, 1000, 0);
    stamp_base_renew(&base, at(1000 + ms / 2, 0));
    print_case("too soon", &base, 1000 + ms / 2, 0);
    base = trusted();
    print_case("two windows later", &base, since, 0);
    stamp_base_renew(&base, at(since + 2 * ms, 3 * ms / 1000)); /* it was slewed by 500 ppm */
    print_case("a slewed clock", &base, since + 2 * ms, 3 * ms / 1000);
    base = trusted();
    stamp_base_renew(&base, at(since + 2 * ms, -2 * ms)); /* a third slower */
    print_case("another rate", &base, since + 2 * ms, -2 * ms);
    base = trusted();
    stamp_base_renew(&base, at(since + 600 * INT64_C(1000000000), 0)); /* a sleep, or a stop */
    print_case("ten minutes later", &base, since, 0);
    base = trusted();
    stamp_base_renew(&base, at(since + 1000, 900 * 1000 * TICKS_PER_NS)); /* 0.9 ms ahead of the clock */
    print_case("far ahead of the clock", &base, since + 1000, 0);
}

/* The stamp that a base gave last is not after the first one of the next base. */
static int went_back_by_renewal(void) {
    int back = 0;
    for (int64_t ahead = 0; ahead < 4000; ahead += 100) {
        struct stamp_base base = trusted();
        struct stamp_reading now = at(1000 + 3 * STAMP_WINDOW_NS, ahead * TICKS_PER_NS);
        uint64_t last = base.from.ticks + base.window - 1;
        int64_t before = stamp_of(&base, last < now.ticks ? last : now.ticks);
        stamp_base_renew(&base, now);
        back += base.from.mono_ns < before;
    }
    return back;
}

static int rising(const void *one, const void *other) {
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

/* A stamp between two readings of the clock is off by how far it is outside them. */
static void live(void) {
    int64_t *off = calloc(LIVE, sizeof *off), last = INT64_MIN, back = 0;
    if (!off) abort();
    for (int each = 0; each < LIVE; each++) {
        int64_t before = clock_real_mono_ns(), mono, wall;
        stamps_take(&mono, &wall);
        int64_t after = clock_real_mono_ns(), wall_off = wall - clock_real_wall_ns();
        off[each] = mono < before ? before - mono : mono > after ? mono - after : 0;
        if (wall_off > off[each]) off[each] = wall_off; /* it was taken before, so it may only be less */
        back += mono < last;
        last = mono;
    }
    qsort(off, LIVE, sizeof *off, rising);
    printf("\"back\": %" PRId64 ", \"off\": %" PRId64, back, off[LIVE / 100 * 99]);
    free(off);
}

int main(void) {
    printf("{");
    simulate();
    printf("\"back_by_renewal\": %d, ", went_back_by_renewal());
    live();
    printf("}\n");
    return 0;
}
