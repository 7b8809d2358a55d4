#include "faults/common/real_time.h"

#include <time.h>

#include "harness/scheduler/hang_limit.h"

enum { US_PER_S = 1000000, US_PER_MS = 1000, NS_PER_US = 1000, LONGEST_US = HANG_LIMIT_LOOK_MS * US_PER_MS };

static int64_t now_us(void) {
    return hang_limit_now_ns() / NS_PER_US;
}

int64_t real_time_deadline_ms(int64_t limit_ms) {
    return now_us() / US_PER_MS + limit_ms;
}

bool real_time_pause(int64_t until_ms, int64_t pause_us) {
    int64_t left_us = until_ms * US_PER_MS - now_us();
    if (left_us <= 0) return false;
    if (pause_us > left_us) pause_us = left_us;
    if (pause_us > LONGEST_US) pause_us = LONGEST_US;
    nanosleep(&(struct timespec){.tv_sec = pause_us / US_PER_S, .tv_nsec = pause_us % US_PER_S * NS_PER_US}, NULL);
    return true;
}

bool real_time_await_readable(int fd, int64_t limit_ms) {
    return hang_limit_await_readable(fd, hang_limit_deadline_ns(limit_ms));
}
