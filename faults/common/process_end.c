#include "faults/common/process_end.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/common/real_time.h"

enum { END_LIMIT_MS = 60000 };

bool process_end(int pid, struct fault_report *report) {
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0 || kill(pid, SIGKILL) < 0) {
        fault_fail(report, "process %d: %s", pid, pid > 0 ? strerror(errno) : "no such process");
        if (fd >= 0) close(fd);
        return false;
    }
    bool ended = real_time_await_readable(fd, END_LIMIT_MS);
    close(fd);
    return ended || fault_fail(report, "process %d does not end", pid);
}
