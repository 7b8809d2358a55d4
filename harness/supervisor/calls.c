#include "harness/supervisor/calls.h"

#include <errno.h>
#include <sys/syscall.h>

#include "harness/scheduler/clock.h"

const struct supervised_call *const CALL_GROUPS[] = {CALLS_CLOCK, CALLS_FUTEX,  CALLS_WAIT,    CALLS_TIMER,
                                                     CALLS_LIFE,  CALLS_CHANCE, CALLS_CONNECT, NULL};

const struct supervised_call *call_find(int number) {
    for (const struct supervised_call *const *group = CALL_GROUPS; *group; group++)
        for (const struct supervised_call *each = *group; each->handle; each++)
            if (each->number == number) return each;
    return NULL;
}

void call_refuse_unknown(const struct program_call *call) {
    supervisor_refuse(call, ENOSYS);
}

void call_give_up(const struct program_call *call) {
    supervisor_give_up(call->supervisor, "the program makes a call that cannot be followed: %s (number %d)",
                       call_name(call->number), call->number);
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

static const struct {
    int number;
    const char *name;
} NAMES[] = {
    {SYS_connect, "connect"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_fallocate, "fallocate"},
    {SYS_fcntl, "fcntl"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fsync, "fsync"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_ioctl, "ioctl"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
#ifdef SYS_open
    {SYS_open, "open"},
#endif
    {SYS_openat, "openat"},
    {SYS_openat2, "openat2"},
    {SYS_ppoll, "ppoll"},
    {SYS_pread64, "pread64"},
    {SYS_preadv, "preadv"},
    {SYS_preadv2, "preadv2"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_pwritev, "pwritev"},
    {SYS_pwritev2, "pwritev2"},
    {SYS_read, "read"},
    {SYS_readv, "readv"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_sendfile, "sendfile"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendto, "sendto"},
    {SYS_signalfd4, "signalfd4"},
    {SYS_splice, "splice"},
    {SYS_sync, "sync"},
    {SYS_tee, "tee"},
    {SYS_vmsplice, "vmsplice"},
    {SYS_write, "write"},
    {SYS_writev, "writev"},
};

const char *call_name(int number) {
    for (size_t each = 0; each < sizeof NAMES / sizeof NAMES[0]; each++)
        if (NAMES[each].number == number) return NAMES[each].name;
    return "another call";
}
