#include "faults/process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STOP_LIMIT_MS = 5000, NAP_US = 20 };

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

bool process_prove_stopped(const struct fault_target *target, struct fault_report *report) {
    int threads, stopped;
    if (!process_look(target->pid, &threads, &stopped)) return fault_fail(report, "process %d is gone", target->pid);
    snprintf(report->text, sizeof report->text, "%d of %d threads in state T", stopped, threads);
    return stopped == threads;
}

void process_nap_us(long duration_us) {
    struct timespec nap = {.tv_sec = duration_us / 1000000, .tv_nsec = duration_us % 1000000 * 1000};
    nanosleep(&nap, NULL);
}

static bool signal_and_wait(int pid, int signal, bool stopped, struct fault_report *report) {
    int threads, in_state_t;
    if (kill(pid, signal) < 0) return fault_fail(report, "kill(%d): %s", pid, strerror(errno));
    for (long waited_us = 0; waited_us < STOP_LIMIT_MS * 1000L; waited_us += NAP_US) {
        if (!process_look(pid, &threads, &in_state_t)) return fault_fail(report, "process %d is gone", pid);
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
