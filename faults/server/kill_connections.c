/* kill-connections: the server closes its clients' connections.
 *
 * Those of the trial itself (driver, scheduler, faults) bear a name in the server's list and are spared, so that the
 * number of killed connections is that of clients. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"

struct kill_connections_state {
    long long killed, newest; /* how many, and the highest id among them */
};

/* Calls a function for every client connection that the server lists; false with a sentence when it does not list them.
 */
static bool each_client(redisContext *link, const char *type, struct fault_report *report,
                        void (*each)(redisContext *link, long long id, struct kill_connections_state *state),
                        struct kill_connections_state *state) {
    redisReply *list = redisCommand(link, "CLIENT LIST TYPE %s", type);
    bool listed = list && list->type == REDIS_REPLY_STRING;
    if (!listed) fault_fail(report, "CLIENT LIST: %.100s", list && list->str ? list->str : link->errstr);
    char *rest = NULL;
    for (char *line = listed ? strtok_r(list->str, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "id=", 3) == 0 && !strstr(line, " name=" ADMIN_CONNECTION_NAME " "))
            each(link, strtoll(line + 3, NULL, 10), state);
    freeReplyObject(list);
    return listed;
}

static void kill_one(redisContext *link, long long id, struct kill_connections_state *state) {
    redisReply *reply = redisCommand(link, "CLIENT KILL ID %lld", id);
    bool killed = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    state->killed += killed;
    if (killed && id > state->newest) state->newest = id;
    freeReplyObject(reply);
}

/* Connections that were opened later have higher ids. */
static void count_left(redisContext *link, long long id, struct kill_connections_state *state) {
    (void)link;
    if (id <= state->newest) state->killed--;
}

/* Calls a function for every client connection of the types that the option names. */
static bool each_of_type(struct fault_target *target, struct fault_report *report,
                         void (*each)(redisContext *link, long long id, struct kill_connections_state *state),
                         struct kill_connections_state *state) {
    enum { NORMAL, PUBSUB, ALL };
    int type = fault_option_choice(target, "type", FAULT_CHOICES("normal", "pubsub", "all"), report);
    redisContext *link = type >= 0 ? admin_connection_open(target->socket, report) : NULL;
    if (!link) return false;
    bool listed = (type == PUBSUB || each_client(link, "normal", report, each, state)) &&
                  (type == NORMAL || each_client(link, "pubsub", report, each, state));
    redisFree(link);
    return listed;
}

static bool kill_connections_inject(struct fault_target *target, struct fault_report *report) {
    if (!each_of_type(target, report, kill_one, (void *)target->state)) return false;
    return target->driver->settle(target->driver->scheduler) || fault_fail(report, "not every server answers");
}

static bool kill_connections_prove(struct fault_target *target, struct fault_report *report) {
    const struct kill_connections_state *state = (void *)target->state;
    struct kill_connections_state seen = *state;
    if (seen.killed == 0) return fault_fail(report, "there was no such connection to close");
    if (!each_of_type(target, report, count_left, &seen)) return false;
    snprintf(report->text, sizeof report->text, "%lld of %lld connections are gone", seen.killed, state->killed);
    return seen.killed == state->killed;
}

const struct fault FAULT_KILL_CONNECTIONS = {
    .row = &FAULT_ROWS[FAULT_ID_KILL_CONNECTIONS],
    .explanation =
        "An operator's mistake, or the effect of a load balancer with an idle limit: the server closes every client\n"
        "connection that exists at this moment, or only those of subscribers. A command without a reply has an\n"
        "unknown outcome for the client; a subscription ends without a message; a blocking pop ends without an\n"
        "element. New connections are accepted at once, so healing does nothing. Replicas keep theirs: see\n"
        "partition. A message lost in flight: kill-subscriber.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"type", "all", "which connections: normal, pubsub (subscribers) or all of both; never those of replicas"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = kill_connections_inject,
    .prove = kill_connections_prove,
};
