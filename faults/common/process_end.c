#include "faults/common/process_end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { END_LIMIT_MS = 10000 };

bool process_end(int pid, struct fault_report *report) {
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0 || kill(pid, SIGKILL) < 0) {
        fault_fail(report, "process %d: %s", pid, pid > 0 ? strerror(errno) : "there is none");
        if (fd >= 0) close(fd);
        return false;
    }
    int ended;
    while ((ended = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, END_LIMIT_MS)) < 0 && errno == EINTR)
        continue;
    close(fd);
    return ended > 0 || fault_fail(report, "process %d does not end", pid);
}
