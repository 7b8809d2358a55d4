/* pause-client: the whole process stands still, worker and watchdog alike, as in a stop-the-world garbage collection.
 *
 * kill(SIGSTOP) returns before the target has stopped, so inject waits until every thread is seen stopped. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faults/fault.h"

extern const struct fault FAULT_PAUSE_CLIENT;

enum { PAUSE_LIMIT_MS = 5000 };

/* The state letter of one thread, 0: it is gone. The name before it may hold blanks and parentheses. */
static char thread_state(int pid, const char *thread) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", pid, thread);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    char *end = got ? strrchr(line, ')') : NULL;
    return end && end[1] == ' ' ? end[2] : 0;
}

/* Counts the threads of a process and how many of them are in state T (stopped). False: no such process. */
static bool threads_count(int pid, int *threads, int *stopped) {
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

static bool prove(struct fault_target *target, struct fault_report *report) {
    int threads, stopped;
    if (!threads_count(target->pid, &threads, &stopped)) {
        snprintf(report->text, sizeof report->text, "process %d is gone", target->pid);
        return false;
    }
    snprintf(report->text, sizeof report->text, "%d of %d threads in state T", stopped, threads);
    return stopped == threads;
}

static bool signal_and_wait(const struct fault_target *target, int signal, bool stopped, struct fault_report *report) {
    if (target->pid <= 0 || kill(target->pid, signal) < 0) {
        snprintf(report->text, sizeof report->text, "kill(%d): %s", target->pid,
                 target->pid <= 0 ? "no process" : strerror(errno));
        return false;
    }
    struct timespec pause = {.tv_nsec = 20000};
    for (long waited_us = 0; waited_us < PAUSE_LIMIT_MS * 1000L; waited_us += 20) {
        int threads, in_state_t;
        if (!threads_count(target->pid, &threads, &in_state_t)) break;
        if (stopped ? in_state_t == threads : in_state_t == 0) return true;
        nanosleep(&pause, NULL);
    }
    snprintf(report->text, sizeof report->text, "process %d did not %s", target->pid, stopped ? "stop" : "go on");
    return false;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    if (!signal_and_wait(target, SIGSTOP, true, report)) return false;
    if (target->means && target->means->process_stopped)
        target->means->process_stopped(target->means->conductor, target->pid, true);
    return true;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool goes_on = signal_and_wait(target, SIGCONT, false, report);
    if (target->means && target->means->process_stopped)
        target->means->process_stopped(target->means->conductor, target->pid, false);
    return goes_on;
}

const struct fault FAULT_PAUSE_CLIENT = {
    .name = "pause-client",
    .summary = "stop a client's whole process, watchdog included, and let it go on later",
    .proof = "every thread of the process is in state T (/proc)",
    .explanation =
        "SIGSTOP, confirmed, at a named checkpoint of the client or between two steps; SIGCONT heals. The client's time\n"
        "goes on meanwhile: its lease runs out and it does not know. This is the model of a garbage collection, of a\n"
        "container that is throttled or migrated, of a laptop lid. It does not model a worker that is stuck while its\n"
        "renewal thread runs.",
    .source = "Kleppmann 2016, \"Protecting a resource with a lock\" (the GC pause); HBase's session expiry",
    .target = "client",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
