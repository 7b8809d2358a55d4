/* script-flush: the server forgets the scripts that clients call by their hash. */
#include <stdio.h>
#include <string.h>

#include "faults/ask.h"

extern const struct fault FAULT_SCRIPT_FLUSH;

enum { HASH = 40 };

/* The state is the hash of a script of its own that the server had. */
static bool inject(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "SCRIPT LOAD %s", "return 'lockstorm'")) return false;
    if (strlen(answer.text) != HASH) return fault_fail(report, "SCRIPT LOAD answered %.60s", answer.text);
    memcpy(target->state, answer.text, HASH + 1);
    return ask_good(target->socket, &answer, report, "SCRIPT FLUSH SYNC");
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(target->socket, &answer, report, "SCRIPT EXISTS %s", target->state)) return false;
    bool gone = strcmp(answer.text, "0") == 0;
    snprintf(report->text, sizeof report->text, "the script %.40s is %s", target->state,
             gone ? "unknown" : "still known");
    return gone;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    (void)target, (void)report;
    return true; /* who needs a script sends it again */
}

const struct fault FAULT_SCRIPT_FLUSH = {
    .name = "script-flush",
    .summary = "SCRIPT FLUSH: the server has forgotten every script",
    .proof = "SCRIPT EXISTS says 0 of a script of its own that was loaded right before",
    .explanation =
        "An operator's mistake, and what every restart and failover does as well: EVALSHA is answered by NOSCRIPT. A lock\n"
        "whose code sends the script then gets on; one that does not can neither release nor renew what it holds, and\n"
        "the lease runs out. Keys stay. Healing does nothing: clients load what they need.",
    .source =
        "redlock-rb#27, #29: a hosted Redis ran SCRIPT FLUSH, no lock could be released; Redis, EVALSHA: the cache is volatile",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
