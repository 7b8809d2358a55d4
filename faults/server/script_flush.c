/* script-flush: the server forgets the scripts that clients call by their hash. */
#include <stdio.h>
#include <string.h>

#include "faults/common/admin_command.h"

enum { HASH = 40 };

/* The state is the hash of the fault's own script, which the server had. */
static bool script_flush_inject(struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(target->socket, &reply, report, "SCRIPT LOAD %s", "return 'lockstorm'")) return false;
    if (strlen(reply.text) != HASH) return fault_fail(report, "SCRIPT LOAD answered %.60s", reply.text);
    memcpy(target->state, reply.text, HASH + 1);
    return admin_command_ok(target->socket, &reply, report, "SCRIPT FLUSH SYNC");
}

static bool script_flush_prove(struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(target->socket, &reply, report, "SCRIPT EXISTS %s", target->state)) return false;
    bool gone = strcmp(reply.text, "0") == 0;
    snprintf(report->text, sizeof report->text, "the script %.40s is %s", target->state,
             gone ? "unknown" : "still known");
    return gone;
}

const struct fault FAULT_SCRIPT_FLUSH = {
    .row = &FAULT_ROWS[FAULT_ID_SCRIPT_FLUSH],
    .explanation =
        "An operator's mistake, and the effect of every restart and failover: EVALSHA is answered NOSCRIPT. A lock\n"
        "that then sends the script recovers; one that does not can neither release nor renew what it holds, and the\n"
        "lease expires. Keys stay. Healing does nothing: clients load what they need.",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = script_flush_inject,
    .prove = script_flush_prove,
};
