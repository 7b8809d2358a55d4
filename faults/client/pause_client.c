/* pause-client: the whole process stops, worker and watchdog alike, as in a stop-the-world garbage collection. */
#include "faults/common/process.h"

static bool inject(struct fault_target *target, struct fault_report *report) {
    return process_stop(target, (bool *)target->state, report);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return process_prove_stopped(target, report);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    return process_continue(target, (bool *)target->state, report);
}

const struct fault FAULT_PAUSE_CLIENT = {
    .name = "pause-client",
    .summary = "stop a client's whole process, watchdog included, and continue it later",
    .proof = "every thread of the process is in state T (/proc)",
    .explanation =
        "SIGSTOP, confirmed, at a named checkpoint of the client or between two steps; SIGCONT heals. The client's\n"
        "time passes meanwhile: its lease expires and it does not notice. This models a garbage collection, and a\n"
        "container that is throttled or migrated. Not modelled: a worker that is stuck while its renewal thread runs\n"
        "(stall-worker), and a host that sleeps and whose monotonic clock sleeps with it (suspend-host).",
    .source = "Kleppmann 2016, \"Protecting a resource with a lock\" (the GC pause); HBase's session expiry",
    .target = "client",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
