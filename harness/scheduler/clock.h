/* The machine's clocks, read from the kernel's vDSO directly: a preloaded library that changes the time does not affect
 * them. */
#pragma once

#include <stdint.h>
#include <time.h>

enum { CLOCK_NS_PER_US = 1000, CLOCK_NS_PER_MS = 1000000, CLOCK_NS_PER_S = 1000000000 };
/* The wall clock when virtual time stands at 0: 2026-01-01 00:00:00 UTC, in ns since 1970. */
#define CLOCK_EPOCH_NS INT64_C(1767225600000000000)

/* CLOCK_MONOTONIC in ns: goes on while processes are stopped, stands while the host is suspended. */
int64_t clock_real_mono_ns(void);
/* CLOCK_REALTIME in ns since 1970. */
int64_t clock_real_wall_ns(void);

/* A duration in whole ms, rounded up: a wait of that length does not end early. */
static inline int64_t clock_ms_rounded_up(int64_t duration_ns) {
    return (duration_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
}

static inline struct timespec clock_timespec(int64_t time_ns) {
    return (struct timespec){.tv_sec = time_ns / CLOCK_NS_PER_S, .tv_nsec = time_ns % CLOCK_NS_PER_S};
}
