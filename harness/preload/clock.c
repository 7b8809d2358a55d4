/* The wall clock of the process is a mapped page (clock_page.h), which costs a load where libfaketime reads a file at
 * every call. All other clocks are the machine's. Without a usable page the process ends at once: a server by the
 * machine's clock would be taken for one whose clock stands. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "harness/preload/clock_page.h"
#include "harness/preload/preload.h"

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

typedef int clock_reader(clockid_t, struct timespec *);

static int read_by_syscall(clockid_t clock, struct timespec *now) {
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* malloc asks for the time before the page is there, and looking a symbol up may call malloc. */
static clock_reader *others = read_by_syscall;
static const struct clock_page *page;

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
    if (symbol) __extension__ others = (clock_reader *)symbol;
    page = map;
}

__attribute__((constructor)) static void clock_begin(void) {
    if (!getenv(ZYGOTE_VARIABLE)) preload_map_clock();
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!page || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return others(clock, now);
    int64_t wall_ns = atomic_load_explicit(&page->wall_ns, memory_order_acquire);
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
