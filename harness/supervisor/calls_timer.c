#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/signals.h"
#include "harness/supervisor/timers.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t) /* linux/timerfd.h, which clashes with sys/timerfd.h */
#endif

/* --- the list --- */

static struct program_timer *timer_find(const struct supervisor *supervisor, const struct program_process *process,
                                        enum timer_kind kind, int number) {
    for (struct program_timer *each = supervisor->timers; each; each = each->next)
        if (each->process == process && each->pid == process->pid && each->kind == kind && each->number == number)
            return each;
    return NULL;
}

static struct program_timer *timer_add(struct supervisor *supervisor, struct program_process *process,
                                       enum timer_kind kind, int number) {
    struct program_timer *timer = calloc(1, sizeof *timer);
    if (!timer) abort();
    *timer = (struct program_timer){.next = supervisor->timers,
                                    .process = process,
                                    .pid = process->pid,
                                    .kind = kind,
                                    .number = number,
                                    .duplicate = -1,
                                    .clock = CLOCK_REALTIME,
                                    .deadline_ns = INT64_MAX};
    supervisor->timers = timer;
    return timer;
}

static void timer_remove(struct supervisor *supervisor, struct program_timer *timer) {
    struct program_timer **place = &supervisor->timers;
    while (*place != timer) place = &(*place)->next;
    *place = timer->next;
    if (timer->duplicate >= 0) close(timer->duplicate);
    free(timer);
}

void timers_free(struct supervisor *supervisor) {
    while (supervisor->timers) timer_remove(supervisor, supervisor->timers);
}

/* --- expiry --- */

static int64_t timer_call_deadline_of(const struct supervisor *supervisor, const struct program_timer *timer) {
    if (timer->deadline_ns == INT64_MAX || timer->pid != timer->process->pid) return INT64_MAX;
    return timer->deadline_ns - program_clock_read(&supervisor->clock, timer->clock) + supervisor->clock.mono_ns;
}

int64_t timers_next_deadline_ns(const struct supervisor *supervisor) {
    int64_t next_ns = INT64_MAX;
    for (const struct program_timer *each = supervisor->timers; each; each = each->next)
        if (timer_call_deadline_of(supervisor, each) < next_ns) next_ns = timer_call_deadline_of(supervisor, each);
    return next_ns;
}

/* The program's own descriptor becomes readable, with the number of expiries that it has not read. On a kernel that
 * does not let the number be set (CONFIG_CHECKPOINT_RESTORE), its timer is set to a nanosecond, which passes at once.
 */
static void expire_descriptor(struct program_timer *timer, int64_t times) {
    static const struct itimerspec AT_ONCE = {.it_value = {.tv_nsec = 1}};
    struct pollfd fd = {.fd = timer->duplicate, .events = POLLIN};
    int64_t unread = 0;
    program_descriptor_info(getpid(), timer->duplicate, "ticks:", &unread);
    uint64_t ticks = (uint64_t)(unread + times);
    if (ioctl(timer->duplicate, TFD_IOC_SET_TICKS, &ticks) == 0) return;
    timerfd_settime(timer->duplicate, 0, &AT_ONCE, NULL);
    poll(&fd, 1, 1000);
}

/* A timer that has been late for several of its intervals expires once for all of them. */
static void timer_call_expire(struct supervisor *supervisor, struct program_timer *timer) {
    int64_t late_ns = supervisor->clock.mono_ns - timer_call_deadline_of(supervisor, timer), times = 1, none;
    if (timer->every_ns > 0) times += late_ns / timer->every_ns;
    bool again = timer->every_ns > 0 && timer->deadline_ns < INT64_MAX - times * timer->every_ns;
    timer->deadline_ns = again ? timer->deadline_ns + times * timer->every_ns : INT64_MAX;
    timer->order = ++supervisor->next_order;
    if (timer->kind != TIMER_DESCRIPTOR) {
        if (timer->signal)
            signals_send(supervisor, timer->process, timer->signal_tid, timer->signal, timer->signal_value);
    } else if (program_descriptor_info(timer->pid, timer->number, "clockid:", &none)) {
        expire_descriptor(timer, times);
    } else {
        timer->deadline_ns = INT64_MAX; /* the program has closed it */
    }
}

bool timers_expire(struct supervisor *supervisor) {
    struct program_timer *first = NULL;
    for (struct program_timer *each = supervisor->timers; each; each = each->next) {
        int64_t deadline_ns = timer_call_deadline_of(supervisor, each);
        if (deadline_ns > supervisor->clock.mono_ns) continue;
        int64_t earliest_ns = first ? timer_call_deadline_of(supervisor, first) : INT64_MAX;
        if (deadline_ns < earliest_ns || (deadline_ns == earliest_ns && each->order < first->order)) first = each;
    }
    if (!first) return false;
    timer_call_expire(supervisor, first);
    return true;
}

/* --- setting and reading --- */

static int64_t left_ns(const struct supervisor *supervisor, const struct program_timer *timer) {
    int64_t deadline_ns = timer ? timer_call_deadline_of(supervisor, timer) : INT64_MAX;
    return deadline_ns == INT64_MAX ? 0 : deadline_ns - supervisor->clock.mono_ns;
}

static struct itimerspec setting_of(const struct supervisor *supervisor, const struct program_timer *timer) {
    int64_t value_ns = left_ns(supervisor, timer), every_ns = timer ? timer->every_ns : 0;
    return (struct itimerspec){.it_value = {value_ns / CLOCK_NS_PER_S, value_ns % CLOCK_NS_PER_S},
                               .it_interval = {every_ns / CLOCK_NS_PER_S, every_ns % CLOCK_NS_PER_S}};
}

static int64_t time_ns(const struct timespec *time) {
    bool fits = time->tv_sec < INT64_MAX / CLOCK_NS_PER_S / 4;
    return fits ? time->tv_sec * CLOCK_NS_PER_S + time->tv_nsec : INT64_MAX / 4;
}

static bool is_time(const struct timespec *time) {
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < CLOCK_NS_PER_S;
}

static void timer_set(struct supervisor *supervisor, struct program_timer *timer, const struct itimerspec *setting,
                      bool absolute) {
    int64_t value_ns = time_ns(&setting->it_value);
    int64_t now_ns = program_clock_read(&supervisor->clock, timer->clock);
    timer->deadline_ns = value_ns == 0 ? INT64_MAX : absolute ? value_ns : now_ns + value_ns;
    timer->every_ns = time_ns(&setting->it_interval);
    timer->order = ++supervisor->next_order;
}

/* Writes the old setting where the program wants it, and sets the new one. False: the call was refused. */
static bool timer_call_exchange(struct supervisor *supervisor, const struct seccomp_notif *call,
                                struct program_timer *timer, int new, int old, uint64_t flags) {
    struct itimerspec setting, before = setting_of(supervisor, timer);
    uint64_t old_at = call_argument(call, old);
    if (!program_read(timer->process, call_argument(call, new), &setting, sizeof setting) ||
        (old_at && !program_write(timer->process, old_at, &before, sizeof before))) {
        supervisor_refuse(supervisor, call, EFAULT);
        return false;
    }
    if (!is_time(&setting.it_value) || !is_time(&setting.it_interval)) {
        supervisor_refuse(supervisor, call, EINVAL);
        return false;
    }
    timer_set(supervisor, timer, &setting, flags & TFD_TIMER_ABSTIME);
    return true;
}

/* --- timerfd --- */

static void on_timerfd_settime(struct supervisor *supervisor, struct program_process *process,
                               const struct seccomp_notif *call) {
    static const struct itimerspec DISARMED;
    int fd = (int)call_argument(call, 0);
    int64_t clock;
    if (!program_descriptor_info(process->pid, fd, "clockid:", &clock)) {
        supervisor_pass(supervisor, call); /* the kernel says what is wrong with it */
        return;
    }
    struct program_timer *timer = timer_find(supervisor, process, TIMER_DESCRIPTOR, fd);
    if (!timer) timer = timer_add(supervisor, process, TIMER_DESCRIPTOR, fd);
    if (timer->duplicate >= 0) close(timer->duplicate);
    timer->duplicate = program_duplicate_fd(process, fd);
    timer->clock = (clockid_t)clock;
    timerfd_settime(timer->duplicate, 0, &DISARMED, NULL);
    if (!timer_call_exchange(supervisor, call, timer, 2, 3, call_argument(call, 1))) return;
    if (timer_call_deadline_of(supervisor, timer) <= supervisor->clock.mono_ns) timer_call_expire(supervisor, timer);
    supervisor_answer(supervisor, call, 0);
}

static void answer_setting(struct supervisor *supervisor, const struct program_process *process,
                           const struct seccomp_notif *call, const struct program_timer *timer) {
    struct itimerspec setting = setting_of(supervisor, timer);
    call_answer_written(supervisor, process, call, call_argument(call, 1), &setting, sizeof setting, 0);
}

static void on_timerfd_gettime(struct supervisor *supervisor, struct program_process *process,
                               const struct seccomp_notif *call) {
    struct program_timer *timer = timer_find(supervisor, process, TIMER_DESCRIPTOR, (int)call_argument(call, 0));
    answer_setting(supervisor, process, call, timer);
}

/* --- timer_create --- */

static void on_timer_create(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call) {
    static int last;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    int id = ++last;
    uint64_t event_at = call_argument(call, 1);
    bool read = !event_at || program_read(process, event_at, &event, sizeof event);
    if (!read || !program_write(process, call_argument(call, 2), &id, sizeof id)) {
        supervisor_refuse(supervisor, call, EFAULT);
        return;
    }
    struct program_timer *timer = timer_add(supervisor, process, TIMER_POSIX, id);
    timer->clock = (clockid_t)call_argument(call, 0);
    timer->signal = event.sigev_notify == SIGEV_NONE ? 0 : event.sigev_signo;
    timer->signal_tid = event.sigev_notify == SIGEV_THREAD_ID ? event._sigev_un._tid : 0;
    timer->signal_value = event_at ? (uint64_t)(uintptr_t)event.sigev_value.sival_ptr : (uint64_t)id;
    supervisor_answer(supervisor, call, 0);
}

/* The timer with the id of a call; NULL, and the call is refused, for an unknown id. */
static struct program_timer *created_timer(struct supervisor *supervisor, const struct program_process *process,
                                           const struct seccomp_notif *call) {
    struct program_timer *timer = timer_find(supervisor, process, TIMER_POSIX, (int)call_argument(call, 0));
    if (!timer) supervisor_refuse(supervisor, call, EINVAL);
    return timer;
}

static void on_timer_settime(struct supervisor *supervisor, struct program_process *process,
                             const struct seccomp_notif *call) {
    struct program_timer *timer = created_timer(supervisor, process, call);
    if (timer && timer_call_exchange(supervisor, call, timer, 2, 3, call_argument(call, 1)))
        supervisor_answer(supervisor, call, 0);
}

static void on_timer_gettime(struct supervisor *supervisor, struct program_process *process,
                             const struct seccomp_notif *call) {
    struct program_timer *timer = created_timer(supervisor, process, call);
    if (timer) answer_setting(supervisor, process, call, timer);
}

static void on_timer_getoverrun(struct supervisor *supervisor, struct program_process *process,
                                const struct seccomp_notif *call) {
    if (created_timer(supervisor, process, call)) supervisor_answer(supervisor, call, 0);
}

static void on_timer_delete(struct supervisor *supervisor, struct program_process *process,
                            const struct seccomp_notif *call) {
    struct program_timer *timer = created_timer(supervisor, process, call);
    if (!timer) return;
    timer_remove(supervisor, timer);
    supervisor_answer(supervisor, call, 0);
}

/* --- setitimer, alarm --- */

static struct program_timer *interval_timer(struct supervisor *supervisor, struct program_process *process) {
    struct program_timer *timer = timer_find(supervisor, process, TIMER_INTERVAL, ITIMER_REAL);
    if (timer) return timer;
    timer = timer_add(supervisor, process, TIMER_INTERVAL, ITIMER_REAL);
    timer->clock = CLOCK_MONOTONIC;
    timer->signal = SIGALRM;
    return timer;
}

static struct itimerval in_us(const struct itimerspec *setting) {
    return (struct itimerval){
        .it_value = {setting->it_value.tv_sec, setting->it_value.tv_nsec / CLOCK_NS_PER_US},
        .it_interval = {setting->it_interval.tv_sec, setting->it_interval.tv_nsec / CLOCK_NS_PER_US}};
}

/* What is no time stays none. */
static struct timespec in_ns(const struct timeval *time) {
    bool fits = time->tv_usec >= 0 && time->tv_usec < CLOCK_NS_PER_S / CLOCK_NS_PER_US;
    return (struct timespec){time->tv_sec, fits ? time->tv_usec * CLOCK_NS_PER_US : -1};
}

/* The timers of processor time never expire: a program in virtual time needs none. */
static void on_setitimer(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    struct itimerval new = {0};
    uint64_t new_at = call_argument(call, 1), old_at = call_argument(call, 2);
    struct program_timer *timer = interval_timer(supervisor, process);
    struct itimerspec before = setting_of(supervisor, timer);
    struct itimerval old = in_us(&before);
    if ((new_at && !program_read(process, new_at, &new, sizeof new)) ||
        (old_at && !program_write(process, old_at, &old, sizeof old))) {
        supervisor_refuse(supervisor, call, EFAULT);
        return;
    }
    struct itimerspec setting = {.it_value = in_ns(&new.it_value), .it_interval = in_ns(&new.it_interval)};
    if (!is_time(&setting.it_value) || !is_time(&setting.it_interval)) {
        supervisor_refuse(supervisor, call, EINVAL);
        return;
    }
    if (call_argument(call, 0) == ITIMER_REAL) timer_set(supervisor, timer, &setting, false);
    supervisor_answer(supervisor, call, 0);
}

static void on_getitimer(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    struct itimerspec setting = setting_of(supervisor, interval_timer(supervisor, process));
    struct itimerval value = in_us(&setting);
    call_answer_written(supervisor, process, call, call_argument(call, 1), &value, sizeof value, 0);
}

#ifdef SYS_alarm
static void on_alarm(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    struct program_timer *timer = interval_timer(supervisor, process);
    struct itimerspec setting = {.it_value = {.tv_sec = (unsigned)call_argument(call, 0)}};
    int64_t before_ns = left_ns(supervisor, timer);
    timer_set(supervisor, timer, &setting, false);
    supervisor_answer(supervisor, call, (before_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S);
}
#endif

const struct supervised_call CALLS_TIMER[] = {
    {SYS_timerfd_settime, on_timerfd_settime, CALL_ALWAYS, 0},
    {SYS_timerfd_gettime, on_timerfd_gettime, CALL_ALWAYS, 0},
    {SYS_timer_create, on_timer_create, CALL_ALWAYS, 0},
    {SYS_timer_settime, on_timer_settime, CALL_ALWAYS, 0},
    {SYS_timer_gettime, on_timer_gettime, CALL_ALWAYS, 0},
    {SYS_timer_getoverrun, on_timer_getoverrun, CALL_ALWAYS, 0},
    {SYS_timer_delete, on_timer_delete, CALL_ALWAYS, 0},
    {SYS_setitimer, on_setitimer, CALL_ALWAYS, 0},
    {SYS_getitimer, on_getitimer, CALL_ALWAYS, 0},
#ifdef SYS_alarm
    {SYS_alarm, on_alarm, CALL_ALWAYS, 0},
#endif
    {0},
};
