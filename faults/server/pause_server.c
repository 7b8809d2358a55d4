/* pause-server: a server's process is stopped. What it is sent waits in the kernel until the process continues. */
#include <stdio.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/process.h"
#include "faults/server/postgres.h"

enum { SILENCE_MS = 50, RETURN_LIMIT_MS = 60000 };

struct pause_server_state {
    bool sent, silent;
};

static bool pause_server_inject(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct pause_server_state *state = (void *)target->state;
    driver->unreliable(driver->scheduler);
    driver->server_silent(driver->scheduler, target->server, true);
    state->silent = true;
    return (is_postgres(target) ? postgres_stop : process_stop)(target, &state->sent, report);
}

static bool answers(const struct fault_target *target) {
    if (is_postgres(target)) return postgres_answers(target, SILENCE_MS);
    return admin_command_within(target->socket, SILENCE_MS, NULL, NULL, "PING");
}

static bool pause_server_prove(struct fault_target *target, struct fault_report *report) {
    if (!(is_postgres(target) ? postgres_prove_stopped : process_prove_stopped)(target, report)) return false;
    if (!is_postgres(target) && !target->socket) return true; /* it would not know a PING */
    if (answers(target)) return fault_fail(report, "it answered");
    size_t used = strlen(report->text);
    const char *question = is_postgres(target) ? "" : " to a PING";
    snprintf(report->text + used, sizeof report->text - used, ", no answer%s within %d ms", question, SILENCE_MS);
    return true;
}

/* The server has to answer again, unless another fault prevents it. */
static bool pause_server_heal(struct fault_target *target, struct fault_report *report) {
    const struct fault_driver *driver = target->driver;
    struct pause_server_state *state = (void *)target->state;
    bool continues = (is_postgres(target) ? postgres_continue : process_continue)(target, &state->sent, report);
    if (!state->silent) return true;
    state->silent = false;
    driver->server_silent(driver->scheduler, target->server, false);
    if (!continues || !target->socket || !driver->server_works(driver->scheduler, target->server)) return continues;
    if (is_postgres(target))
        return postgres_answers(target, RETURN_LIMIT_MS) || fault_fail(report, "%s does not answer", target->name);
    return admin_command_ok(target->socket, NULL, report, "PING");
}

const struct fault FAULT_PAUSE_SERVER = {
    .row = &FAULT_ROWS[FAULT_ID_PAUSE_SERVER],
    .explanation =
        "SIGSTOP, confirmed; SIGCONT heals, and a redis-server has to answer. Connections stay open and commands\n"
        "queue in the kernel: a client that gave up waiting has an unknown outcome, and its command runs when the\n"
        "server continues, by the clock of that moment. This models a fork that takes long, swapping, and a virtual\n"
        "machine that is migrated. Not modelled: a crash (nothing is lost) and a network cut (what was sent\n"
        "arrives).",
    .target = "server",
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = pause_server_inject,
    .prove = pause_server_prove,
    .heal = pause_server_heal,
};
