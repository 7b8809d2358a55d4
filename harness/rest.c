#include "harness/rest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/clock.h"

enum { SLEEPERS = 256, STATUS_ROOM = 4096, LINE_ROOM = 1024, LOOK_PAUSE_NS = 20000, ROUND_PAUSE_NS = 200000 };

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

static uint64_t switches_in(const char *status) {
    return field_number(status, "\nvoluntary_ctxt_switches:") + field_number(status, "\nnonvoluntary_ctxt_switches:");
}

/* Notes what /proc says of a process; false when it runs, or is about to. One that has ended does not,
 * however long its parent, which may have been stopped, takes to notice. */
static bool look_note(int id, const char *text, struct look *look) {
    bool still = strstr(text, "\nState:\tS") || strstr(text, "\nState:\tZ");
    if (look->count == SLEEPERS || !still) return false;
    look->seen[look->count].id = id;
    look->seen[look->count++].switches = switches_in(text);
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

/* Whether a line of /proc/ID/syscall shows somebody who sleeps for a moment only, to look again for itself: whoever
 * finds a spin lock taken does, in PostgreSQL as in Java. */
static bool is_nap(const char *line) {
    long call;
    unsigned long first, second;
    if (sscanf(line, "%ld 0x%lx 0x%lx", &call, &first, &second) != 3) return false;
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

/* Who may not see that takes nobody's sleep for such. */
static bool naps(int id) {
    char path[64], line[LINE_ROOM];
    snprintf(path, sizeof path, "/proc/%d/syscall", id);
    return file_read(path, line, sizeof line) && is_nap(line);
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

/* Their files stay open: to open one costs as much as to read it, and there are many. Whoever was seen at rest is so
 * until it is given a processor again, which the kernel counts. */
struct thread {
    int id;
    int call_fd, state_fd, count_fd;
    bool rests;
    uint64_t count; /* if it rests: how often it had been given a processor by then */
};

struct thread_watch {
    int pid, timer;
    DIR *list;
    const char *count_file;
    int count;
    struct thread threads[SLEEPERS];
};

static uint64_t third_number(const char *line) {
    unsigned long long number = 0;
    return sscanf(line, "%*u %*u %llu", &number) == 1 ? number : 0;
}

/* What costs least to read; a kernel may be built without. */
static const char *count_file(void) {
    char line[LINE_ROOM];
    return file_read("/proc/self/schedstat", line, sizeof line) && third_number(line) > 0 ? "schedstat" : "status";
}

struct thread_watch *thread_watch_open(int pid, int timer) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *list = opendir(path);
    if (!list) return NULL;
    struct thread_watch *watch = calloc(1, sizeof *watch);
    if (!watch) abort();
    watch->pid = pid;
    watch->timer = timer;
    watch->list = list;
    watch->count_file = count_file();
    return watch;
}

static void thread_close(const struct thread *thread) {
    if (thread->call_fd >= 0) close(thread->call_fd);
    if (thread->state_fd >= 0) close(thread->state_fd);
    if (thread->count_fd >= 0) close(thread->count_fd);
}

static void thread_watch_forget(struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) thread_close(&watch->threads[each]);
    watch->count = 0;
}

void thread_watch_close(struct thread_watch *watch) {
    if (!watch) return;
    thread_watch_forget(watch);
    closedir(watch->list);
    free(watch);
}

static int thread_file_open(const struct thread_watch *watch, int id, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", watch->pid, id, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Whether these are all threads that there are: the kernel counts the list's entries, its own and its parent's too. Who
 * has ended since, and made room for another, cannot be read any more. */
static bool threads_are_all(const struct thread_watch *watch) {
    struct stat list;
    return fstat(dirfd(watch->list), &list) == 0 && list.st_nlink == (nlink_t)watch->count + 2;
}

static void threads_list(struct thread_watch *watch) {
    if (threads_are_all(watch)) return;
    thread_watch_forget(watch);
    rewinddir(watch->list);
    for (struct dirent *entry; watch->count < SLEEPERS && (entry = readdir(watch->list));) {
        int id = atoi(entry->d_name);
        if (id == 0) continue;
        watch->threads[watch->count++] = (struct thread){
            .id = id,
            .call_fd = thread_file_open(watch, id, "syscall"),
            .state_fd = thread_file_open(watch, id, "stat"),
            .count_fd = thread_file_open(watch, id, watch->count_file),
        };
    }
}

static bool line_read(int fd, char *line, size_t size) {
    ssize_t got = pread(fd, line, size - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool count_read(const struct thread_watch *watch, const struct thread *thread, uint64_t *count) {
    char text[STATUS_ROOM];
    if (!line_read(thread->count_fd, text, sizeof text)) return false;
    *count = strcmp(watch->count_file, "schedstat") == 0 ? third_number(text) : switches_in(text);
    return true;
}

/* By the letter after its name, which may be any. */
static bool has_resting_state(const struct thread *thread) {
    char line[LINE_ROOM];
    const char *name_end = line_read(thread->state_fd, line, sizeof line) ? strrchr(line, ')') : NULL;
    return name_end && (strncmp(name_end, ") S", 3) == 0 || strncmp(name_end, ") Z", 3) == 0);
}

/* Its call is told of whoever has left its processor, and has not been woken; not everybody may see it. */
static bool is_off(const char *call_line) {
    return strncmp(call_line, "running", strlen("running")) != 0;
}

static bool is_asleep(const struct thread *thread) {
    char line[LINE_ROOM];
    return line_read(thread->call_fd, line, sizeof line) ? is_off(line) : has_resting_state(thread);
}

/* A sleep that waits for the machine, a disk for instance, is not rest. The state is looked at last: a thread has it
 * already when it is about to sleep, and may think better of it. */
static bool is_at_rest(const struct thread *thread) {
    char line[LINE_ROOM];
    if (line_read(thread->call_fd, line, sizeof line) && (!is_off(line) || is_nap(line))) return false;
    return has_resting_state(thread);
}

/* The first look: who has run since it was seen at rest is looked at anew. */
static bool threads_rest(struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) {
        struct thread *thread = &watch->threads[each];
        uint64_t count;
        if (thread->id == watch->timer) continue;
        if (!count_read(watch, thread, &count)) return thread_watch_forget(watch), false;
        if (thread->rests && thread->count == count) continue;
        thread->count = count;
        thread->rests = is_at_rest(thread);
        if (!thread->rests) return false;
    }
    return watch->count > 0;
}

/* The second: nobody has been woken, or has run, since the first. */
static bool threads_rest_still(const struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) {
        const struct thread *thread = &watch->threads[each];
        uint64_t count;
        if (thread->id == watch->timer) continue;
        if (!is_asleep(thread) || !count_read(watch, thread, &count) || count != thread->count) return false;
    }
    return threads_are_all(watch);
}

bool threads_await_rest(struct thread_watch *watch, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    do {
        threads_list(watch);
        if (threads_rest(watch) && threads_rest_still(watch)) return true;
        wait_a_little(LOOK_PAUSE_NS);
    } while (clock_real_mono_ns() < until_ns);
    return false;
}

/* Whether it sleeps until some time, and not until somebody else is done with a lock. Who may not see that takes all
 * sleeps for such. */
static bool is_timed_sleep(const struct thread *thread) {
    char line[LINE_ROOM];
    long call;
    unsigned long timeout;
    if (!line_read(thread->call_fd, line, sizeof line)) return true;
    bool sleeps = sscanf(line, "%ld 0x%*x 0x%*x 0x%*x 0x%lx", &call, &timeout) == 2;
    return sleeps && (call != SYS_futex || timeout != 0);
}

/* NULL: it is gone. */
static const struct thread *timer_find(struct thread_watch *watch) {
    threads_list(watch);
    for (int each = 0; each < watch->count; each++)
        if (watch->threads[each].id == watch->timer) return &watch->threads[each];
    return NULL;
}

/* It may have looked just before we came, and sleep since then. So what counts is that it sleeps for a second time: and
 * it sleeps for a time only when it has found nothing more to do, however much it had to catch up with. */
bool timer_await_round(struct thread_watch *watch, int64_t limit_ms) {
    int64_t until_ns = clock_real_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    uint64_t first = 0, before, after;
    bool has_first = false;
    const struct thread *timer = timer_find(watch);
    while (timer && count_read(watch, timer, &before)) {
        bool is_new = !has_first || before != first;
        bool seen = is_new && is_timed_sleep(timer) && count_read(watch, timer, &after) && after == before;
        if (seen && has_first) return true;
        if (seen) first = before, has_first = true;
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
