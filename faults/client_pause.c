/* client-pause: the server makes its clients wait, all of them or those that write.
 *
 * The pause itself has no end that a schedule could reach; healing ends it, so that it lasts exactly as long as the
 * trial says. A pause of all makes CLIENT UNPAUSE wait too - but not on a connection that has sent MONITOR: such a one
 * is opened before. While everybody is paused it is told of nothing, so nothing piles up for it. */
#include <stdio.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/own_link.h"
#include "faults/replicas.h"

extern const struct fault FAULT_CLIENT_PAUSE;

enum { UNANSWERED_MS = 100 };
static const long long PAUSE_MS = 1000LL * 1000 * 1000 * 1000;

static const struct fault_word OPTIONS[] = {
    {"mode", "write", "who waits: write (whoever would change something) or all"},
    {0},
};

struct state {
    bool all, paused;
    int replicas;          /* whose acknowledgements wait too, in mode write */
    redisContext *monitor; /* of a pause of all */
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static bool pause_all(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    redisContext *monitor = own_link_open(target->socket, ASK_LIMIT_MS, report);
    state->paused = monitor && own_link_do(monitor, report, "MONITOR") &&
                    ask_good(target->socket, &answer, report, "CLIENT PAUSE %lld ALL", PAUSE_MS);
    if (state->paused) {
        state->monitor = monitor;
        target->means->server_silent(target->means->conductor, target->server, true);
    } else if (monitor) {
        redisFree(monitor);
    }
    return state->paused;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    const char *mode = fault_text(&FAULT_CLIENT_PAUSE, target, "mode");
    state->all = strcmp(mode, "all") == 0;
    if (!state->all && strcmp(mode, "write") != 0)
        return fault_fail(report, "mode=%.40s: there are write and all", mode);
    target->means->unreliable(target->means->conductor);
    if (state->all) return pause_all(target, report);
    state->replicas = replicas_connected(target->socket, report);
    if (state->replicas > 0) replicas_leave(target);
    state->paused = ask_good(target->socket, &answer, report, "CLIENT PAUSE %lld WRITE", PAUSE_MS);
    return state->paused;
}

/* A write that does nothing when it is let through after all. */
static bool prove(struct fault_target *target, struct fault_report *report) {
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "client-pause", key);
    if (ask_within(target->socket, UNANSWERED_MS, &answer, report, "DEL %s", key))
        return fault_fail(report, "a write is answered: %.200s", answer.text);
    snprintf(report->text, sizeof report->text, "a write is not answered within %d ms", UNANSWERED_MS);
    return true;
}

/* Passes over what MONITOR tells before the answer. */
static bool tell(redisContext *monitor, const char *command, const char *answer) {
    void *read = NULL;
    bool answered = false;
    redisAppendCommand(monitor, command);
    while (!answered && redisGetReply(monitor, &read) == REDIS_OK && read) {
        const redisReply *reply = read;
        answered = reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, answer) == 0;
        freeReplyObject(read);
    }
    return answered;
}

/* Who closed its connection meanwhile has taken its command with it, once the server has looked: that comes first. */
static bool unpause(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    target->means->settle(target->means->conductor);
    if (!state->all) return ask_good(target->socket, &answer, report, "CLIENT UNPAUSE");
    if (!state->monitor) return true;
    if (tell(state->monitor, "PING", "PONG")) tell(state->monitor, "CLIENT UNPAUSE", "OK");
    redisFree(state->monitor);
    state->monitor = NULL;
    return true;
}

/* The write at the end comes after all that had to wait; a server that was started again meanwhile is not paused. */
static bool heal(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    char key[PROBE_KEY];
    probe_key(target, "client-pause", key);
    if (!state->paused) return true;
    if (!unpause(target, report) || !ask_good(target->socket, &answer, report, "DEL %s", key)) return false;
    if (state->all) target->means->server_silent(target->means->conductor, target->server, false);
    state->paused = false;
    return state->replicas == 0 || replicas_return(target, state->replicas, report);
}

const struct fault FAULT_CLIENT_PAUSE = {
    .name = "client-pause",
    .summary = "CLIENT PAUSE: the server lets its clients wait, all or those that write",
    .proof = "a write of its own is not answered",
    .explanation =
        "What an operator does for a manual failover, and forgets to end: commands are accepted and wait until the pause\n"
        "is healed. The server's time goes on, so leases run out, and a renewal that waits comes too late. In mode write\n"
        "reads are answered, but WAIT is not. A client that gives up and closes its connection takes its command with it.\n"
        "Replication goes on. Not modelled: a pause that ends by its own time.",
    .source = "Redis, CLIENT PAUSE (mode WRITE since 6.2); redisson#1966: CLIENT PAUSE 5000, renewed for ever after",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
