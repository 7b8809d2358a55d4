#include "harness/supervisor/call_names.h"

#include <stddef.h>
#include <sys/syscall.h>

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
