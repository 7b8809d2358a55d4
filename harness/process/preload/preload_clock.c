/* Makes a mapped page (clock_page.h) the wall clock of the process; with CLOCK_ALL_VARIABLE, also every clock that
 * shows how much time has passed. Reading it costs a few loads, where libfaketime reads a file at every call. All other
 * clocks are the machine's. Without a usable page the process ends at once: a server that read the machine's clock
 * would be taken for one whose clock the trial sets. Decision 0012. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "harness/process/preload/clock_page.h"
#include "harness/process/preload/preload.h"
#include "harness/process/zygote_service.h"

enum { NS_PER_S = 1000000000, NS_PER_US = 1000, PPM = 1000000 };
/* Two clocks are read together if no more than this lies between them: at ten times the speed, half of it is what a
 * reading can be wrong by. On a processor that is always interrupted, the last try counts. */
enum { TOGETHER_NS = 10000, TOGETHER_TRIES = 1000 };

typedef int clock_reader(clockid_t, struct timespec *);
typedef int waiter(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int clock_waiter(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

static int preload_read_by_syscall(clockid_t clock, struct timespec *now) {
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* malloc asks for the time before the page is mapped, and dlsym may call malloc. */
static clock_reader *real_gettime = preload_read_by_syscall;
static waiter *real_timedwait;
static clock_waiter *real_clockwait;
static const struct clock_page *page;
static bool has_all_clocks;

void preload_map_clock(void) {
    const char *path = getenv(CLOCK_PAGE_VARIABLE);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        fprintf(stderr, "%s: %s\n", CLOCK_PAGE_VARIABLE, path ? path : "not set");
        _exit(127);
    }
    close(fd);
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    if (symbol) __extension__ real_gettime = (clock_reader *)symbol;
    has_all_clocks = getenv(CLOCK_ALL_VARIABLE) != NULL;
    page = map;
}

__attribute__((constructor)) static void clock_begin(void) {
    __extension__ real_timedwait = (waiter *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    __extension__ real_clockwait = (clock_waiter *)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    if (!getenv(ZYGOTE_VARIABLE)) preload_map_clock();
}

static bool is_on_page(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: return page != NULL;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME: return page && has_all_clocks;
    default: return false;
    }
}

static int64_t machine_ns(clockid_t clock) {
    struct timespec now;
    real_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* What is gained is rounded as the scheduler rounds it (shared_page_drift_ns). */
static int64_t shifted_ns(const struct clock_shift *shift) {
    int64_t drift_ppm = atomic_load_explicit(&shift->drift_ppm, memory_order_acquire);
    int64_t wall_ns = machine_ns(CLOCK_REALTIME), gained_ns = 0;
    if (drift_ppm != 0) {
        int64_t before_ns, mono_ns = machine_ns(CLOCK_MONOTONIC);
        int tries = TOGETHER_TRIES;
        do {
            before_ns = mono_ns;
            wall_ns = machine_ns(CLOCK_REALTIME);
            mono_ns = machine_ns(CLOCK_MONOTONIC);
        } while (mono_ns - before_ns > TOGETHER_NS && --tries > 0);
        int64_t lasted_ns = mono_ns - atomic_load_explicit(&shift->since_ns, memory_order_acquire);
        gained_ns = lasted_ns / PPM * drift_ppm + lasted_ns % PPM * drift_ppm / PPM;
    }
    return wall_ns + gained_ns + atomic_load_explicit(&shift->offset_ns, memory_order_acquire);
}

static int64_t page_ns(void) {
    for (;;) {
        uint64_t version = atomic_load_explicit(&page->version, memory_order_acquire);
        if (version == 0) return atomic_load_explicit(&page->wall_ns, memory_order_acquire);
        int64_t wall_ns = shifted_ns(&page->shifts[version % 2]);
        if (atomic_load_explicit(&page->version, memory_order_acquire) == version) return wall_ns;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!is_on_page(clock)) return real_gettime(clock, now);
    int64_t wall_ns = page_ns();
    *now = (struct timespec){.tv_sec = wall_ns / NS_PER_S, .tv_nsec = wall_ns % NS_PER_S};
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone; /* obsolete */
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){.tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / NS_PER_US};
    return failed;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}

static int64_t span_ns(const struct timespec *from, const struct timespec *to) {
    return ((int64_t)to->tv_sec - from->tv_sec) * NS_PER_S + to->tv_nsec - from->tv_nsec;
}

/* The caller waits until the page shows some time, but nothing wakes it when the page does. So it waits for as long as
 * that would take by the machine's clock, and then looks at the page again. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    struct timespec shown, now;
    if (!is_on_page(CLOCK_MONOTONIC)) return real_timedwait(condition, mutex, until);
    clock_gettime(CLOCK_MONOTONIC, &shown);
    real_gettime(CLOCK_MONOTONIC, &now);
    int64_t end_ns = now.tv_nsec + span_ns(&shown, until); /* after now.tv_sec */
    if (end_ns < 0) end_ns = 0;
    struct timespec end = {.tv_sec = now.tv_sec + end_ns / NS_PER_S, .tv_nsec = end_ns % NS_PER_S};
    return real_clockwait(condition, mutex, CLOCK_MONOTONIC, &end);
}
