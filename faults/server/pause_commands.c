/* pause-commands (CLIENT PAUSE): the server makes its clients wait, all of them or those that write.
 *
 * The pause itself would last longer than any schedule; healing ends it, so that it lasts exactly as long as the trial
 * says. A pause of all commands makes CLIENT UNPAUSE wait too - but not on a connection that has sent MONITOR, so such
 * a connection is opened before. While all clients are paused it receives nothing, so nothing piles up for it. */
#include <stdio.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/replicas.h"

enum { UNANSWERED_MS = 100 };
static const long long PAUSE_MS = 1000LL * 1000 * 1000 * 1000;

struct pause_commands_state {
    bool all, paused;
    int replicas;          /* in mode write their acknowledgements wait, too */
    redisContext *monitor; /* of a pause of all */
};

static bool pause_all(struct fault_target *target, struct fault_report *report) {
    struct pause_commands_state *state = (void *)target->state;
    redisContext *monitor = admin_connection_open(target->socket, report);
    state->paused = monitor && admin_connection_command(monitor, report, "MONITOR") &&
                    admin_command_ok(target->socket, NULL, report, "CLIENT PAUSE %lld ALL", PAUSE_MS);
    if (state->paused) {
        state->monitor = monitor;
        target->driver->server_silent(target->driver->scheduler, target->server, true);
    } else {
        redisFree(monitor);
    }
    return state->paused;
}

static bool pause_commands_inject(struct fault_target *target, struct fault_report *report) {
    struct pause_commands_state *state = (void *)target->state;
    int mode = fault_option_choice(target, "mode", FAULT_CHOICES("write", "all"), report);
    if (mode < 0) return false;
    state->all = mode == 1;
    target->driver->unreliable(target->driver->scheduler);
    if (state->all) return pause_all(target, report);
    state->replicas = replicas_connected(target->socket, report);
    if (state->replicas > 0) replicas_leave(target);
    state->paused = admin_command_ok(target->socket, NULL, report, "CLIENT PAUSE %lld WRITE", PAUSE_MS);
    return state->paused;
}

/* The write has no effect if it runs after all. */
static bool pause_commands_prove(struct fault_target *target, struct fault_report *report) {
    struct admin_reply reply;
    const struct probe_key key = fault_probe_key(target);
    if (admin_command_within(target->socket, UNANSWERED_MS, &reply, report, "DEL %s", key.text))
        return fault_fail(report, "a write is answered: %.200s", reply.text);
    snprintf(report->text, sizeof report->text, "a write is not answered within %d ms", UNANSWERED_MS);
    return true;
}

/* Sends a command and skips what MONITOR reports before its reply. */
static bool monitor_command(redisContext *monitor, const char *command, const char *expected) {
    void *read = NULL;
    bool answered = false;
    redisAppendCommand(monitor, command);
    while (!answered && redisGetReply(monitor, &read) == REDIS_OK && read) {
        const redisReply *reply = read;
        answered = reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, expected) == 0;
        freeReplyObject(read);
    }
    return answered;
}

/* A client that closed its connection meanwhile takes its command back once the server has noticed: that comes first.
 */
static bool unpause(struct fault_target *target, struct fault_report *report) {
    struct pause_commands_state *state = (void *)target->state;
    target->driver->settle(target->driver->scheduler);
    if (!state->all) return admin_command_ok(target->socket, NULL, report, "CLIENT UNPAUSE");
    if (!state->monitor) return true;
    if (monitor_command(state->monitor, "PING", "PONG")) monitor_command(state->monitor, "CLIENT UNPAUSE", "OK");
    redisFree(state->monitor);
    state->monitor = NULL;
    return true;
}

/* The DEL at the end runs after all commands that had to wait. A server that was restarted meanwhile is not paused. */
static bool pause_commands_heal(struct fault_target *target, struct fault_report *report) {
    struct pause_commands_state *state = (void *)target->state;
    const struct probe_key key = fault_probe_key(target);
    if (!state->paused) return true;
    if (!unpause(target, report) || !admin_command_ok(target->socket, NULL, report, "DEL %s", key.text)) return false;
    if (state->all) target->driver->server_silent(target->driver->scheduler, target->server, false);
    state->paused = false;
    return state->replicas == 0 || replicas_return(target, state->replicas, report);
}

const struct fault FAULT_PAUSE_COMMANDS = {
    .row = &FAULT_ROWS[FAULT_ID_PAUSE_COMMANDS],
    .explanation =
        "An operator pauses the clients for a manual failover and forgets to end the pause: the server accepts\n"
        "commands and runs none until the fault is healed. Its time passes meanwhile, so leases expire, and a\n"
        "renewal that waits comes too late. In mode write reads are answered, but WAIT is not. A client that gives\n"
        "up and closes its connection takes its command with it. Replication continues. Not modelled: a pause that\n"
        "ends by its own timeout.",
    .target = "server",
    .options = FAULT_OPTIONS({"mode", "write", "which commands wait: write (those that would change data) or all"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = pause_commands_inject,
    .prove = pause_commands_prove,
    .heal = pause_commands_heal,
};
