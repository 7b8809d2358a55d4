/* liblockstorm-near.so, for PostgreSQL. Its processes stay in the server's session (spawn.h says why): it gives each of
 * its processes a session, to signal it with its children; for that, a process group does as well. And their interval
 * timers go by the trial's clock, not by the machine's: without this a lock_timeout of 1 s ended a wait in which no
 * time had passed on a machine that stood still (issue #55, 20). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/process/preload/clock_page.h"

#define CLOCK_VARIABLE "FAKETIME_TIMESTAMP_FILE"

typedef int (*setitimer_function)(__itimer_which_t, const struct itimerval *, struct itimerval *);

pid_t setsid(void) {
    return setpgid(0, 0) == 0 ? getpid() : -1;
}

/* NULL: the clock is the machine's. */
static struct clock_page *map_page(void) {
    const char *path = getenv(CLOCK_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return NULL;
    void *page = mmap(NULL, sizeof(struct clock_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

/* Also in a handler of the signal itself, in which PostgreSQL sets its next timer. */
static bool is_place_free(int32_t owner, bool of_the_dead) {
    if (owner == 0) return true;
    int number = errno;
    bool gone = of_the_dead && kill(owner, 0) < 0 && errno == ESRCH;
    errno = number;
    return gone;
}

/* NULL: there is no free place. */
static struct clock_alarm *take_place(struct clock_page *page, bool of_the_dead) {
    for (int each = 0; each < CLOCK_PAGE_ALARMS; each++) {
        int32_t owner = atomic_load(&page->alarms[each].pid);
        if (!is_place_free(owner, of_the_dead)) continue;
        if (atomic_compare_exchange_strong(&page->alarms[each].pid, &owner, getpid())) return &page->alarms[each];
    }
    return of_the_dead ? NULL : take_place(page, true);
}

/* That of this process: a child has what its parent's variables say. */
static struct clock_alarm *own_alarm(void) {
    static bool looked;
    static struct clock_page *page;
    static struct clock_alarm *own;
    if (!looked) page = map_page();
    looked = true;
    if (page && !(own && atomic_load(&own->pid) == getpid())) own = take_place(page, false);
    return own;
}

/* Of the timers that PostgreSQL sets none repeats, and it never asks for the one before. */
int setitimer(__itimer_which_t which, const struct itimerval *value, struct itimerval *before) {
    static setitimer_function real;
    struct clock_alarm *own = which == ITIMER_REAL && value && !before ? own_alarm() : NULL;
    if (own) {
        int64_t after_ns = value->it_value.tv_sec * INT64_C(1000000000) + value->it_value.tv_usec * INT64_C(1000);
        atomic_store(&own->after_ns, after_ns > 0 ? after_ns : CLOCK_ALARM_OFF);
        return 0;
    }
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "setitimer");
    return real(which, value, before);
}
