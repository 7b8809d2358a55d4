/* Reading clocks, and sleeping. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/calls.h"

/* Counts a read of a clock. A program that reads the same time again and again waits for another thread, or for the
 * clock: others get their turn first. */
static void count_read(struct supervisor *supervisor) {
    if (program_clock_count_read(&supervisor->clock)) supervisor_publish_clock(supervisor);
}

void on_clock_gettime(const struct program_call *call) {
    clockid_t id = (clockid_t)call->arguments[0];
    if (!program_clock_is_virtual(id)) {
        supervisor_refuse(call, EINVAL);
        return;
    }
    count_read(call->supervisor);
    struct timespec now = clock_timespec(program_clock_read(&call->supervisor->clock, id));
    call_answer_written(call, call->arguments[1], &now, sizeof now, 0);
}

void on_gettimeofday(const struct program_call *call) {
    static const struct timezone UTC;
    count_read(call->supervisor);
    int64_t wall_ns = call->supervisor->clock.wall_ns;
    struct timeval now = {.tv_sec = wall_ns / CLOCK_NS_PER_S, .tv_usec = wall_ns % CLOCK_NS_PER_S / CLOCK_NS_PER_US};
    uint64_t at = call->arguments[0], zone = call->arguments[1];
    if (zone && !call_write(call, zone, &UTC, sizeof UTC)) return;
    if (!at || call_write(call, at, &now, sizeof now)) supervisor_answer(call, 0);
}

static void sleep_until(const struct program_call *call, int64_t deadline_ns, bool by_wall_clock) {
    struct held_call *held = held_call_add(call, HELD_SLEEP);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock = by_wall_clock;
}

void on_nanosleep(const struct program_call *call) {
    int64_t limit_ns;
    if (!call_read_time(call, call->arguments[0], &limit_ns)) return;
    sleep_until(call, call_deadline_ns(call, limit_ns), false);
}

/* The errno with which the kernel refuses to sleep by this clock; 0: it does not. */
static int sleep_error(clockid_t id) {
    switch (id) {
    case CLOCK_THREAD_CPUTIME_ID: /* fall through */
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_REALTIME_COARSE: return EOPNOTSUPP;
    default: return program_clock_is_virtual(id) ? 0 : EINVAL;
    }
}

void on_clock_nanosleep(const struct program_call *call) {
    clockid_t id = (clockid_t)call->arguments[0];
    int64_t time_ns;
    if (sleep_error(id)) {
        supervisor_refuse(call, sleep_error(id));
        return;
    }
    if (!call_read_time(call, call->arguments[2], &time_ns)) return;
    if (call->arguments[1] & TIMER_ABSTIME) sleep_until(call, time_ns, program_clock_is_wall(id));
    else sleep_until(call, call_deadline_ns(call, time_ns), false);
}

/* The trial owns the clocks. */
void on_clock_set(const struct program_call *call) {
    supervisor_refuse(call, EPERM);
}

#ifdef SYS_time
void on_time(const struct program_call *call) {
    count_read(call->supervisor);
    time_t now = call->supervisor->clock.wall_ns / CLOCK_NS_PER_S;
    uint64_t address = call->arguments[0];
    if (!address || call_write(call, address, &now, sizeof now)) supervisor_answer(call, now);
}
#endif

/* The machine's time in ticks, and the processor time, which is that of the process's clock. */
void on_times(const struct program_call *call) {
    enum { TICKS_PER_S = 100 }; /* in every system call of Linux */
    clock_t now = call->supervisor->clock.mono_ns / (CLOCK_NS_PER_S / TICKS_PER_S);
    struct tms spent = {.tms_utime = now};
    uint64_t address = call->arguments[0];
    if (!address || call_write(call, address, &spent, sizeof spent)) supervisor_answer(call, now);
}

/* Says for how long the machine runs. */
void on_sysinfo(const struct program_call *call) {
    struct sysinfo info;
    sysinfo(&info);
    info.uptime = call->supervisor->clock.mono_ns / CLOCK_NS_PER_S;
    call_answer_written(call, call->arguments[0], &info, sizeof info, 0);
}
