/* Reading clocks, and sleeping. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/calls.h"

/* Counts a read of a clock. A program that reads the same time again and again waits for another thread, or for the
 * clock: others get their turn first. */
static void count_read(struct supervisor *supervisor) {
    if (program_clock_count_read(&supervisor->clock)) supervisor_publish_clock(supervisor);
}

static void on_clock_gettime(struct supervisor *supervisor, struct program_process *process,
                             const struct seccomp_notif *call) {
    clockid_t id = (clockid_t)call_argument(call, 0);
    if (!program_clock_is_virtual(id)) {
        supervisor_refuse(supervisor, call, EINVAL);
        return;
    }
    count_read(supervisor);
    int64_t now_ns = program_clock_read(&supervisor->clock, id);
    struct timespec now = {.tv_sec = now_ns / CLOCK_NS_PER_S, .tv_nsec = now_ns % CLOCK_NS_PER_S};
    call_answer_written(supervisor, process, call, call_argument(call, 1), &now, sizeof now, 0);
}

static void on_gettimeofday(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call) {
    count_read(supervisor);
    int64_t wall_ns = supervisor->clock.wall_ns;
    struct timeval now = {.tv_sec = wall_ns / CLOCK_NS_PER_S, .tv_usec = wall_ns % CLOCK_NS_PER_S / CLOCK_NS_PER_US};
    static const struct timezone UTC;
    uint64_t zone = call_argument(call, 1);
    if (zone && !program_write(process, zone, &UTC, sizeof UTC)) supervisor_refuse(supervisor, call, EFAULT);
    else if (!call_argument(call, 0)) supervisor_answer(supervisor, call, 0);
    else call_answer_written(supervisor, process, call, call_argument(call, 0), &now, sizeof now, 0);
}

static void sleep_until(struct supervisor *supervisor, struct program_process *process,
                        const struct seccomp_notif *call, int64_t deadline_ns, bool by_wall_clock) {
    struct held_call *held = held_call_add(supervisor, process, call, HELD_SLEEP);
    held->deadline_ns = deadline_ns;
    held->by_wall_clock = by_wall_clock;
}

static void on_nanosleep(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    int64_t limit_ns;
    if (!call_read_time(supervisor, process, call, call_argument(call, 0), &limit_ns)) return;
    sleep_until(supervisor, process, call, call_deadline_ns(supervisor, limit_ns), false);
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

static void on_clock_nanosleep(struct supervisor *supervisor, struct program_process *process,
                               const struct seccomp_notif *call) {
    clockid_t id = (clockid_t)call_argument(call, 0);
    int64_t time_ns;
    if (sleep_error(id)) {
        supervisor_refuse(supervisor, call, sleep_error(id));
        return;
    }
    if (!call_read_time(supervisor, process, call, call_argument(call, 2), &time_ns)) return;
    if (call_argument(call, 1) & TIMER_ABSTIME)
        sleep_until(supervisor, process, call, time_ns, program_clock_is_wall(id));
    else sleep_until(supervisor, process, call, call_deadline_ns(supervisor, time_ns), false);
}

/* The trial owns the clocks. */
static void on_clock_set(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    (void)process;
    supervisor_refuse(supervisor, call, EPERM);
}

#ifdef SYS_time
static void on_time(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    count_read(supervisor);
    time_t now = supervisor->clock.wall_ns / CLOCK_NS_PER_S;
    uint64_t address = call_argument(call, 0);
    if (address) call_answer_written(supervisor, process, call, address, &now, sizeof now, now);
    else supervisor_answer(supervisor, call, now);
}
#endif

/* The machine's time in ticks, and the processor time, which is that of the process's clock. */
static void on_times(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    enum { TICKS_PER_S = 100 }; /* in every system call of Linux */
    clock_t now = supervisor->clock.mono_ns / (CLOCK_NS_PER_S / TICKS_PER_S);
    struct tms spent = {.tms_utime = now};
    uint64_t address = call_argument(call, 0);
    if (address) call_answer_written(supervisor, process, call, address, &spent, sizeof spent, now);
    else supervisor_answer(supervisor, call, now);
}

/* Says for how long the machine runs. */
static void on_sysinfo(struct supervisor *supervisor, struct program_process *process,
                       const struct seccomp_notif *call) {
    struct sysinfo info;
    sysinfo(&info);
    info.uptime = supervisor->clock.mono_ns / CLOCK_NS_PER_S;
    call_answer_written(supervisor, process, call, call_argument(call, 0), &info, sizeof info, 0);
}

const struct supervised_call CALLS_CLOCK[] = {
    {SYS_clock_gettime, on_clock_gettime, CALL_ALWAYS, 0},
    {SYS_gettimeofday, on_gettimeofday, CALL_ALWAYS, 0},
#ifdef SYS_time
    {SYS_time, on_time, CALL_ALWAYS, 0},
#endif
    {SYS_nanosleep, on_nanosleep, CALL_ALWAYS, 0},
    {SYS_clock_nanosleep, on_clock_nanosleep, CALL_ALWAYS, 0},
    {SYS_clock_settime, on_clock_set, CALL_ALWAYS, 0},
    {SYS_settimeofday, on_clock_set, CALL_ALWAYS, 0},
    {SYS_adjtimex, on_clock_set, CALL_ALWAYS, 0},
    {SYS_clock_adjtime, on_clock_set, CALL_ALWAYS, 0},
    {SYS_times, on_times, CALL_ALWAYS, 0},
    {SYS_sysinfo, on_sysinfo, CALL_ALWAYS, 0},
    {0},
};
