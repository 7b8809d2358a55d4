/* max-clients: the server accepts no further connection.
 *
 * The fault's own connection is one of those that stay: healing needs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "harness/scheduler/hang_limit.h"

enum { REFUSAL_LIMIT_MS = 5000 };

struct max_clients_state {
    redisContext *link; /* NULL: the limit is unchanged */
    char before[16];
};

static int field(const redisReply *reply, const char *name) {
    const char *found = reply && reply->str ? strstr(reply->str, name) : NULL;
    return found ? atoi(found + strlen(name)) : 0;
}

/* How many connections the server counts when it accepts one; 0: it does not say. */
static int connections_count(redisContext *link) {
    redisReply *clients = redisCommand(link, "INFO clients"), *replicas = redisCommand(link, "INFO replication");
    int count = field(clients, "connected_clients:") + field(replicas, "connected_slaves:");
    if (clients) freeReplyObject(clients);
    if (replicas) freeReplyObject(replicas);
    return count;
}

static bool max_clients_inject(struct fault_target *target, struct fault_report *report) {
    struct max_clients_state *state = (void *)target->state;
    if (!admin_setting_read(target->socket, "maxclients", state->before, sizeof state->before, report)) return false;
    if (!target->driver->server_answers(target->driver->scheduler, target->server))
        return fault_fail(report, "%s does not answer", target->name);
    target->driver->unreliable(target->driver->scheduler); /* when a refusal arrives depends on the machine */
    redisContext *link = admin_connection_open(target->socket, report);
    if (!link) return false;
    int count = connections_count(link);
    if (count > 0 && admin_connection_command(link, report, "CONFIG SET maxclients %d", count)) {
        state->link = link;
        return true;
    }
    redisFree(link);
    return count > 0 ? false : fault_fail(report, "%s does not say how many are connected", target->name);
}

/* The refusal comes unasked, and nothing may be sent: the server closes the connection at once. */
static bool max_clients_prove(struct fault_target *target, struct fault_report *report) {
    redisContext *link = redisConnectUnix(target->socket);
    void *read = NULL;
    if (link && !link->err && hang_limit_await_readable(link->fd, hang_limit_deadline_ns(REFUSAL_LIMIT_MS)))
        redisGetReply(link, &read);
    redisReply *reply = read;
    bool refused = reply && reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "max number of clients");
    snprintf(report->text, sizeof report->text, "a new connection is answered: %.150s",
             reply && reply->str ? reply->str : "nothing");
    if (reply) freeReplyObject(reply);
    if (link) redisFree(link);
    return refused;
}

/* A server that was restarted meanwhile has its configured limit: the old connection is lost, a new one is accepted. */
static bool max_clients_heal(struct fault_target *target, struct fault_report *report) {
    struct max_clients_state *state = (void *)target->state;
    if (!state->link) return true;
    bool healed = admin_connection_command(state->link, report, "CONFIG SET maxclients %s", state->before) ||
                  admin_command_ok(target->socket, NULL, report, "CONFIG SET maxclients %s", state->before);
    redisFree(state->link);
    state->link = NULL;
    return healed;
}

const struct fault FAULT_MAX_CLIENTS = {
    .row = &FAULT_ROWS[FAULT_ID_MAX_CLIENTS],
    .explanation =
        "A mistake of configuration: maxclients is as low as the current number of connections. Connected clients\n"
        "continue and new connections are refused - that of a watchdog, of a subscriber, of a client that has just\n"
        "started or lost its connection. A place that becomes free can be taken. Not modelled: a server that is out\n"
        "of descriptors or memory, and a load balancer that queues connections.",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = max_clients_inject,
    .prove = max_clients_prove,
    .heal = max_clients_heal,
};
