/* kill-client: SIGKILL. Whatever the client knew is gone; whatever it had sent is on its way. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "faults/process.h"

extern const struct fault FAULT_KILL_CLIENT;

enum { END_LIMIT_MS = 5000, NAP_US = 50 };

/* The exit status stays where it is: another look, and the driver's own, must find it too. */
static bool look(int pid, siginfo_t *info, struct fault_report *report) {
    memset(info, 0, sizeof *info);
    if (pid <= 0) return fault_fail(report, "it has no process");
    if (waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG | WNOWAIT) == 0) return true;
    return fault_fail(report, "the exit status of process %d cannot be seen: %s", pid, strerror(errno));
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    siginfo_t info;
    if (!look(target->pid, &info, report)) return false;
    if (info.si_pid != 0) return fault_fail(report, "process %d had ended before", target->pid);
    /* In virtual time it stands already. A history with half a record would tell nothing; of a lock it says nothing. */
    if (!means->virtual_time) means->stop_between_records(means->conductor, target->strand);
    if (kill(target->pid, SIGKILL) < 0) return fault_fail(report, "kill(%d): %s", target->pid, strerror(errno));
    for (long waited_us = 0; waited_us < END_LIMIT_MS * 1000L; waited_us += NAP_US) {
        if (!look(target->pid, &info, report)) return false;
        if (info.si_pid != 0) return means->process_ended(means->conductor, target->pid), true;
        process_nap_us(NAP_US);
    }
    return fault_fail(report, "process %d did not end", target->pid);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    siginfo_t info;
    if (!look(target->pid, &info, report)) return false;
    if (info.si_pid == 0) return fault_fail(report, "process %d has not ended", target->pid);
    const char *how = info.si_code == CLD_KILLED ? "killed by signal" : "ended with status";
    snprintf(report->text, sizeof report->text, "process %d was %s %d", target->pid, how, info.si_status);
    return info.si_code == CLD_KILLED && info.si_status == SIGKILL;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool *restarted = (bool *)target->state;
    if (*restarted || strcmp(fault_text(&FAULT_KILL_CLIENT, target, "restart"), "yes") != 0) return true;
    *restarted = true;
    if (target->means->client_restart(target->strand)) return true;
    return fault_fail(report, "it was not started again");
}

static const struct fault_word OPTIONS[] = {
    {"restart", "no", "yes: healing starts the client again, with nothing of what it knew"},
    {0},
};

const struct fault FAULT_KILL_CLIENT = {
    .name = "kill-client",
    .summary = "kill a client's process; it may be started again, knowing nothing",
    .proof = "its exit status: killed by signal 9",
    .explanation =
        "SIGKILL at a named checkpoint of the client or between two steps: no release, no goodbye, its connections are\n"
        "closed by the kernel. What it had sent before runs; what it had not is never sent. Its belief ends with it. The\n"
        "lock stays until its lease is over, or for ever when it has none.\n"
        "Started again it is somebody else (client-1.2) on the same host: the same clocks, another random value. It does\n"
        "not model a host that dies without a word: that leaves its connections open (partition it first).",
    .source = "redisson#2045, ShedLock#65, horizon#1738: a crash between acquire and release",
    .target = "client",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
