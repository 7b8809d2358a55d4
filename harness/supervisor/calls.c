#include "harness/supervisor/calls.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "harness/scheduler/clock.h"
#include "harness/supervisor/call_names.h"

const struct supervised_call *const CALL_GROUPS[] = {CALLS_CLOCK, CALLS_FUTEX,  CALLS_WAIT,    CALLS_TIMER,
                                                     CALLS_LIFE,  CALLS_CHANCE, CALLS_CONNECT, NULL};

const struct supervised_call *call_find(int number) {
    for (const struct supervised_call *const *group = CALL_GROUPS; *group; group++)
        for (const struct supervised_call *each = *group; each->handle; each++)
            if (each->number == number) return each;
    return NULL;
}

void call_refuse_unknown(struct supervisor *supervisor, struct program_process *process,
                         const struct seccomp_notif *call) {
    (void)process;
    supervisor_refuse(supervisor, call, ENOSYS);
}

void call_give_up(struct supervisor *supervisor, struct program_process *process, const struct seccomp_notif *call) {
    (void)process;
    supervisor_give_up(supervisor, "the program makes a call that cannot be followed: %s (number %d)",
                       call_name(call->data.nr), call->data.nr);
}

bool call_read(struct supervisor *supervisor, const struct program_process *process, const struct seccomp_notif *call,
               uint64_t address, void *bytes, size_t size) {
    if (program_read(process, address, bytes, size)) return true;
    supervisor_refuse(supervisor, call, EFAULT);
    return false;
}

void call_answer_written(struct supervisor *supervisor, const struct program_process *process,
                         const struct seccomp_notif *call, uint64_t address, const void *bytes, size_t size,
                         int64_t value) {
    if (program_write(process, address, bytes, size)) supervisor_answer(supervisor, call, value);
    else supervisor_refuse(supervisor, call, EFAULT);
}

bool call_read_time(struct supervisor *supervisor, const struct program_process *process,
                    const struct seccomp_notif *call, uint64_t address, int64_t *time_ns) {
    struct timespec time;
    if (!call_read(supervisor, process, call, address, &time, sizeof time)) return false;
    if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= CLOCK_NS_PER_S) {
        supervisor_refuse(supervisor, call, EINVAL);
        return false;
    }
    bool fits = time.tv_sec < INT64_MAX / CLOCK_NS_PER_S - 1;
    *time_ns = fits ? time.tv_sec * CLOCK_NS_PER_S + time.tv_nsec : INT64_MAX;
    return true;
}

bool call_read_limit(struct supervisor *supervisor, const struct program_process *process,
                     const struct seccomp_notif *call, int argument, int64_t *limit_ns) {
    uint64_t address = call_argument(call, argument);
    *limit_ns = INT64_MAX;
    return !address || call_read_time(supervisor, process, call, address, limit_ns);
}

int64_t call_deadline_ns(const struct supervisor *supervisor, int64_t limit_ns) {
    int64_t now_ns = supervisor->clock.mono_ns;
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}
