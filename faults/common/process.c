#include "faults/common/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/process/proc_file.h"
#include "harness/scheduler/hang_limit.h"

enum { STOP_LIMIT_MS = 60000, END_LIMIT_MS = 60000, POLL_US = 20, CHILDREN_ROOM = 4096, STATUS_ROOM = 4096 };

/* The state letter of one thread, 0: it has ended. The name before it may hold blanks and parentheses. */
static char thread_state(int pid, const char *thread) {
    char line[512];
    const char *end = proc_read(line, sizeof line, "/proc/%d/task/%.16s/stat", pid, thread) ? strrchr(line, ')') : NULL;
    bool lives = end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
    return lives ? end[2] : 0;
}

/* The number of seccomp filters of a process. */
static uint64_t filters_of(int pid) {
    char text[STATUS_ROOM];
    uint64_t count = 0;
    if (proc_read(text, sizeof text, "/proc/%d/status", pid)) proc_number(text, "Seccomp_filters:", 10, &count);
    return count;
}

/* Held: in a call that only the supervisor of its program ends (harness/supervisor). The kernel does not stop a thread
 * there before the call has ended, but it does not run either. */
struct thread_counts {
    int threads, stopped, held;
};

static bool count_threads(int pid, struct thread_counts *counts) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    *counts = (struct thread_counts){0};
    if (!tasks) return false;
    bool supervised = filters_of(pid) > filters_of(getpid());
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        char state = thread_state(pid, entry->d_name);
        counts->threads += state != 0;
        counts->stopped += state == 'T';
        counts->held += supervised && (state == 'D' || state == 'S');
    }
    closedir(tasks);
    return counts->threads > 0;
}

bool process_count_threads(int pid, int *threads, int *stopped) {
    struct thread_counts counts;
    bool lives = count_threads(pid, &counts);
    *threads = counts.threads;
    *stopped = counts.stopped;
    return lives;
}

/* Calls visit(child, argument) for the child processes of every thread of a process. */
static void for_children(int pid, void (*visit)(int child, void *argument), void *argument) {
    char path[64], children[CHILDREN_ROOM];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        if (!proc_read(children, sizeof children, "/proc/%d/task/%.16s/children", pid, entry->d_name)) continue;
        for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));) visit(atoi(word), argument);
    }
    if (tasks) closedir(tasks);
}

static void tree_add(int pid, void *argument) {
    struct thread_counts *counts = argument, own;
    count_threads(pid, &own);
    counts->threads += own.threads;
    counts->stopped += own.stopped;
    counts->held += own.held;
    for_children(pid, tree_add, counts);
}

/* As count_threads, of a process with its children, and theirs: a client may run its lock in a program of its
 * own. */
static bool tree_count_threads(int pid, struct thread_counts *counts) {
    bool lives = count_threads(pid, counts);
    *counts = (struct thread_counts){0};
    tree_add(pid, counts);
    return lives;
}

static bool all_stand(const struct thread_counts *counts) {
    return counts->stopped + counts->held == counts->threads;
}

static void tree_signal(int pid, void *argument) {
    kill(pid, *(int *)argument);
    for_children(pid, tree_signal, argument);
}

int process_signal(int pid, int signal) {
    return kill(getpgid(pid) == pid ? -pid : pid, signal);
}

bool process_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    struct thread_counts counts;
    if (!tree_count_threads(target->pid, &counts)) return fault_fail(report, "process %d has ended", target->pid);
    int length =
        snprintf(report->text, sizeof report->text, "%d of %d threads in state T", counts.stopped, counts.threads);
    if (counts.held)
        snprintf(report->text + length, sizeof report->text - (size_t)length,
                 ", %d held by their supervisor, which is in that state", counts.held);
    return all_stand(&counts);
}

bool process_signal_and_wait(int pid, int signal, struct fault_report *report) {
    bool stops = signal == SIGSTOP;
    struct thread_counts counts;
    if (process_signal(pid, signal) < 0) return fault_fail(report, "kill(%d): %s", pid, strerror(errno));
    for_children(pid, tree_signal, &signal); /* children may have left the group */
    int64_t until_ns = hang_limit_deadline_ns(STOP_LIMIT_MS);
    do {
        if (!tree_count_threads(pid, &counts)) return fault_fail(report, "process %d has ended", pid);
        if (stops ? all_stand(&counts) : counts.stopped == 0) return true;
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "process %d did not %s", pid, stops ? "stop" : "continue");
}

bool process_stop(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    if (target->pid <= 0) return fault_fail(report, "the target has no process");
    *sent = true;
    driver->process_stopped(driver->scheduler, target->pid, true);
    return process_signal_and_wait(target->pid, SIGSTOP, report);
}

bool process_continue(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct thread_counts counts;
    if (!*sent) return true;
    *sent = false;
    int left = driver->process_stopped(driver->scheduler, target->pid, false);
    if (left > 0) return true;
    if (!count_threads(target->pid, &counts)) return true;
    return process_signal_and_wait(target->pid, SIGCONT, report);
}

bool process_end(int pid, struct fault_report *report) {
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0 || kill(pid, SIGKILL) < 0) {
        fault_fail(report, "process %d: %s", pid, pid > 0 ? strerror(errno) : "no such process");
        if (fd >= 0) close(fd);
        return false;
    }
    bool ended = hang_limit_await_readable(fd, hang_limit_deadline_ns(END_LIMIT_MS));
    close(fd);
    return ended || fault_fail(report, "process %d does not end", pid);
}
