/* A program that keeps many connections. */
#pragma once

#include <sys/resource.h>

/* Lets this process have as many descriptors as the machine allows it (ulimit -Hn). */
static inline void descriptor_limit_raise(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}
