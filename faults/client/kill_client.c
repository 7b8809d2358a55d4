/* kill-client: SIGKILL. What the client knew is lost; what it had sent is still delivered. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "faults/common/process.h"
#include "harness/scheduler/hang_limit.h"

enum { END_LIMIT_MS = 60000, POLL_US = 50 };

/* Reads how the process ended; info->si_pid is 0 while it runs. Leaves the exit status in place: prove and the driver
 * read it too. */
static bool read_exit(int pid, siginfo_t *info, struct fault_report *report) {
    memset(info, 0, sizeof *info);
    if (pid <= 0) return fault_fail(report, "the target has no process");
    if (waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG | WNOWAIT) == 0) return true;
    return fault_fail(report, "the exit status of process %d cannot be read: %s", pid, strerror(errno));
}

static bool kill_client_inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    siginfo_t info;
    if (!read_exit(target->pid, &info, report)) return false;
    if (info.si_pid != 0) return fault_fail(report, "process %d had ended before", target->pid);
    /* In virtual time it stands still already. Half a record would make the history useless, and says nothing about a
     * lock. */
    if (!driver->virtual_time) driver->stop_between_records(driver->scheduler, target->task);
    if (process_signal(target->pid, SIGKILL) < 0)
        return fault_fail(report, "kill(%d): %s", target->pid, strerror(errno));
    int64_t until_ns = hang_limit_deadline_ns(END_LIMIT_MS);
    do {
        if (!read_exit(target->pid, &info, report)) return false;
        if (info.si_pid != 0) {
            driver->process_ended(driver->scheduler, target->pid);
            return true;
        }
    } while (hang_limit_pause(until_ns, POLL_US));
    return fault_fail(report, "process %d did not end", target->pid);
}

static bool kill_client_prove(struct fault_target *target, struct fault_report *report) {
    siginfo_t info;
    if (!read_exit(target->pid, &info, report)) return false;
    if (info.si_pid == 0) return fault_fail(report, "process %d has not ended", target->pid);
    const char *how = info.si_code == CLD_KILLED ? "killed by signal" : "ended with status";
    snprintf(report->text, sizeof report->text, "process %d was %s %d", target->pid, how, info.si_status);
    return info.si_code == CLD_KILLED && info.si_status == SIGKILL;
}

static bool kill_client_heal(struct fault_target *target, struct fault_report *report) {
    bool *restarted = (bool *)target->state;
    if (*restarted || strcmp(fault_option_text(target, "restart"), "yes") != 0) return true;
    *restarted = true;
    if (target->driver->client_restart(target->task)) return true;
    return fault_fail(report, "%s was not started again", target->name);
}

const struct fault FAULT_KILL_CLIENT = {
    .row = &FAULT_ROWS[FAULT_ID_KILL_CLIENT],
    .explanation =
        "SIGKILL at a named checkpoint of the client or between two steps: no release, no goodbye; the kernel closes\n"
        "its connections. Commands that it had sent still run; others are never sent. Its belief to hold the lock\n"
        "ends with it. The lock stays until its lease expires, or for ever when it has none.\n"
        "A restarted client is another one (client-1.2) on the same host: the same clocks, another random value. Not\n"
        "modelled: a host that dies silently, which leaves its connections open (partition it first).",
    .target = "client",
    .options = FAULT_OPTIONS({"restart", "no", "yes: healing starts the client again, without its memory"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = kill_client_inject,
    .prove = kill_client_prove,
    .heal = kill_client_heal,
};
