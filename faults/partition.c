/* partition: what is sent between two sides is lost, in one direction or in both.
 *
 * When a server's replicas are behind the cut, nobody may wait for their acknowledgement meanwhile: the state remembers
 * how many they were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faults/ask.h"
#include "faults/rule_fault.h"

extern const struct fault FAULT_PARTITION;

enum { REPLICAS_AT = 128, REPLICAS_LIMIT_MS = 5000, LOOK_EVERY_MS = 2 };

static const struct fault_word OPTIONS[] = {
    {"servers", "redis-*", "of a client: the servers that it is cut off from"},
    {"direction", "both", "what is lost: both, to-server or to-client"},
    {0},
};

static int *replicas_of(struct fault_target *target) {
    return (int *)(void *)(target->state + REPLICAS_AT);
}

static int replicas_connected(const struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char count[16];
    if (!ask_good(target->socket, &answer, report, "INFO replication")) return 0;
    return answer_line(&answer, "connected_slaves", count, sizeof count) ? atoi(count) : 0;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct rule_words words = {0};
    rule_word(&words, "black-hole");
    const char *servers = fault_text(&FAULT_PARTITION, target, "servers");
    const char *direction = fault_text(&FAULT_PARTITION, target, "direction");
    int replicas = target->server >= 0 ? replicas_connected(target, report) : 0;
    if (!rule_inject(&FAULT_PARTITION, target, servers, direction, &words, report)) return false;
    *replicas_of(target) = replicas;
    if (replicas > 0) target->means->server_replicas(target->means->conductor, target->server, 0);
    return true;
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    return rule_prove(target, "swallowed", report);
}

/* The connections that lost something are closed; replicas come back by themselves. */
static bool replicas_return(struct fault_target *target, struct fault_report *report) {
    struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    int missing = *replicas_of(target);
    for (int waited_ms = 0; waited_ms < REPLICAS_LIMIT_MS; waited_ms += LOOK_EVERY_MS) {
        if (replicas_connected(target, report) >= missing) {
            target->means->server_replicas(target->means->conductor, target->server, missing);
            *replicas_of(target) = 0;
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return fault_fail(report, "%d replicas of %s did not come back", missing, target->name);
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    if (!rule_heal(target, report)) return false;
    return *replicas_of(target) == 0 || replicas_return(target, report);
}

const struct fault FAULT_PARTITION = {
    .name = "partition",
    .summary = "cut a client, a server or a link off from the others, in one direction or both",
    .proof = "the proxy's count of bytes that were lost",
    .explanation =
        "Of a client: from the nodes it locks with, but not from the resource (option servers). Of a server: from everybody\n"
        "who comes to it, its replicas included. Of a link, by its name (\"redis-1-replica-1>redis-1\"). What is sent\n"
        "meanwhile is lost, new connections find nobody, and when the cut is healed the connections that lost something\n"
        "are closed, as after a partition that outlived its connections. It models no slow or lossy network.",
    .source = "redisson#3636, consul#18271: a holder cut off from the lock, not from the data; Jepsen's partitions",
    .target = "client",
    .options = OPTIONS,
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
