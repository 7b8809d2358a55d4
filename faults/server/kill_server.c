/* kill-server: a server's process is killed, and started again with its data when the fault is healed.
 *
 * Unlike crash-server it sends the server no command, so it works with any kind that the trial can start again. */
#include <signal.h>
#include <stdio.h>

#include "faults/common/fault.h"
#include "faults/common/process.h"

struct kill_server_state {
    bool killed, restarted;
};

static bool kill_server_inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct kill_server_state *state = (void *)target->state;
    driver->unreliable(driver->scheduler);
    driver->server_silent(driver->scheduler, target->server, true);
    state->killed = true;
    if (!process_end(target->pid, report)) return false;
    return driver->settle(driver->scheduler) || fault_fail(report, "not every server answers");
}

static bool kill_server_heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct kill_server_state *state = (void *)target->state;
    if (!state->killed) return true;
    if (!driver->server_restart(target->server)) return fault_fail(report, "%s did not start again", target->name);
    *state = (struct kill_server_state){.restarted = true};
    driver->server_silent(driver->scheduler, target->server, false);
    return true;
}

/* process_end has seen its end; server_restart has seen that it answers again. */
static bool kill_server_prove(struct fault_target *target, struct fault_report *report) {
    const struct kill_server_state *state = (void *)target->state;
    if (!state->restarted) return fault_fail(report, "%s does not run again", target->name);
    if (kill(target->pid, 0) == 0) return fault_fail(report, "process %d still exists", target->pid);
    return snprintf(report->text, sizeof report->text, "process %d has ended, another answers", target->pid) > 0;
}

const struct fault FAULT_KILL_SERVER = {
    .row = &FAULT_ROWS[FAULT_ID_KILL_SERVER],
    .explanation =
        "The process is killed; healing starts it again at the same address, so the time between the two is the\n"
        "delay of the restart. What it had written to its files is there again, synced or not: kill -9 is no power\n"
        "failure. For a redis-server, whose persistence is configurable, and for losing some of its data, see\n"
        "crash-server. ZooKeeper's sessions survive: their timeouts are counted anew from the restart.",
    .target = "server",
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = kill_server_inject,
    .prove = kill_server_prove,
    .heal = kill_server_heal,
};
