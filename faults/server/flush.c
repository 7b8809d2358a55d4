/* flush: FLUSHALL on the wrong server. */
#include <stdio.h>

#include "faults/common/admin_command.h"

static bool flush_inject(struct fault_target *target, struct fault_report *report) {
    const struct probe_key key = fault_probe_key(target);
    return admin_command_ok(target->socket, NULL, report, "SET %s here", key.text) &&
           admin_command_ok(target->socket, NULL, report, "FLUSHALL SYNC");
}

/* By the fault's own key: clients may have written again since. */
static bool flush_prove(struct fault_target *target, struct fault_report *report) {
    struct admin_reply mark, size;
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command_ok(target->socket, &size, report, "DBSIZE")) return false;
    if (!admin_command_ok(target->socket, &mark, report, "EXISTS %s", key.text)) return false;
    snprintf(report->text, sizeof report->text, "the key %s is %s, %lld keys are there", key.text,
             mark.number ? "still there" : "gone", size.number);
    return mark.number == 0;
}

static bool flush_heal(struct fault_target *target, struct fault_report *report) {
    const struct probe_key key = fault_probe_key(target);
    return admin_command_ok(target->socket, NULL, report, "DEL %s", key.text);
}

const struct fault FAULT_FLUSH = {
    .row = &FAULT_ROWS[FAULT_ID_FLUSH],
    .explanation =
        "An operator's mistake: the cache was to be emptied, and the locks were in it. The keys of all databases are\n"
        "removed at once, on the server and on its replicas; the holder of a lock is not notified, and the next\n"
        "client that asks is granted it. Counters are removed too: fencing tokens start again at 1. Connections,\n"
        "subscriptions and scripts stay. Healing restores nothing. A lock on several servers survives as long as a\n"
        "majority of them keeps its keys.",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = flush_inject,
    .prove = flush_prove,
    .heal = flush_heal,
};
