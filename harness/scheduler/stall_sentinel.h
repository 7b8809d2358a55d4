/* Notices, in real time, when the machine did not run a trial's processes: a frozen or overbooked machine looks like
 * a slow lock, and a lease that it ran out of looks like a broken promise. A verdict must not be taken from such a
 * trial.
 *
 * A thread of the driver looks at short intervals at three things:
 *
 *   - its own sleep: when it overslept, the whole machine, or the driver with all its processes, stood still;
 *   - how long each thread of the driver and of its descendants has waited for a processor (field 2 of
 *     /proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). A fault that stops a process on purpose
 *     (SIGSTOP) does not count there;
 *   - the wall clock beside the monotonic one: servers count leases by it, and a machine that was suspended, or set
 *     right by NTP, moves it.
 *
 * A single wait counts, not their sum: a lease does not run out by many short ones while its watchdog gets its turns.
 * Decision 0096. */
#pragma once

#include <stdint.h>

enum stall_kind { STALL_NONE, STALL_MACHINE, STALL_THREAD, STALL_WALL_CLOCK };

struct stall {
    int64_t length_ns;
    int32_t kind;     /* enum stall_kind */
    char process[20]; /* of a STALL_THREAD: the thread's name, as in /proc/PID/comm */
};

struct stall_sentinel;

/* Starts to watch the calling process and all its descendants, every period_ns. NULL: there is no memory or no thread
 * for it. The caller stops it. */
struct stall_sentinel *stall_sentinel_start(int64_t period_ns);
/* Looks once more, and writes the longest stall since the start. */
void stall_sentinel_longest(struct stall_sentinel *sentinel, struct stall *longest);
void stall_sentinel_stop(struct stall_sentinel *sentinel);
