#include "harness/supervisor/signal_descriptors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_kind(const struct program_process *process, int fd, const char *kind) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process->pid, fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strcmp(target, kind) == 0;
}

static FILE *open_information(const struct program_process *process, int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", process->pid, fd);
    return fopen(path, "re");
}

uint64_t signal_descriptor_signals(const struct program_process *process, int fd) {
    char line[256];
    uint64_t signals = 0;
    if (!is_kind(process, fd, "anon_inode:[signalfd]")) return 0;
    FILE *information = open_information(process, fd);
    while (information && fgets(line, sizeof line, information) && sscanf(line, "sigmask: %" SCNx64, &signals) != 1)
        continue;
    if (information) fclose(information);
    return signals;
}

bool signal_descriptor_targets(const struct program_process *process, int fd, struct epoll_targets *targets) {
    char line[256];
    int target;
    unsigned events;
    *targets = (struct epoll_targets){.fits = true};
    if (!is_kind(process, fd, "anon_inode:[eventpoll]")) return false;
    FILE *information = open_information(process, fd);
    while (information && fgets(line, sizeof line, information)) {
        if (sscanf(line, "tfd: %d events: %x", &target, &events) != 2) continue;
        uint64_t signals = signal_descriptor_signals(process, target);
        targets->signals |= signals;
        if (signals) continue;
        targets->fits = targets->count < EPOLL_TARGETS;
        if (!targets->fits) break;
        targets->fds[targets->count++] = (struct pollfd){.fd = target, .events = (short)(events & 0x7fff)};
    }
    if (information) fclose(information);
    return targets->signals != 0;
}

bool signal_descriptor_is_readable(pid_t tid, uint64_t signals) {
    return (program_status(tid, "SigPnd:", 16) | program_status(tid, "ShdPnd:", 16)) & signals;
}
