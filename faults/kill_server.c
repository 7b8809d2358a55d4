/* kill-server: a server's process is killed, and started again with its data when the fault is healed.
 *
 * Unlike crash-server it asks the server nothing, so it works with any kind that the trial can start again. */
#include <signal.h>
#include <stdio.h>

#include "faults/fault.h"
#include "faults/process_end.h"

extern const struct fault FAULT_KILL_SERVER;

struct state {
    bool killed, restarted;
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    if (!means->server_restart) return fault_fail(report, "nobody would start %s again", target->name);
    means->unreliable(means->conductor);
    means->server_silent(means->conductor, target->server, true);
    state_of(target)->killed = true;
    return process_end(target->pid, report);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    if (!state_of(target)->killed) return true;
    if (!means->server_restart(target->server)) return fault_fail(report, "%s did not start again", target->name);
    state_of(target)->killed = false;
    state_of(target)->restarted = true;
    means->server_silent(means->conductor, target->server, false);
    return true;
}

/* process_end has seen its end; that it answers again, who has started it. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    if (!state_of(target)->restarted) return fault_fail(report, "%s does not run again", target->name);
    if (kill(target->pid, 0) == 0) return fault_fail(report, "process %d is still there", target->pid);
    return snprintf(report->text, sizeof report->text, "process %d has ended, another answers", target->pid) > 0;
}

const struct fault FAULT_KILL_SERVER = {
    .name = "kill-server",
    .summary = "kill a server (SIGKILL) and start it again with its data",
    .proof = "its process is gone, and another one answers in its place",
    .explanation =
        "The process is killed; healing starts it again in the same place, so the time between the two is the delay of the\n"
        "restart. What it had written to its files is there again, synced or not: kill -9 is no power failure. For a\n"
        "redis-server, which keeps what it was told to keep, and for losing some of it, see crash-server.",
    .source = "Jepsen: etcd 3.4.3 (kill); etcd documentation, Failure modes",
    .target = "server",
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
