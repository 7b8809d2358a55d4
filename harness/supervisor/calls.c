#include "harness/supervisor/calls.h"

#include <errno.h>

#include "harness/scheduler/clock.h"

void call_refuse_unknown(const struct program_call *call) {
    supervisor_refuse(call, ENOSYS);
}

void call_give_up(const struct program_call *call) {
    supervisor_give_up(call->supervisor, "the program makes a call that cannot be followed: %s (number %d)",
                       call_find(call->number)->name, call->number);
}

bool call_read(const struct program_call *call, uint64_t address, void *bytes, size_t size) {
    if (program_read(call->process, address, bytes, size)) return true;
    supervisor_refuse(call, EFAULT);
    return false;
}

bool call_write(const struct program_call *call, uint64_t address, const void *bytes, size_t size) {
    if (program_write(call->process, address, bytes, size)) return true;
    supervisor_refuse(call, EFAULT);
    return false;
}

void call_answer_written(const struct program_call *call, uint64_t address, const void *bytes, size_t size,
                         int64_t value) {
    if (call_write(call, address, bytes, size)) supervisor_answer(call, value);
}

bool call_read_time(const struct program_call *call, uint64_t address, int64_t *time_ns) {
    struct timespec time;
    if (!call_read(call, address, &time, sizeof time)) return false;
    if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= CLOCK_NS_PER_S) {
        supervisor_refuse(call, EINVAL);
        return false;
    }
    bool fits = time.tv_sec < INT64_MAX / CLOCK_NS_PER_S - 1;
    *time_ns = fits ? time.tv_sec * CLOCK_NS_PER_S + time.tv_nsec : INT64_MAX;
    return true;
}

bool call_read_limit(const struct program_call *call, int argument, int64_t *limit_ns) {
    uint64_t address = call->arguments[argument];
    *limit_ns = INT64_MAX;
    return !address || call_read_time(call, address, limit_ns);
}

int64_t call_deadline_ns(const struct program_call *call, int64_t limit_ns) {
    int64_t now_ns = call->supervisor->clock.mono_ns;
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}
