/* suspend-host: clients stop and their monotonic clocks stop with them, while time passes for everything else. */
#include <inttypes.h>
#include <stdio.h>

#include "faults/common/process.h"

enum { LOOK_NS = 1000000, TRIES_MOST = 100 };

struct suspend_host_state {
    bool stopped, suspended;
    int64_t since_ns, woken_ns; /* by the trial's clock */
    int64_t host_ns;            /* what the host's clock showed when it was suspended */
};
_Static_assert(sizeof(struct suspend_host_state) <= FAULT_STATE, "fits the target's state");

static bool suspend_host_inject(struct fault_target *target, struct fault_report *report) {
    for (struct fault_target *each = target; each; each = each->next) {
        const struct fault_driver *driver = each->driver;
        struct suspend_host_state *state = (void *)each->state;
        if (!process_stop(each, &state->stopped, report)) return false;
        state->suspended = true;
        driver->host_suspended(driver->scheduler, each->task, true);
        state->since_ns = driver->mono_ns(driver->scheduler);
        state->host_ns = driver->host_mono_ns(driver->scheduler, each->task);
    }
    return true;
}

/* How long the host's clock has stood still. Both clocks are read within LOOK_NS of each other, if this process gets
 * to. */
static int64_t lag_of(const struct fault_target *host, const struct suspend_host_state *state) {
    const struct fault_driver *driver = host->driver;
    int64_t passed_ns = 0, host_passed_ns = 0;
    for (int tries = 0; tries < TRIES_MOST; tries++) {
        int64_t before_ns = driver->mono_ns(driver->scheduler);
        host_passed_ns = driver->host_mono_ns(driver->scheduler, host->task) - state->host_ns;
        int64_t now_ns = driver->mono_ns(driver->scheduler);
        passed_ns = now_ns - state->since_ns;
        if (now_ns - before_ns <= LOOK_NS) break;
    }
    return passed_ns - host_passed_ns;
}

/* Proved after healing. In virtual time both clocks are exact; in real time a process continues a little later. */
static bool suspend_host_prove(struct fault_target *target, struct fault_report *report) {
    int hosts = 0;
    int64_t lag_ns = 0;
    for (struct fault_target *each = target; each; each = each->next, hosts++) {
        const struct suspend_host_state *state = (void *)each->state;
        lag_ns = lag_of(each, state);
        int64_t meant_ns = state->woken_ns - state->since_ns;
        if (meant_ns <= 0) return fault_fail(report, "no time has passed while %s was suspended", each->name);
        if (lag_ns < meant_ns)
            return fault_fail(report, "the clock of %s lags by %.3f ms, it was suspended for %.3f ms", each->name,
                              (double)lag_ns / 1e6, (double)meant_ns / 1e6);
    }
    snprintf(report->text, sizeof report->text, "%d monotonic clock%s behind the trial's by %.3f s", hosts,
             hosts == 1 ? "" : "s", (double)lag_ns / 1e9);
    return true;
}

static bool suspend_host_heal(struct fault_target *target, struct fault_report *report) {
    bool continues = true;
    for (struct fault_target *each = target; each; each = each->next) {
        const struct fault_driver *driver = each->driver;
        struct suspend_host_state *state = (void *)each->state;
        if (state->suspended) {
            state->woken_ns = driver->mono_ns(driver->scheduler);
            driver->host_suspended(driver->scheduler, each->task, false);
        }
        state->suspended = false;
        continues &= process_continue(each, &state->stopped, report);
    }
    return continues;
}

const struct fault FAULT_SUSPEND_HOST = {
    .row = &FAULT_ROWS[FAULT_ID_SUSPEND_HOST],
    .explanation =
        "All threads of the clients stop (SIGSTOP, confirmed), and the monotonic clock that they read does not count\n"
        "that time: so does CLOCK_MONOTONIC on a laptop that sleeps, and on a virtual machine that is suspended or\n"
        "migrated. A client that checks its lease by that clock finds it as fresh as before, although the server has\n"
        "long granted the lock to another; the wall clock is right again at once. Concerns all clients, or those\n"
        "that are named. Not modelled: connections that the other side has given up meanwhile.",
    .target = "clients",
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = suspend_host_inject,
    .prove = suspend_host_prove,
    .heal = suspend_host_heal,
};
