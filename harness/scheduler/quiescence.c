#include "harness/scheduler/quiescence.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "harness/process/proc_file.h"
#include "harness/scheduler/hang_limit.h"

enum { SLEEPERS = 256, STATUS_ROOM = 4096, LINE_ROOM = 1024, SNAPSHOT_PAUSE_NS = 20000, ROUND_PAUSE_NS = 200000 };

/* The processes that were seen asleep, and how often each had left its processor by then. */
struct snapshot {
    int count;
    struct {
        int id;
        uint64_t switches;
    } seen[SLEEPERS];
};

static uint64_t switches_in(const char *status) {
    uint64_t voluntary = 0, others = 0;
    proc_number(status, "voluntary_ctxt_switches:", 10, &voluntary);
    proc_number(status, "nonvoluntary_ctxt_switches:", 10, &others);
    return voluntary + others;
}

/* Adds what /proc/PID/status says of a process. False: it runs, or is about to. A process that has ended (Z) does not
 * run, however long its parent, which may be stopped, takes to notice. */
static bool snapshot_add(int id, const char *text, struct snapshot *snapshot) {
    assert(snapshot->count <= SLEEPERS);
    bool asleep = strstr(text, "\nState:\tS") || strstr(text, "\nState:\tZ");
    if (snapshot->count == SLEEPERS || !asleep) return false;
    snapshot->seen[snapshot->count].id = id;
    snapshot->seen[snapshot->count++].switches = switches_in(text);
    return true;
}

static bool snapshot_process(int pid, struct snapshot *snapshot) {
    char text[STATUS_ROOM];
    return proc_read(text, sizeof text, "/proc/%d/status", pid) && snapshot_add(pid, text, snapshot);
}

static bool snapshot_family(int pid, struct snapshot *snapshot) {
    char children[STATUS_ROOM];
    if (!snapshot_process(pid, snapshot)) return false;
    if (!proc_read(children, sizeof children, "/proc/%d/task/%d/children", pid, pid)) return false;
    for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));)
        if (!snapshot_process(atoi(word), snapshot)) return false;
    return true;
}

static bool snapshot_families(const int *pids, int count, struct snapshot *snapshot) {
    for (int each = 0; each < count; each++)
        if (!snapshot_family(pids[each], snapshot)) return false;
    return true;
}

/* Whether a line of /proc/PID/syscall shows a sleep for a moment only, after which the process tries again by itself:
 * PostgreSQL and Java do so when a spin lock is taken. */
static bool is_polling_sleep(const char *line) {
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

/* Without permission to read the file, no sleep counts as a polling one. */
static bool none_polls(const struct snapshot *snapshot) {
    char line[LINE_ROOM];
    for (int each = 0; each < snapshot->count; each++)
        if (proc_read(line, sizeof line, "/proc/%d/syscall", snapshot->seen[each].id) && is_polling_sleep(line))
            return false;
    return true;
}

/* The processes that are waited for may need this core to become idle. */
static void yield_core(int64_t pause_ns) {
    nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
}

static bool thread_is_gone(int pid) {
    return kill(pid, 0) < 0 && errno == ESRCH;
}

bool families_await_quiescence(const int *pids, int count, int64_t limit_ms) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    do {
        struct snapshot before = {0}, after = {0};
        /* Polling sleeps are looked for between the two: one that ends meanwhile shows as a switch in the second. */
        if (snapshot_families(pids, count, &before) && none_polls(&before) && snapshot_families(pids, count, &after) &&
            memcmp(&before, &after, sizeof before) == 0)
            return true;
        for (int each = 0; each < count; each++)
            if (thread_is_gone(pids[each])) return false;
        yield_core(SNAPSHOT_PAUSE_NS);
    } while (!hang_limit_is_over(until_ns));
    return false;
}

bool processes_await_quiescence(int pid, int64_t limit_ms) {
    return families_await_quiescence(&pid, 1, limit_ms);
}

/* --- threads --- */

/* A thread's files in /proc stay open: opening one costs as much as reading it, and there are many. A thread that was
 * seen idle is idle until it is given a processor again, which the kernel counts. */
struct thread {
    int id;
    int call_fd, state_fd, count_fd;
    bool idle;
    uint64_t count; /* when it was seen idle: how often it had been given a processor by then */
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

/* schedstat costs least to read, but a kernel may be built without it. */
static const char *count_file(void) {
    char line[LINE_ROOM];
    return proc_read(line, sizeof line, "/proc/self/schedstat") && third_number(line) > 0 ? "schedstat" : "status";
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

static void thread_watch_forget(struct thread_watch *watch) {
    for (const struct thread *thread = watch->threads; thread < watch->threads + watch->count; thread++) {
        if (thread->call_fd >= 0) close(thread->call_fd);
        if (thread->state_fd >= 0) close(thread->state_fd);
        if (thread->count_fd >= 0) close(thread->count_fd);
    }
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

/* Whether the watch has every thread of the process: the kernel counts the directory's entries, "." and ".." included.
 * A thread that has ended since and was replaced by another is noticed because its files cannot be read any more. */
static bool has_all_threads(const struct thread_watch *watch) {
    struct stat list;
    return fstat(dirfd(watch->list), &list) == 0 && list.st_nlink == (nlink_t)watch->count + 2;
}

static void threads_list(struct thread_watch *watch) {
    if (has_all_threads(watch)) return;
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

static bool table_line_read(int fd, char *line, size_t size) {
    ssize_t got = pread(fd, line, size - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool switches_read(const struct thread_watch *watch, const struct thread *thread, uint64_t *count) {
    char text[STATUS_ROOM];
    if (!table_line_read(thread->count_fd, text, sizeof text)) return false;
    *count = strcmp(watch->count_file, "schedstat") == 0 ? third_number(text) : switches_in(text);
    return true;
}

/* By the letter after the thread's name; the name may contain any character. */
static bool has_sleeping_state(const struct thread *thread) {
    char line[LINE_ROOM];
    const char *name_end = table_line_read(thread->state_fd, line, sizeof line) ? strrchr(line, ')') : NULL;
    return name_end && (strncmp(name_end, ") S", 3) == 0 || strncmp(name_end, ") Z", 3) == 0);
}

/* /proc/PID/syscall names a call only while the thread is descheduled and has not been woken. It needs permission. */
static bool is_descheduled(const char *call_line) {
    return strncmp(call_line, "running", strlen("running")) != 0;
}

static bool thread_is_asleep(const struct thread *thread) {
    char line[LINE_ROOM];
    return table_line_read(thread->call_fd, line, sizeof line) ? is_descheduled(line) : has_sleeping_state(thread);
}

/* A sleep that waits for the machine, for a disk for instance, has another state and does not count. The state is read
 * last: a thread has it already when it is about to sleep, and may not sleep after all. */
static bool is_idle(const struct thread *thread) {
    char line[LINE_ROOM];
    if (table_line_read(thread->call_fd, line, sizeof line) && (!is_descheduled(line) || is_polling_sleep(line)))
        return false;
    return has_sleeping_state(thread);
}

/* The first snapshot. Only threads that have run since they were seen idle are inspected again. */
static bool threads_are_idle(struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) {
        struct thread *thread = &watch->threads[each];
        uint64_t count;
        if (thread->id == watch->timer) continue;
        if (!switches_read(watch, thread, &count)) {
            thread_watch_forget(watch);
            return false;
        }
        if (thread->idle && thread->count == count) continue;
        /* The count was read before the state: if the thread runs between the two, the next look sees the count. */
        thread->count = count;
        thread->idle = is_idle(thread);
        if (!thread->idle) return false;
    }
    return watch->count > 0;
}

/* The second snapshot: no thread has been woken, or has run, since the first. */
static bool threads_stayed_idle(const struct thread_watch *watch) {
    for (int each = 0; each < watch->count; each++) {
        const struct thread *thread = &watch->threads[each];
        uint64_t count;
        if (thread->id == watch->timer) continue;
        if (!thread_is_asleep(thread) || !switches_read(watch, thread, &count) || count != thread->count) return false;
    }
    return has_all_threads(watch);
}

bool threads_await_quiescence(struct thread_watch *watch, int64_t limit_ms) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    do {
        threads_list(watch);
        if (threads_are_idle(watch) && threads_stayed_idle(watch)) return true;
        if (thread_is_gone(watch->pid)) return false;
        yield_core(SNAPSHOT_PAUSE_NS);
    } while (!hang_limit_is_over(until_ns));
    return false;
}

/* Whether the thread sleeps until some time, and not until another thread releases a lock. Without permission to read
 * the call, every sleep counts as one until some time. */
static bool is_timed_sleep(const struct thread *thread) {
    char line[LINE_ROOM];
    long call;
    unsigned long timeout;
    if (!table_line_read(thread->call_fd, line, sizeof line)) return true;
    bool sleeps = sscanf(line, "%ld 0x%*x 0x%*x 0x%*x 0x%lx", &call, &timeout) == 2;
    return sleeps && (call != SYS_futex || timeout != 0);
}

/* NULL: the timer is gone. */
static const struct thread *thread_timer_find(struct thread_watch *watch) {
    threads_list(watch);
    for (int each = 0; each < watch->count; each++)
        if (watch->threads[each].id == watch->timer) return &watch->threads[each];
    return NULL;
}

/* The timer may have looked just before this was called and sleep since then, so a second sleep is awaited. It sleeps
 * until some time only when it has found nothing more to do, however much it had to catch up with. */
bool timer_await_round(struct thread_watch *watch, int64_t limit_ms) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    uint64_t first = 0, before, after;
    bool has_first = false;
    const struct thread *timer = thread_timer_find(watch);
    while (timer && switches_read(watch, timer, &before)) {
        bool is_new = !has_first || before != first;
        bool slept = is_new && is_timed_sleep(timer) && switches_read(watch, timer, &after) && after == before;
        if (slept && has_first) return true;
        if (slept) {
            first = before;
            has_first = true;
        }
        if (hang_limit_is_over(until_ns)) return false;
        yield_core(ROUND_PAUSE_NS);
    }
    return false;
}

/* --- packets --- */

/* Column 12 of a line: the packets that wait at one processor. */
static uint64_t backlog_of(const char *line) {
    enum { BACKLOG_COLUMN = 12 };
    uint64_t value = 0;
    char *end = NULL;
    for (int column = 1; column <= BACKLOG_COLUMN; column++, line = end) {
        value = strtoull(line, &end, 16);
        if (end == line) return 0;
    }
    return value;
}

/* A read may end anywhere in a line; what has begun is kept for the next one. */
uint64_t packets_waiting_in(int fd) {
    char text[STATUS_ROOM];
    uint64_t waiting = 0;
    size_t kept = 0;
    for (ssize_t got; (got = read(fd, text + kept, sizeof text - 1 - kept)) > 0;) {
        char *line = text, *end;
        text[kept + (size_t)got] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            waiting += backlog_of(line);
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    return waiting;
}

static uint64_t packets_waiting(void) {
    int fd = open("/proc/net/softnet_stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    uint64_t waiting = packets_waiting_in(fd);
    close(fd);
    return waiting;
}

bool packets_await_delivery(int64_t limit_ms) {
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    while (packets_waiting() > 0) {
        if (hang_limit_is_over(until_ns)) return false;
        yield_core(SNAPSHOT_PAUSE_NS);
    }
    return true;
}
