/* Descriptors that wake the process that polls them: eventfds, and the descriptor that a signal handler writes to. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

static inline void wakeup_send(int fd) {
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

/* Reads until the descriptor is not readable any more. It may be a blocking one. */
static inline void wakeup_drain(int fd) {
    char bytes[64];
    struct pollfd filled = {.fd = fd, .events = POLLIN};
    while (poll(&filled, 1, 0) > 0 && read(fd, bytes, sizeof bytes) > 0) continue;
}
