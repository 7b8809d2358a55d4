/* pause-server: a server's process stands still. What it is sent waits in the kernel until it goes on. */
#include <stdio.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/postgres.h"
#include "faults/process.h"

extern const struct fault FAULT_PAUSE_SERVER;

enum { SILENCE_MS = 50, RETURN_LIMIT_MS = 10000 };

struct pause {
    bool sent, silent;
};

static bool inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct pause *self = (struct pause *)(void *)target->state;
    means->unreliable(means->conductor);
    means->server_silent(means->conductor, target->server, true);
    self->silent = true;
    return (is_postgres(target) ? postgres_stop : process_stop)(target, &self->sent, report);
}

static bool answers(const struct fault_target *target) {
    struct fault_report unused;
    struct answer answer;
    if (is_postgres(target)) return postgres_answers(target, SILENCE_MS);
    return ask_within(target->socket, SILENCE_MS, &answer, &unused, "PING");
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    if (!(is_postgres(target) ? postgres_prove_stopped : process_prove_stopped)(target, report)) return false;
    if (!is_postgres(target) && !target->socket) return true; /* it would not know a PING */
    if (answers(target)) return fault_fail(report, "it answered");
    size_t used = strlen(report->text);
    snprintf(report->text + used, sizeof report->text - used, ", no answer within %d ms", SILENCE_MS);
    return true;
}

/* It has to answer again, unless another fault keeps it from that. */
static bool heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_means *means = target->means;
    struct pause *self = (struct pause *)(void *)target->state;
    struct answer answer;
    bool goes_on = (is_postgres(target) ? postgres_go_on : process_go_on)(target, &self->sent, report);
    if (!self->silent) return true;
    self->silent = false;
    means->server_silent(means->conductor, target->server, false);
    if (!goes_on || !target->socket || !means->server_works(means->conductor, target->server)) return goes_on;
    if (is_postgres(target))
        return postgres_answers(target, RETURN_LIMIT_MS) || fault_fail(report, "%s does not answer", target->name);
    return ask_good(target->socket, &answer, report, "PING");
}

const struct fault FAULT_PAUSE_SERVER = {
    .name = "pause-server",
    .summary = "stop a server's whole process and let it go on later",
    .proof = "every thread of the process, or of its children, is in state T (/proc), and a question gets no answer",
    .explanation =
        "SIGSTOP, confirmed; SIGCONT heals, and a redis-server has to answer. Connections stay open and commands pile up in the\n"
        "kernel: whoever gave up waiting has an unknown outcome, and its command runs when the server goes on, by the\n"
        "clock of then. This is the model of a fork that takes long, of swapping, of a virtual machine that is moved. It\n"
        "does not model a crash (nothing is lost) nor a network that is cut (what was sent arrives).",
    .source = "redis.io, \"Diagnosing latency issues\" (fork, swapping); etcd under SIGSTOP in Jepsen's tests",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
