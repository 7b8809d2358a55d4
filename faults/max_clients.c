/* max-clients: the server accepts no connection more than there are.
 *
 * Its own connection is one of them and stays: nobody could undo it otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/own_link.h"

extern const struct fault FAULT_MAX_CLIENTS;

enum { REFUSAL_LIMIT_MS = 500 };

struct state {
    redisContext *link; /* NULL: nothing is changed */
    char before[16];
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static int field(const redisReply *reply, const char *name) {
    const char *found = reply && reply->str ? strstr(reply->str, name) : NULL;
    return found ? atoi(found + strlen(name)) : 0;
}

/* As the server counts them when it accepts one; 0: it does not say. */
static int connections_count(redisContext *link) {
    redisReply *clients = redisCommand(link, "INFO clients"), *replicas = redisCommand(link, "INFO replication");
    int count = field(clients, "connected_clients:") + field(replicas, "connected_slaves:");
    if (clients) freeReplyObject(clients);
    if (replicas) freeReplyObject(replicas);
    return count;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    if (!ask_setting(target->socket, "maxclients", state->before, sizeof state->before, report)) return false;
    if (!target->means->server_answers(target->means->conductor, target->server))
        return fault_fail(report, "%s does not answer", target->name);
    target->means->unreliable(target->means->conductor); /* when a refusal arrives is the machine's affair */
    redisContext *link = own_link_open(target->socket, ASK_LIMIT_MS, report);
    if (!link) return false;
    int count = connections_count(link);
    if (count > 0 && own_link_do(link, report, "CONFIG SET maxclients %d", count)) {
        state->link = link;
        return true;
    }
    redisFree(link);
    return count > 0 ? false : fault_fail(report, "%s does not say how many are connected", target->name);
}

/* The refusal comes before anything is asked, and nothing may be sent: the server closes at once. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    struct timeval limit = {.tv_usec = REFUSAL_LIMIT_MS * 1000};
    redisContext *link = redisConnectUnixWithTimeout(target->socket, limit);
    void *read = NULL;
    if (link && !link->err && redisSetTimeout(link, limit) == REDIS_OK) redisGetReply(link, &read);
    redisReply *reply = read;
    bool refused = reply && reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "max number of clients");
    snprintf(report->text, sizeof report->text, "a new connection is answered: %.150s",
             reply && reply->str ? reply->str : "nothing");
    if (reply) freeReplyObject(reply);
    if (link) redisFree(link);
    return refused;
}

/* A server that was started again meanwhile has its usual limit: our connection is gone, and a new one can be had. */
static bool heal(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    if (!state->link) return true;
    bool healed = own_link_do(state->link, report, "CONFIG SET maxclients %s", state->before) ||
                  ask_good(target->socket, &answer, report, "CONFIG SET maxclients %s", state->before);
    redisFree(state->link);
    state->link = NULL;
    return healed;
}

const struct fault FAULT_MAX_CLIENTS = {
    .name = "max-clients",
    .summary = "the server accepts no new connection",
    .proof = "a new connection is refused in the server's words: max number of clients reached",
    .explanation =
        "A mistake of configuration: maxclients is as low as the number of connections that there are, so whoever is\n"
        "connected goes on and whoever comes is refused - the connection of a watchdog, of a subscriber, of a client that\n"
        "has just started or lost the one it had. A place that is freed can be taken. Not modelled: a server that is out\n"
        "of descriptors or memory, and a load balancer that lets connections wait.",
    .source = "redisson#1288; Redis, Client handling: maximum concurrent connected clients",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
