/* flush: FLUSHALL on the wrong server. */
#include <stdio.h>

#include "faults/ask.h"

extern const struct fault FAULT_FLUSH;

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "flush", key);
    return ask_good(target->socket, &answer, report, "SET %s here", key) &&
           ask_good(target->socket, &answer, report, "FLUSHALL SYNC");
}

/* By its own key: others may have written again since. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    struct answer mark, size;
    char key[PROBE_KEY];
    probe_key(target, "flush", key);
    if (!ask_good(target->socket, &size, report, "DBSIZE")) return false;
    if (!ask_good(target->socket, &mark, report, "EXISTS %s", key)) return false;
    snprintf(report->text, sizeof report->text, "the key %s is %s, %lld keys are there", key,
             mark.number ? "still there" : "gone", size.number);
    return mark.number == 0;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "flush", key);
    return ask_good(target->socket, &answer, report, "DEL %s", key);
}

const struct fault FAULT_FLUSH = {
    .name = "flush",
    .summary = "FLUSHALL: every key of the server is gone, the locks among them",
    .proof = "a key of its own, written right before, is gone; DBSIZE is read too",
    .explanation =
        "An operator's mistake: the cache was to be emptied, and the locks lived in it. The keys of all databases go at\n"
        "once, on the server and on its replicas; who holds a lock is not told, and the next who asks is granted it.\n"
        "Counters go too: fencing tokens begin again at 1. Connections, subscriptions and scripts stay. Healing brings\n"
        "nothing back. A lock on several servers survives it as long as a majority of them keeps its keys.",
    .source =
        "Redis, FLUSHALL; redis.io, Distributed Locks (a node that forgets); what a shared cache does to its locks",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
