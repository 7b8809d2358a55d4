/* partition: what is sent between two sides is lost, in one direction or in both.
 *
 * When a server's replicas are behind the cut, their acknowledgements must not be waited for meanwhile. */
#include "faults/common/proxy_rule.h"
#include "faults/common/replicas.h"

/* In the target's state, behind the name of the rule: how many replicas were cut off. */
enum { REPLICAS_AT = 128 };

static int *replicas_of(struct fault_target *target) {
    return (int *)(void *)(target->state + REPLICAS_AT);
}

static bool partition_inject(struct fault_target *target, struct fault_report *report) {
    struct proxy_rule_words words = {0};
    proxy_rule_add_word(&words, "black-hole");
    const char *servers = fault_option_text(target, "servers");
    const char *direction = fault_option_text(target, "direction");
    int replicas = target->server >= 0 && !target->service ? replicas_connected(target->socket, report) : 0;
    if (!proxy_rule_inject(target, servers, direction, &words, report)) return false;
    *replicas_of(target) = replicas;
    if (replicas > 0) replicas_leave(target);
    return true;
}

static bool partition_prove(struct fault_target *target, struct fault_report *report) {
    return proxy_rule_prove(target, "swallowed", report);
}

/* The proxy closes the connections that lost something; replicas reconnect by themselves. */
static bool partition_heal(struct fault_target *target, struct fault_report *report) {
    int *missing = replicas_of(target);
    if (!proxy_rule_heal(target, report)) return false;
    if (*missing > 0 && !replicas_return(target, *missing, report)) return false;
    *missing = 0;
    return true;
}

const struct fault FAULT_PARTITION = {
    .row = &FAULT_ROWS[FAULT_ID_PARTITION],
    .explanation =
        "Of a client: from the servers it locks with, but not from the resource (option servers). Of a server: from\n"
        "all that connect to it, its replicas included. Of a link, by its name (\"redis-1-replica-1>redis-1\"). What\n"
        "is sent meanwhile is lost, new connections get no answer, and when the cut is healed the connections that\n"
        "lost something are closed, as after a partition that outlived its connections. Not modelled: a slow or\n"
        "lossy network.",
    .target = "client",
    .options = FAULT_OPTIONS({"servers", "redis-*", "of a client: the servers that it is cut off from"},
                             {"direction", "both", "what is lost: both, to-server or to-client"}),
    .moment = FAULT_BEFORE_HEAL,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = partition_inject,
    .prove = partition_prove,
    .heal = partition_heal,
};
