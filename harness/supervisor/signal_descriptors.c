#include "harness/supervisor/signal_descriptors.h"

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

uint64_t signal_descriptor_signals(const struct program_process *process, int fd) {
    uint64_t signals = 0;
    if (is_kind(process, fd, "anon_inode:[signalfd]"))
        program_descriptor_info(process->pid, fd, "sigmask:", 16, &signals);
    return signals;
}

bool signal_descriptor_targets(const struct program_process *process, int fd, struct epoll_targets *targets) {
    char path[64], line[256];
    int target;
    unsigned events;
    *targets = (struct epoll_targets){.fits = true};
    if (!is_kind(process, fd, "anon_inode:[eventpoll]")) return false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", process->pid, fd);
    FILE *information = fopen(path, "re");
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
