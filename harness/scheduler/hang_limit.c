#include "harness/scheduler/hang_limit.h"

#include <time.h>

#include "harness/scheduler/clock.h"

enum { LOOK_NS = HANG_LIMIT_LOOK_MS * CLOCK_NS_PER_MS };

int64_t hang_limit_now_ns(void) {
    static _Thread_local int64_t looked_ns, counted_ns;
    int64_t now_ns = clock_real_mono_ns(), passed_ns = now_ns - looked_ns;
    looked_ns = now_ns;
    counted_ns += passed_ns < LOOK_NS ? passed_ns : LOOK_NS;
    return counted_ns;
}

int64_t hang_limit_deadline_ns(int64_t limit_ms) {
    return hang_limit_now_ns() + limit_ms * CLOCK_NS_PER_MS;
}

bool hang_limit_is_over(int64_t until_ns) {
    return hang_limit_now_ns() >= until_ns;
}

bool hang_limit_pause(int64_t until_ns, int64_t pause_us) {
    int64_t left_ns = until_ns - hang_limit_now_ns(), pause_ns = pause_us * 1000;
    if (left_ns <= 0) return false;
    if (pause_ns > left_ns) pause_ns = left_ns;
    if (pause_ns > LOOK_NS) pause_ns = LOOK_NS;
    nanosleep(&(struct timespec){.tv_sec = pause_ns / CLOCK_NS_PER_S, .tv_nsec = pause_ns % CLOCK_NS_PER_S}, NULL);
    return true;
}

/* After the deadline it looks once more, without waiting. */
bool hang_limit_poll(struct pollfd *fds, nfds_t count, int64_t until_ns) {
    for (;;) {
        int64_t left_ns = until_ns - hang_limit_now_ns(), left_ms = left_ns > 0 ? clock_ms_rounded_up(left_ns) : 0;
        if (poll(fds, count, left_ms < HANG_LIMIT_LOOK_MS ? (int)left_ms : HANG_LIMIT_LOOK_MS) > 0) return true;
        if (left_ms == 0) return false;
    }
}

bool hang_limit_await_readable(int fd, int64_t until_ns) {
    return hang_limit_poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, until_ns);
}
