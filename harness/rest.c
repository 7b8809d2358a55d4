#include "harness/rest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"

enum { SLEEPERS = 256, STATUS_ROOM = 4096, LOOK_PAUSE_NS = 20000, ROUND_PAUSE_NS = 200000 };

/* Who was seen, and how often each had gone to sleep by then. */
struct look {
    int count;
    struct {
        int id;
        uint64_t switches;
    } seen[SLEEPERS];
};

static bool file_read(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

static uint64_t field_number(const char *text, const char *field) {
    const char *at = strstr(text, field);
    return at ? strtoull(at + strlen(field), NULL, 10) : 0;
}

/* Notes what /proc says of a process or a thread; false when it runs, or is about to. One that has ended does not,
 * however long its parent, which may have been stopped, takes to notice. */
static bool look_note(int id, const char *text, struct look *look) {
    bool still = strstr(text, "\nState:\tS") || strstr(text, "\nState:\tZ");
    if (look->count == SLEEPERS || !still) return false;
    look->seen[look->count].id = id;
    look->seen[look->count++].switches =
        field_number(text, "\nvoluntary_ctxt_switches:") + field_number(text, "\nnonvoluntary_ctxt_switches:");
    return true;
}

static bool look_at(int pid, struct look *look) {
    char path[64], text[STATUS_ROOM];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    return file_read(path, text, sizeof text) && look_note(pid, text, look);
}

static bool look_at_family(int pid, struct look *look) {
    char path[64], children[STATUS_ROOM];
    if (!look_at(pid, look)) return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    if (!file_read(path, children, sizeof children)) return false;
    for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));)
        if (!look_at(atoi(word), look)) return false;
    return true;
}

static bool look_at_all(const int *pids, int count, struct look *look) {
    for (int each = 0; each < count; each++)
        if (!look_at_family(pids[each], look)) return false;
    return true;
}

/* Whether it sleeps for a moment only, to look again for itself: whoever finds a spin lock taken does, in PostgreSQL as
 * in Java. Who may not see that takes nobody's sleep for such. */
static bool naps(int id) {
    char path[64], text[STATUS_ROOM];
    long call;
    unsigned long first, second;
    snprintf(path, sizeof path, "/proc/%d/syscall", id);
    if (!file_read(path, text, sizeof text) || sscanf(text, "%ld 0x%lx 0x%lx", &call, &first, &second) != 3)
        return false;
    switch (call) {
    case SYS_clock_nanosleep: return true;
    case SYS_pselect6: return first == 0; /* of no descriptors */
    case SYS_ppoll: return second == 0;
#ifdef SYS_nanosleep
    case SYS_nanosleep: return true;
#endif
#ifdef SYS_select
    case SYS_select: return first == 0;
#endif
#ifdef SYS_poll
    case SYS_poll: return second == 0;
#endif
    default: return false;
    }
}

static bool nobody_naps(const struct look *look) {
    for (int each = 0; each < look->count; each++)
        if (naps(look->seen[each].id)) return false;
    return true;
}

static bool is_same(const struct look *one, const struct look *two) {
    return memcmp(one, two, sizeof *one) == 0;
}

static void wait_a_little(int64_t pause_ns) {
    nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL); /* it may need this core to come to rest */
}

bool families_await_rest(const int *pids, int count, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    do {
        struct look before = {0}, after = {0};
        if (look_at_all(pids, count, &before) && nobody_naps(&before) && look_at_all(pids, count, &after) &&
            is_same(&before, &after))
            return true;
        wait_a_little(LOOK_PAUSE_NS);
    } while (clock_real_mono_ns() < until_ns);
    return false;
}

bool processes_await_rest(int pid, int64_t limit_ms) {
    return families_await_rest(&pid, 1, limit_ms);
}

/* --- threads --- */

/* Their files stay open: to open one costs as much as to read it, and there are many. */
struct thread_watch {
    DIR *list;
    int timer;
    int count;
    struct {
        int id, fd;
    } threads[SLEEPERS];
};

struct thread_watch *thread_watch_open(int pid, int timer) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *list = opendir(path);
    if (!list) return NULL;
    struct thread_watch *watch = calloc(1, sizeof *watch);
    if (!watch) abort();
    watch->list = list;
    watch->timer = timer;
    return watch;
}

static void thread_watch_forget(struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) close(watch->threads[each].fd);
    watch->count = 0;
}

void thread_watch_close(struct thread_watch *watch) {
    if (!watch) return;
    thread_watch_forget(watch);
    closedir(watch->list);
    free(watch);
}

/* The n-th that counts; the list keeps its order. False when it cannot be read: it has just ended. */
static bool thread_read(struct thread_watch *watch, int nth, int id, char *text, size_t size) {
    if (nth < watch->count && watch->threads[nth].id != id) thread_watch_forget(watch);
    if (nth > watch->count || nth == SLEEPERS) return false;
    if (nth == watch->count) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/status", id);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return false;
        watch->threads[watch->count].id = id;
        watch->threads[watch->count++].fd = fd;
    }
    ssize_t got = pread(watch->threads[nth].fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool look_at_threads(struct thread_watch *watch, struct look *look) {
    char text[STATUS_ROOM];
    rewinddir(watch->list);
    for (struct dirent *thread; (thread = readdir(watch->list));) {
        int id = atoi(thread->d_name);
        if (id == 0 || id == watch->timer) continue;
        if (!thread_read(watch, look->count, id, text, sizeof text) || !look_note(id, text, look)) return false;
    }
    return look->count > 0;
}

bool threads_await_rest(struct thread_watch *watch, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    do {
        struct look before = {0}, after = {0};
        if (look_at_threads(watch, &before) && nobody_naps(&before) && look_at_threads(watch, &after) &&
            is_same(&before, &after))
            return true;
        wait_a_little(LOOK_PAUSE_NS);
    } while (clock_real_mono_ns() < until_ns);
    return false;
}

static bool sleeps_read(int thread, uint64_t *sleeps) {
    char path[64], text[STATUS_ROOM];
    snprintf(path, sizeof path, "/proc/%d/status", thread);
    if (!file_read(path, text, sizeof text)) return false;
    *sleeps = field_number(text, "\nvoluntary_ctxt_switches:");
    return true;
}

/* Whether it sleeps until some time, and not until somebody else is done with a lock. Who may not see that takes all
 * sleeps for such. */
static bool is_timed_sleep(int thread) {
    char path[64], text[STATUS_ROOM];
    long call;
    unsigned long timeout;
    snprintf(path, sizeof path, "/proc/%d/syscall", thread);
    if (!file_read(path, text, sizeof text)) return true;
    bool sleeps = sscanf(text, "%ld 0x%*x 0x%*x 0x%*x 0x%lx", &call, &timeout) == 2;
    return sleeps && (call != SYS_futex || timeout != 0);
}

/* It may have looked just before we came, and sleep since then. So what counts is that it sleeps for a second time: and
 * it sleeps for a time only when it has found nothing more to do, however much it had to catch up with. */
bool thread_await_round(int thread, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    uint64_t first = 0, before, after;
    bool has_first = false;
    while (sleeps_read(thread, &before)) {
        bool seen = is_timed_sleep(thread) && sleeps_read(thread, &after) && after == before;
        if (seen && has_first && before > first) return true;
        if (seen && !has_first) first = before, has_first = true;
        if (clock_real_mono_ns() >= until_ns) return false;
        wait_a_little(ROUND_PAUSE_NS);
    }
    return false;
}

/* --- packets --- */

/* How many wait at all processors together; 0 where the kernel does not say (before 5.12). */
static uint64_t packets_waiting(void) {
    enum { BACKLOG = 11, FIGURES_ROOM = 65536 }; /* the twelfth number of each processor's line */
    static char text[FIGURES_ROOM];
    uint64_t waiting = 0;
    if (!file_read("/proc/net/softnet_stat", text, sizeof text)) return 0;
    for (char *lines = text, *line; (line = strtok_r(lines, "\n", &lines));) {
        char *number = strtok_r(line, " ", &line);
        for (int each = 0; number && each < BACKLOG; each++) number = strtok_r(line, " ", &line);
        if (number) waiting += strtoull(number, NULL, 16);
    }
    return waiting;
}

bool packets_await_rest(int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    while (packets_waiting() > 0) {
        if (clock_real_mono_ns() >= until_ns) return false;
        wait_a_little(LOOK_PAUSE_NS);
    }
    return true;
}
