#include "faults/common/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/common/real_time.h"

enum { STOP_LIMIT_MS = 60000, POLL_US = 20, CHILDREN_ROOM = 4096 };

/* The state letter of one thread, 0: it has ended. The name before it may hold blanks and parentheses. */
static char thread_state(int pid, const char *thread) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", pid, thread);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    char *end = got ? strrchr(line, ')') : NULL;
    bool lives = end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
    return lives ? end[2] : 0;
}

bool process_count_threads(int pid, int *threads, int *stopped) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    *threads = *stopped = 0;
    if (!tasks) return false;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        char state = thread_state(pid, entry->d_name);
        *threads += state != 0;
        *stopped += state == 'T';
    }
    closedir(tasks);
    return *threads > 0;
}

/* Calls visit(child, argument) for the child processes of every thread of a process. */
static void for_children(int pid, void (*visit)(int child, void *argument), void *argument) {
    char path[96], children[CHILDREN_ROOM];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", pid, entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue;
        if (!fgets(children, sizeof children, file)) children[0] = '\0';
        fclose(file);
        for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));) visit(atoi(word), argument);
    }
    if (tasks) closedir(tasks);
}

struct thread_counts {
    int threads, stopped;
};

static void tree_add(int pid, void *argument) {
    struct thread_counts *counts = argument;
    int threads, stopped;
    process_count_threads(pid, &threads, &stopped);
    counts->threads += threads;
    counts->stopped += stopped;
    for_children(pid, tree_add, counts);
}

/* As process_count_threads, of a process with its children, and theirs: a client may run its lock in a program of its
 * own. */
static bool tree_count_threads(int pid, int *threads, int *stopped) {
    struct thread_counts counts = {0};
    bool lives = process_count_threads(pid, threads, stopped);
    tree_add(pid, &counts);
    *threads = counts.threads;
    *stopped = counts.stopped;
    return lives;
}

static void tree_signal(int pid, void *argument) {
    kill(pid, *(int *)argument);
    for_children(pid, tree_signal, argument);
}

int process_signal(int pid, int signal) {
    return kill(getpgid(pid) == pid ? -pid : pid, signal);
}

bool process_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    int threads, stopped;
    if (!tree_count_threads(target->pid, &threads, &stopped))
        return fault_fail(report, "process %d has ended", target->pid);
    snprintf(report->text, sizeof report->text, "%d of %d threads in state T", stopped, threads);
    return stopped == threads;
}

bool process_signal_and_wait(int pid, int signal, struct fault_report *report) {
    bool stops = signal == SIGSTOP;
    int threads, stopped;
    if (process_signal(pid, signal) < 0) return fault_fail(report, "kill(%d): %s", pid, strerror(errno));
    for_children(pid, tree_signal, &signal); /* children may have left the group */
    int64_t until_ms = real_time_deadline_ms(STOP_LIMIT_MS);
    do {
        if (!tree_count_threads(pid, &threads, &stopped)) return fault_fail(report, "process %d has ended", pid);
        if (stopped == (stops ? threads : 0)) return true;
    } while (real_time_pause(until_ms, POLL_US));
    return fault_fail(report, "process %d did not %s", pid, stops ? "stop" : "continue");
}

bool process_stop(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_means *means = target->means;
    if (target->pid <= 0) return fault_fail(report, "the target has no process");
    *sent = true;
    if (means) means->process_stopped(means->scheduler, target->pid, true);
    return process_signal_and_wait(target->pid, SIGSTOP, report);
}

bool process_continue(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_means *means = target->means;
    int threads, stopped;
    if (!*sent) return true;
    *sent = false;
    int left = means ? means->process_stopped(means->scheduler, target->pid, false) : 0;
    if (left > 0) return true;
    if (!process_count_threads(target->pid, &threads, &stopped)) return true;
    return process_signal_and_wait(target->pid, SIGCONT, report);
}
