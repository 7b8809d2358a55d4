#include "harness/scheduler/clock.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int clock_reader(clockid_t, struct timespec *);

static int clock_read_by_syscall(clockid_t clock, struct timespec *now) {
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static clock_reader *reader = clock_read_by_syscall;

/* Runs before main, so that the pointer is set before there is a second thread. */
__attribute__((constructor)) static void find_vdso(void) {
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
    if (symbol) __extension__ reader = (clock_reader *)symbol;
}

static int64_t read_ns(clockid_t clock) {
    struct timespec now;
    reader(clock, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_real_mono_ns(void) {
    return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_real_wall_ns(void) {
    return read_ns(CLOCK_REALTIME);
}
