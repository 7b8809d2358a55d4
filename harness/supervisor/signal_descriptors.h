/* Descriptors of signals (signalfd), as PostgreSQL waits for them. Whether one is readable depends on who asks, so the
 * supervisor cannot look at a duplicate: it looks at the pending signals of the thread, and the kernel then carries out
 * the call. A duplicate of an epoll instance that has one must not be polled either: the kernel would take the
 * descriptor from the instance's list of ready ones, because no such signal is pending for the supervisor.
 * Decision 0120. */
#pragma once

#include <poll.h>

#include "harness/supervisor/program.h"

enum { EPOLL_TARGETS = 64 };

/* What an epoll instance waits for: other descriptors of the program, with their events, and signals. */
struct epoll_targets {
    struct pollfd fds[EPOLL_TARGETS];
    int count;
    uint64_t signals; /* bit n - 1: signal n */
    bool fits;        /* false: it has more descriptors */
};

/* The signals that make this descriptor readable; 0: it is not a signal descriptor. */
uint64_t signal_descriptor_signals(const struct program_process *process, int fd);
/* False: the descriptor is no epoll instance, or one without descriptors of signals. */
bool signal_descriptor_targets(const struct program_process *process, int fd, struct epoll_targets *targets);
