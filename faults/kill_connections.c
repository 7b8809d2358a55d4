/* kill-connections: the server closes its clients' connections.
 *
 * The list tells whose they are: those of the trial itself (driver, conductor, faults) have a name and are spared, so
 * that the number killed says something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/own_link.h"

extern const struct fault FAULT_KILL_CONNECTIONS;

static const struct fault_word OPTIONS[] = {
    {"type", "all", "which connections: normal, pubsub (subscribers) or all of both; never those of replicas"},
    {0},
};

struct state {
    long long killed, newest; /* how many, and the highest number among them */
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static bool is_own(const char *line) {
    return strstr(line, " name=" OWN_NAME " ") != NULL;
}

/* Calls a function for every connection of a client that the server lists; false with a sentence when it does not. */
static bool each_client(redisContext *link, const char *type, struct fault_report *report,
                        void (*each)(redisContext *link, long long id, struct state *state), struct state *state) {
    redisReply *list = redisCommand(link, "CLIENT LIST TYPE %s", type);
    bool listed = list && list->type == REDIS_REPLY_STRING;
    if (!listed) fault_fail(report, "CLIENT LIST: %.100s", list && list->str ? list->str : link->errstr);
    char *rest = NULL;
    for (char *line = listed ? strtok_r(list->str, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "id=", 3) == 0 && !is_own(line)) each(link, strtoll(line + 3, NULL, 10), state);
    if (list) freeReplyObject(list);
    return listed;
}

static void kill_one(redisContext *link, long long id, struct state *state) {
    redisReply *reply = redisCommand(link, "CLIENT KILL ID %lld", id);
    bool killed = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    state->killed += killed;
    if (killed && id > state->newest) state->newest = id;
    if (reply) freeReplyObject(reply);
}

/* Those that came later have higher numbers. */
static void count_left(redisContext *link, long long id, struct state *state) {
    (void)link;
    if (id <= state->newest) state->killed--;
}

/* For the type or types that the option names. */
static bool each_of_type(struct fault_target *target, struct fault_report *report,
                         void (*each)(redisContext *link, long long id, struct state *state), struct state *state) {
    const char *type = fault_text(&FAULT_KILL_CONNECTIONS, target, "type");
    bool all = strcmp(type, "all") == 0, known = all || strcmp(type, "normal") == 0 || strcmp(type, "pubsub") == 0;
    if (!known) return fault_fail(report, "type=%.40s: there are normal, pubsub and all", type);
    redisContext *link = own_link_open(target->socket, ASK_LIMIT_MS, report);
    if (!link) return false;
    bool listed = each_client(link, all ? "normal" : type, report, each, state) &&
                  (!all || each_client(link, "pubsub", report, each, state));
    redisFree(link);
    return listed;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    if (!each_of_type(target, report, kill_one, state_of(target))) return false;
    return target->means->settle(target->means->conductor) || fault_fail(report, "not every server answers");
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct state seen = *state_of(target);
    if (seen.killed == 0) return fault_fail(report, "there was no such connection to close");
    if (!each_of_type(target, report, count_left, &seen)) return false;
    snprintf(report->text, sizeof report->text, "%lld of %lld connections are gone", seen.killed,
             state_of(target)->killed);
    return seen.killed == state_of(target)->killed;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    (void)target, (void)report;
    return true; /* whoever needs a connection makes one */
}

const struct fault FAULT_KILL_CONNECTIONS = {
    .name = "kill-connections",
    .summary = "CLIENT KILL: the server closes the connections of its clients",
    .proof = "how many were closed, and that CLIENT LIST has none of them any more",
    .explanation =
        "An operator's mistake, or what a load balancer with an idle limit does: every connection there is at this moment\n"
        "is closed, or only those of subscribers. What was asked and not yet answered has no outcome for the client; a\n"
        "subscription ends without a message; a blocking pop ends without an element. New connections are accepted at\n"
        "once, so healing does nothing. Replicas keep theirs: see partition. A message lost in flight: kill-subscriber.",
    .source = "redisson#6026, #2180 (subscriptions not made again), #2515 (renewals that ended); Redis, CLIENT KILL",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
