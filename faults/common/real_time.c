#include "faults/common/real_time.h"

#include <time.h>

void real_time_sleep_us(long duration_us) {
    nanosleep(&(struct timespec){.tv_sec = duration_us / 1000000, .tv_nsec = duration_us % 1000000 * 1000}, NULL);
}

int64_t real_time_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}
