/* read-only: the server refuses writes with an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_command.h"
#include "faults/common/replicas.h"

static const char SETTING[] = "min-replicas-to-write";

struct read_only_state {
    bool requires_more; /* min-replicas-to-write was raised */
    bool demoted;
    int replicas; /* that were connected before */
    char before[16];
};

static bool require_more(struct fault_target *target, struct fault_report *report) {
    struct read_only_state *state = (void *)target->state;
    if (!admin_setting_read(target->socket, SETTING, state->before, sizeof state->before, report)) return false;
    state->requires_more =
        admin_command_ok(target->socket, NULL, report, "CONFIG SET %s %d", SETTING, state->replicas + 1);
    return state->requires_more;
}

/* Nothing listens at port 1 of the loopback interface, so the server never finds a master whose data would replace its
 * own. */
static bool read_only_demote(struct fault_target *target, struct fault_report *report) {
    struct read_only_state *state = (void *)target->state;
    char role[16];
    if (!admin_info_read(target->socket, "replication", "role", role, sizeof role, report)) return false;
    if (strcmp(role, "master") != 0) return fault_fail(report, "%s is a replica already", target->name);
    if (state->replicas > 0) replicas_leave(target);
    state->demoted = admin_command_ok(target->socket, NULL, report, "REPLICAOF 127.0.0.1 1");
    return state->demoted;
}

static bool read_only_inject(struct fault_target *target, struct fault_report *report) {
    struct read_only_state *state = (void *)target->state;
    int how = fault_option_choice(target, "how", FAULT_CHOICES("min-replicas", "replica"), report);
    if (how < 0) return false;
    state->replicas = replicas_connected(target->socket, report);
    return how == 0 ? require_more(target, report) : read_only_demote(target, report);
}

static bool read_only_prove(struct fault_target *target, struct fault_report *report) {
    return admin_write_refused(target, FAULT_CHOICES("READONLY", "NOREPLICAS"), report);
}

static bool read_only_heal(struct fault_target *target, struct fault_report *report) {
    struct read_only_state *state = (void *)target->state;
    if (state->requires_more &&
        !admin_command_ok(target->socket, NULL, report, "CONFIG SET %s %s", SETTING, state->before))
        return false;
    state->requires_more = false;
    if (!state->demoted) return true;
    if (!admin_command_ok(target->socket, NULL, report, "REPLICAOF NO ONE")) return false;
    if (state->replicas > 0 && !replicas_return(target, state->replicas, report)) return false;
    state->demoted = false;
    return true;
}

const struct fault FAULT_READ_ONLY = {
    .row = &FAULT_ROWS[FAULT_ID_READ_ONLY],
    .explanation =
        "An operator's mistake, or the state that a failover leaves: min-replicas-to-write requires one more replica\n"
        "than is connected (how=min-replicas), or the server was made the replica of an address where nothing\n"
        "listens (how=replica, which also disconnects its own replicas until it is healed). Reads are answered, and\n"
        "keys expire meanwhile: no client can acquire, and no holder can renew or release. Not modelled: a replica\n"
        "that gets another master's data.",
    .target = "server",
    .options = FAULT_OPTIONS(
        {"how", "min-replicas",
         "min-replicas: require more replicas than are connected; replica: make it a replica without a master"}),
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = read_only_inject,
    .prove = read_only_prove,
    .heal = read_only_heal,
};
