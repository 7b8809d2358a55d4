/* The timers of a program: of timerfd, of setitimer and alarm, of timer_create. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/calls.h"
#include "harness/supervisor/signals.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t) /* linux/timerfd.h, which clashes with sys/timerfd.h */
#endif

/* --- the list --- */

enum timer_kind { TIMER_DESCRIPTOR, TIMER_INTERVAL, TIMER_POSIX };

struct program_timer {
    struct program_timer *next;
    struct program_process *process;
    pid_t pid; /* of the process: its place may be another's later */
    enum timer_kind kind;
    int number;    /* of the descriptor, or the timer's id */
    int duplicate; /* of a descriptor: ours */
    clockid_t clock;
    int64_t began_ns;    /* when it was armed, or expired last, by the program's monotonic clock */
    int64_t deadline_ns; /* by `clock`; INT64_MAX: it is not armed */
    int64_t every_ns;    /* 0: once */
    uint64_t order;      /* of being armed */
    int signal;          /* 0: none */
    pid_t signal_tid;    /* 0: to the process */
    uint64_t signal_value;
};

/* The calling process's; NULL: it has none of that number. */
static struct program_timer *timer_find(const struct program_call *call, enum timer_kind kind, int number) {
    for (struct program_timer *each = call->supervisor->timers; each; each = each->next)
        if (each->process == call->process && each->pid == call->process->pid && each->kind == kind &&
            each->number == number)
            return each;
    return NULL;
}

static struct program_timer *timer_add(const struct program_call *call, enum timer_kind kind, int number) {
    struct program_timer *timer = calloc(1, sizeof *timer);
    if (!timer) abort();
    *timer = (struct program_timer){.next = call->supervisor->timers,
                                    .process = call->process,
                                    .pid = call->process->pid,
                                    .kind = kind,
                                    .number = number,
                                    .duplicate = -1,
                                    .clock = CLOCK_REALTIME,
                                    .deadline_ns = INT64_MAX};
    call->supervisor->timers = timer;
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

static int64_t timer_deadline_ns(const struct supervisor *supervisor, const struct program_timer *timer) {
    if (timer->deadline_ns == INT64_MAX || timer->pid != timer->process->pid) return INT64_MAX;
    return timer->deadline_ns - program_clock_read(&supervisor->clock, timer->clock) + supervisor->clock.mono_ns;
}

/* It expires late, but its next deadline counts from the last one, so that a periodic timer does not drift. */
static int64_t timer_due_ns(const struct supervisor *supervisor, const struct program_timer *timer) {
    int64_t deadline_ns = timer_deadline_ns(supervisor, timer);
    return deadline_ns + program_clock_late_ns(timer->began_ns, deadline_ns);
}

int64_t timers_next_deadline_ns(const struct supervisor *supervisor) {
    int64_t next_ns = INT64_MAX;
    for (const struct program_timer *each = supervisor->timers; each; each = each->next)
        if (timer_due_ns(supervisor, each) < next_ns) next_ns = timer_due_ns(supervisor, each);
    return next_ns;
}

/* The program's own descriptor becomes readable, with the number of expiries that it has not read. On a kernel that
 * does not let the number be set (CONFIG_CHECKPOINT_RESTORE), its timer is set to a nanosecond, which passes at once.
 */
static void expire_descriptor(struct program_timer *timer, int64_t times) {
    static const struct itimerspec AT_ONCE = {.it_value = {.tv_nsec = 1}};
    struct pollfd fd = {.fd = timer->duplicate, .events = POLLIN};
    uint64_t unread = 0;
    program_descriptor_info(getpid(), timer->duplicate, "ticks:", 10, &unread);
    uint64_t ticks = unread + (uint64_t)times;
    if (ioctl(timer->duplicate, TFD_IOC_SET_TICKS, &ticks) == 0) return;
    timerfd_settime(timer->duplicate, 0, &AT_ONCE, NULL);
    poll(&fd, 1, 1000);
}

/* A timer that has been late for several of its intervals expires once for all of them. */
static void timer_expire(struct supervisor *supervisor, struct program_timer *timer) {
    int64_t deadline_ns = timer_deadline_ns(supervisor, timer), times = 1;
    int64_t late_ns = supervisor->clock.mono_ns - deadline_ns;
    uint64_t clock;
    supervisor->late_ns += program_clock_late_ns(timer->began_ns, deadline_ns);
    if (timer->every_ns > 0) times += late_ns / timer->every_ns;
    bool again = timer->every_ns > 0 && timer->deadline_ns < INT64_MAX - times * timer->every_ns;
    timer->deadline_ns = again ? timer->deadline_ns + times * timer->every_ns : INT64_MAX;
    timer->began_ns = supervisor->clock.mono_ns;
    timer->order = ++supervisor->next_order;
    if (timer->kind != TIMER_DESCRIPTOR) {
        if (timer->signal)
            signals_send(supervisor, timer->process, timer->signal_tid, timer->signal, timer->signal_value);
    } else if (program_descriptor_info(timer->pid, timer->number, "clockid:", 10, &clock)) {
        expire_descriptor(timer, times);
    } else {
        timer->deadline_ns = INT64_MAX; /* the program has closed it */
    }
}

bool timers_expire(struct supervisor *supervisor) {
    struct program_timer *first = NULL;
    for (struct program_timer *each = supervisor->timers; each; each = each->next) {
        int64_t due_ns = timer_due_ns(supervisor, each);
        if (due_ns > supervisor->clock.mono_ns) continue;
        int64_t earliest_ns = first ? timer_due_ns(supervisor, first) : INT64_MAX;
        if (due_ns < earliest_ns || (due_ns == earliest_ns && each->order < first->order)) first = each;
    }
    if (!first) return false;
    timer_expire(supervisor, first);
    return true;
}

/* --- setting and reading --- */

/* setitimer's struct itimerval has the same words as struct itimerspec, with us instead of ns. */
static int64_t unit_ns(const struct program_timer *timer) {
    return timer && timer->kind == TIMER_INTERVAL ? CLOCK_NS_PER_US : 1;
}

/* Until its deadline. An armed timer whose deadline is over has a unit left, as in the kernel: 0 would say that it is
 * not armed. */
static int64_t left_ns(const struct supervisor *supervisor, const struct program_timer *timer) {
    int64_t deadline_ns = timer ? timer_deadline_ns(supervisor, timer) : INT64_MAX;
    if (deadline_ns == INT64_MAX) return 0;
    int64_t left_ns = deadline_ns - supervisor->clock.mono_ns;
    return left_ns > unit_ns(timer) ? left_ns : unit_ns(timer);
}

static struct itimerspec setting_of(const struct supervisor *supervisor, const struct program_timer *timer) {
    struct itimerspec setting = {.it_value = clock_timespec(left_ns(supervisor, timer)),
                                 .it_interval = clock_timespec(timer ? timer->every_ns : 0)};
    setting.it_value.tv_nsec /= unit_ns(timer);
    setting.it_interval.tv_nsec /= unit_ns(timer);
    return setting;
}

static int64_t time_ns(const struct program_timer *timer, const struct timespec *time) {
    bool fits = time->tv_sec < INT64_MAX / CLOCK_NS_PER_S / 4;
    return fits ? time->tv_sec * CLOCK_NS_PER_S + time->tv_nsec * unit_ns(timer) : INT64_MAX / 4;
}

static bool is_time(const struct program_timer *timer, const struct timespec *time) {
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < CLOCK_NS_PER_S / unit_ns(timer);
}

static void timer_set(struct supervisor *supervisor, struct program_timer *timer, const struct itimerspec *setting,
                      bool absolute) {
    int64_t value_ns = time_ns(timer, &setting->it_value);
    int64_t now_ns = program_clock_read(&supervisor->clock, timer->clock);
    timer->began_ns = supervisor->clock.mono_ns;
    timer->deadline_ns = value_ns == 0 ? INT64_MAX : absolute ? value_ns : now_ns + value_ns;
    timer->every_ns = time_ns(timer, &setting->it_interval);
    timer->order = ++supervisor->next_order;
}

/* Writes the old setting of the timer where the program wants it, and reads the new one, at the address before that.
 * False: the call was refused. */
static bool setting_exchange(const struct program_call *call, const struct program_timer *timer, int old,
                             struct itimerspec *setting) {
    struct itimerspec before = setting_of(call->supervisor, timer);
    uint64_t new_at = call->arguments[old - 1], old_at = call->arguments[old];
    bool has_new = new_at || call->number != SYS_setitimer;
    *setting = (struct itimerspec){0};
    if (has_new && !call_read(call, new_at, setting, sizeof *setting)) return false;
    if (old_at && !call_write(call, old_at, &before, sizeof before)) return false;
    if (is_time(timer, &setting->it_value) && is_time(timer, &setting->it_interval)) return true;
    supervisor_refuse(call, EINVAL);
    return false;
}

static void answer_setting(const struct program_call *call, const struct program_timer *timer) {
    struct itimerspec setting = setting_of(call->supervisor, timer);
    call_answer_written(call, call->arguments[1], &setting, sizeof setting, 0);
}

/* --- timerfd --- */

void on_timerfd_settime(const struct program_call *call) {
    static const struct itimerspec DISARMED;
    struct itimerspec setting;
    int fd = (int)call->arguments[0];
    uint64_t clock;
    if (!program_descriptor_info(call->process->pid, fd, "clockid:", 10, &clock)) {
        supervisor_pass(call); /* the kernel says what is wrong with it */
        return;
    }
    struct program_timer *timer = timer_find(call, TIMER_DESCRIPTOR, fd);
    if (!timer) timer = timer_add(call, TIMER_DESCRIPTOR, fd);
    if (timer->duplicate >= 0) close(timer->duplicate);
    timer->duplicate = program_duplicate_fd(call->process, fd);
    timer->clock = (clockid_t)clock;
    timerfd_settime(timer->duplicate, 0, &DISARMED, NULL);
    if (!setting_exchange(call, timer, 3, &setting)) return;
    timer_set(call->supervisor, timer, &setting, call->arguments[1] & TFD_TIMER_ABSTIME);
    if (timer_deadline_ns(call->supervisor, timer) <= call->supervisor->clock.mono_ns)
        timer_expire(call->supervisor, timer);
    supervisor_answer(call, 0);
}

void on_timerfd_gettime(const struct program_call *call) {
    answer_setting(call, timer_find(call, TIMER_DESCRIPTOR, (int)call->arguments[0]));
}

/* --- timer_create --- */

void on_timer_create(const struct program_call *call) {
    static int last;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    int id = ++last;
    uint64_t event_at = call->arguments[1];
    if (event_at && !call_read(call, event_at, &event, sizeof event)) return;
    if (!call_write(call, call->arguments[2], &id, sizeof id)) return;
    struct program_timer *timer = timer_add(call, TIMER_POSIX, id);
    timer->clock = (clockid_t)call->arguments[0];
    timer->signal = event.sigev_notify == SIGEV_NONE ? 0 : event.sigev_signo;
    timer->signal_tid = event.sigev_notify == SIGEV_THREAD_ID ? event._sigev_un._tid : 0;
    timer->signal_value = event_at ? (uint64_t)(uintptr_t)event.sigev_value.sival_ptr : (uint64_t)id;
    supervisor_answer(call, 0);
}

/* The other calls about such a timer, by its id. */
void on_posix_timer(const struct program_call *call) {
    struct program_timer *timer = timer_find(call, TIMER_POSIX, (int)call->arguments[0]);
    struct itimerspec setting;
    if (!timer) {
        supervisor_refuse(call, EINVAL);
        return;
    }
    switch (call->number) {
    case SYS_timer_gettime: answer_setting(call, timer); return;
    case SYS_timer_settime:
        if (!setting_exchange(call, timer, 3, &setting)) return;
        timer_set(call->supervisor, timer, &setting, call->arguments[1] & TIMER_ABSTIME);
        break;
    case SYS_timer_delete: timer_remove(call->supervisor, timer); break;
    default: break; /* timer_getoverrun: none */
    }
    supervisor_answer(call, 0);
}

/* --- setitimer, alarm --- */

static struct program_timer *interval_timer(const struct program_call *call) {
    struct program_timer *timer = timer_find(call, TIMER_INTERVAL, ITIMER_REAL);
    if (timer) return timer;
    timer = timer_add(call, TIMER_INTERVAL, ITIMER_REAL);
    timer->clock = CLOCK_MONOTONIC;
    timer->signal = SIGALRM;
    return timer;
}

/* The timers of processor time never expire: a program in virtual time needs none. */
void on_setitimer(const struct program_call *call) {
    struct program_timer *timer = interval_timer(call);
    struct itimerspec setting;
    if (!setting_exchange(call, timer, 2, &setting)) return;
    if (call->arguments[0] == ITIMER_REAL) timer_set(call->supervisor, timer, &setting, false);
    supervisor_answer(call, 0);
}

void on_getitimer(const struct program_call *call) {
    answer_setting(call, interval_timer(call));
}

#ifdef SYS_alarm
void on_alarm(const struct program_call *call) {
    struct program_timer *timer = interval_timer(call);
    struct itimerspec setting = {.it_value = {.tv_sec = (unsigned)call->arguments[0]}};
    int64_t before_ns = left_ns(call->supervisor, timer);
    timer_set(call->supervisor, timer, &setting, false);
    supervisor_answer(call, (before_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S);
}
#endif
