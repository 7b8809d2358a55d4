/* The clock of one server, in a file that the server maps. A redis-server has liblockstorm-preload.so loaded into it
 * (preload_clock.c), and CLOCK_PAGE_VARIABLE names the file; so does a ZooKeeper, with CLOCK_ALL_VARIABLE set: then the
 * file is the monotonic clock as well. PostgreSQL runs under libfaketime, which reads the first line of the same file.
 *
 * In virtual time the clock stands at wall_ns, which the trial or the explorer writes. In real time it runs: the page
 * says how it differs from the machine's clock. That is three numbers, and a server that reads the old offset with the
 * new drift would show a time that never was. So there are two shifts: the one that is in force stays untouched while
 * the other is written. A reader never waits for a writer that has lost its processor. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_PAGE_VARIABLE "LOCKSTORM_CLOCK_PAGE"
#define CLOCK_ALL_VARIABLE "LOCKSTORM_CLOCK_ALL"

enum { CLOCK_PAGE_TEXT = 64, CLOCK_PAGE_ALARMS = 512 };

/* The interval timer of one of the server's processes (setitimer), by which PostgreSQL limits statements, waits for
 * locks and idle sessions. Where the clock stands, the process only writes down for how long it has set the timer:
 * nothing moves the clock meanwhile. The scheduler, which does, turns that into a moment, and sends SIGALRM then. */
struct clock_alarm {
    _Atomic int32_t pid; /* 0: free */
    _Atomic int64_t
        after_ns;   /* set by the process; CLOCK_ALARM_OFF: it has stopped its timer; 0: the scheduler knows */
    int64_t due_ns; /* the scheduler's, by the trial's clock; 0: not set */
};
#define CLOCK_ALARM_OFF INT64_C(-1)

/* How a clock that runs differs from the machine's: it is offset_ns ahead at since_ns (CLOCK_MONOTONIC of the machine),
 * and gains drift_ppm from then on. Numbers are acquired; they belong together if the version is still the same. */
struct clock_shift {
    _Atomic int64_t offset_ns, drift_ppm, since_ns;
};

struct clock_page {
    char text[CLOCK_PAGE_TEXT];   /* the same as a line for libfaketime; empty when no server reads it */
    _Atomic int64_t wall_ns;      /* since 1970, for a clock that stands */
    _Atomic uint64_t version;     /* grows with every shift; 0: the clock stands */
    struct clock_shift shifts[2]; /* that of a version is at version % 2 */
    struct clock_alarm alarms[CLOCK_PAGE_ALARMS];
};

/* The clock runs by this shift from now on. There is one writer at a time. */
static inline void clock_page_set_shift(struct clock_page *page, int64_t offset_ns, int64_t drift_ppm,
                                        int64_t since_ns) {
    uint64_t version = atomic_load_explicit(&page->version, memory_order_relaxed) + 1;
    struct clock_shift *shift = &page->shifts[version % 2];
    /* Released: who acquires one of the new numbers then also sees that their old version is no longer in force. */
    atomic_store_explicit(&shift->offset_ns, offset_ns, memory_order_release);
    atomic_store_explicit(&shift->drift_ppm, drift_ppm, memory_order_release);
    atomic_store_explicit(&shift->since_ns, since_ns, memory_order_release);
    atomic_store_explicit(&page->version, version, memory_order_release);
}
