/* What the programs of this room print: a line for each step, with the program's own time since its start. */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline struct timespec timespec_of_ms(int64_t time_ms) {
    return (struct timespec){time_ms / 1000, time_ms % 1000 * NS_PER_MS};
}

/* A stamp of this clock, this much later. */
static inline struct timespec deadline_of_ms(clockid_t clock, int64_t limit_ms) {
    int64_t until_ns = clock_ns(clock) + limit_ms * NS_PER_MS;
    return (struct timespec){until_ns / NS_PER_S, until_ns % NS_PER_S};
}

/* `result` is what the call returned: a count, or minus its errno. */
static inline void show(const char *step, int64_t result) {
    static int64_t began_ns;
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (began_ns == 0) began_ns = now_ns;
    now_ns -= began_ns;
    printf("%" PRId64 ".%09" PRId64 " %s: %" PRId64 "\n", now_ns / NS_PER_S, now_ns % NS_PER_S, step, result);
    fflush(stdout);
}

/* The value of a call that returns -1 and sets errno. */
static inline int64_t result_of(int64_t returned) {
    return returned == -1 ? -errno : returned;
}
