#include "faults/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STOP_LIMIT_MS = 5000, NAP_US = 20, CHILDREN_ROOM = 4096 };

/* The state letter of one thread, 0: it is gone. The name before it may hold blanks and parentheses. */
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

bool process_look(int pid, int *threads, int *stopped) {
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

/* Calls look(child, argument) for what the threads of a process have started. */
static void for_children(int pid, void (*look)(int child, void *argument), void *argument) {
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
        for (char *rest = children, *word; (word = strtok_r(rest, " ", &rest));) look(atoi(word), argument);
    }
    if (tasks) closedir(tasks);
}

struct family {
    int threads, stopped;
};

static void family_count(int pid, void *argument) {
    struct family *family = argument;
    int threads, stopped;
    process_look(pid, &threads, &stopped);
    family->threads += threads;
    family->stopped += stopped;
    for_children(pid, family_count, family);
}

/* As process_look, of a process with its children, and theirs: a client may host its lock in a program of its own. */
static bool family_look(int pid, int *threads, int *stopped) {
    struct family family = {0};
    bool lives = process_look(pid, threads, stopped);
    family_count(pid, &family);
    *threads = family.threads;
    *stopped = family.stopped;
    return lives;
}

static void family_signal(int pid, void *argument) {
    kill(pid, *(int *)argument);
    for_children(pid, family_signal, argument);
}

int process_signal(int pid, int signal) {
    return kill(getpgid(pid) == pid ? -pid : pid, signal);
}

bool process_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    int threads, stopped;
    if (!family_look(target->pid, &threads, &stopped)) return fault_fail(report, "process %d is gone", target->pid);
    snprintf(report->text, sizeof report->text, "%d of %d threads in state T", stopped, threads);
    return stopped == threads;
}

void process_nap_us(long duration_us) {
    struct timespec nap = {.tv_sec = duration_us / 1000000, .tv_nsec = duration_us % 1000000 * 1000};
    nanosleep(&nap, NULL);
}

static bool signal_and_wait(int pid, int signal, bool stopped, struct fault_report *report) {
    int threads, in_state_t;
    if (process_signal(pid, signal) < 0) return fault_fail(report, "kill(%d): %s", pid, strerror(errno));
    for_children(pid, family_signal, &signal); /* who has left the group */
    for (long waited_us = 0; waited_us < STOP_LIMIT_MS * 1000L; waited_us += NAP_US) {
        if (!family_look(pid, &threads, &in_state_t)) return fault_fail(report, "process %d is gone", pid);
        if (stopped ? in_state_t == threads : in_state_t == 0) return true;
        process_nap_us(NAP_US);
    }
    return fault_fail(report, "process %d did not %s", pid, stopped ? "stop" : "go on");
}

bool process_stop(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_means *means = target->means;
    if (target->pid <= 0) return fault_fail(report, "it has no process");
    *sent = true;
    if (means) means->process_stopped(means->conductor, target->pid, true);
    return signal_and_wait(target->pid, SIGSTOP, true, report);
}

bool process_go_on(const struct fault_target *target, bool *sent, struct fault_report *report) {
    const struct fault_means *means = target->means;
    int threads, stopped;
    if (!*sent) return true;
    *sent = false;
    int left = means ? means->process_stopped(means->conductor, target->pid, false) : 0;
    if (left > 0) return true;
    if (!process_look(target->pid, &threads, &stopped)) return true;
    return signal_and_wait(target->pid, SIGCONT, false, report);
}
