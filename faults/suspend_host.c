/* suspend-host: clients stand still and their monotonic time stands with them, while the world goes on. */
#include <inttypes.h>
#include <stdio.h>

#include "faults/process.h"

extern const struct fault FAULT_SUSPEND_HOST;

struct suspension {
    bool stopped, suspended;
    int64_t since_ns, woken_ns; /* by the trial's clock */
    int64_t host_ns;            /* what the host's showed when it was suspended */
};
_Static_assert(sizeof(struct suspension) <= FAULT_STATE, "it is kept in a target's state");

static struct suspension *suspension_of(struct fault_target *target) {
    return (struct suspension *)(void *)target->state;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    for (struct fault_target *each = target; each; each = each->next) {
        const struct fault_means *means = each->means;
        struct suspension *self = suspension_of(each);
        if (!process_stop(each, &self->stopped, report)) return false;
        self->suspended = true;
        means->host_suspended(means->conductor, each->strand, true);
        self->since_ns = means->mono_ns(means->conductor);
        self->host_ns = means->host_mono_ns(means->conductor, each->strand);
    }
    return true;
}

/* Looked at when it is over. In virtual time both clocks are exact; in real time a process goes on a little later. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    int hosts = 0;
    int64_t lag_ns = 0;
    for (struct fault_target *each = target; each; each = each->next, hosts++) {
        const struct fault_means *means = each->means;
        const struct suspension *self = suspension_of(each);
        int64_t passed_ns = means->mono_ns(means->conductor) - self->since_ns;
        lag_ns = passed_ns - (means->host_mono_ns(means->conductor, each->strand) - self->host_ns);
        int64_t meant_ns = self->woken_ns - self->since_ns;
        if (meant_ns <= 0) return fault_fail(report, "no time has passed while %s was suspended", each->name);
        if (lag_ns < meant_ns)
            return fault_fail(report, "the clock of %s lags by %.3f ms, it was suspended for %.3f ms", each->name,
                              (double)lag_ns / 1e6, (double)meant_ns / 1e6);
    }
    snprintf(report->text, sizeof report->text, "%d monotonic clock%s behind the trial's by %.3f s", hosts,
             hosts == 1 ? "" : "s", (double)lag_ns / 1e9);
    return true;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    bool goes_on = true;
    for (struct fault_target *each = target; each; each = each->next) {
        const struct fault_means *means = each->means;
        struct suspension *self = suspension_of(each);
        if (self->suspended) {
            self->woken_ns = means->mono_ns(means->conductor);
            means->host_suspended(means->conductor, each->strand, false);
        }
        self->suspended = false;
        goes_on &= process_go_on(each, &self->stopped, report);
    }
    return goes_on;
}

const struct fault FAULT_SUSPEND_HOST = {
    .name = "suspend-host",
    .summary = "the hosts of clients sleep, their monotonic clocks with them, while servers and the store go on",
    .proof = "the clients' monotonic clocks lag the trial's by the time for which they were suspended",
    .explanation =
        "All threads of the clients stop (SIGSTOP, confirmed), and the monotonic clock that they read does not count that\n"
        "time: so does CLOCK_MONOTONIC on a laptop that sleeps, on a virtual machine that is suspended or migrated. Who\n"
        "checks its lease by that clock finds it as fresh as before, although the server has long given it to another;\n"
        "the wall clock is right again at once. Concerns all clients, or those that are named. It does not model\n"
        "connections that the other side has given up meanwhile.",
    .source = "swarthy/redis-semaphore#24; clock_gettime(2): CLOCK_MONOTONIC does not count suspended time",
    .target = "clients",
    .moment = FAULT_AFTER_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
