/* read-only: the server takes no writes, and its clients hear so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/ask.h"
#include "faults/replicas.h"

extern const struct fault FAULT_READ_ONLY;

static const char SETTING[] = "min-replicas-to-write";

static const struct fault_word OPTIONS[] = {
    {"how", "min-replicas", "min-replicas: more replicas are asked for than there are; replica: it follows nobody"},
    {0},
};

struct state {
    bool asks_for_more; /* the setting was changed */
    bool demoted;
    int replicas; /* that it had */
    char before[16];
};

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

static bool ask_for_more(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    if (!ask_setting(target->socket, SETTING, state->before, sizeof state->before, report)) return false;
    state->asks_for_more = ask_good(target->socket, &answer, report, "CONFIG SET %s %d", SETTING, state->replicas + 1);
    return state->asks_for_more;
}

/* Port 1 of the loopback interface: nobody listens, so it never finds a master whose data could replace its own. */
static bool demote(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    char role[16] = "";
    if (!ask_good(target->socket, &answer, report, "INFO replication")) return false;
    if (!answer_line(&answer, "role", role, sizeof role) || strcmp(role, "master") != 0)
        return fault_fail(report, "%s is a replica already", target->name);
    if (state->replicas > 0) replicas_leave(target);
    state->demoted = ask_good(target->socket, &answer, report, "REPLICAOF 127.0.0.1 1");
    return state->demoted;
}

static bool inject(struct fault_target *target, struct fault_report *report) {
    const char *how = fault_text(&FAULT_READ_ONLY, target, "how");
    state_of(target)->replicas = replicas_connected(target->socket, report);
    if (strcmp(how, "min-replicas") == 0) return ask_for_more(target, report);
    if (strcmp(how, "replica") == 0) return demote(target, report);
    return fault_fail(report, "how=%.40s: there are min-replicas and replica", how);
}

static bool prove(struct fault_target *target, struct fault_report *report) {
    struct answer answer, removed;
    char key[PROBE_KEY];
    probe_key(target, "read-only", key);
    if (!ask(target->socket, &answer, report, "SET %s written", key)) return false;
    snprintf(report->text, sizeof report->text, "a write is answered: %.200s", answer.text);
    if (strncmp(answer.text, "READONLY", 8) == 0 || strncmp(answer.text, "NOREPLICAS", 10) == 0) return true;
    struct fault_report ignored;
    ask(target->socket, &removed, &ignored, "DEL %s", key);
    return false;
}

static bool heal(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    struct answer answer;
    if (state->asks_for_more && !ask_good(target->socket, &answer, report, "CONFIG SET %s %s", SETTING, state->before))
        return false;
    state->asks_for_more = false;
    if (!state->demoted) return true;
    if (!ask_good(target->socket, &answer, report, "REPLICAOF NO ONE")) return false;
    if (state->replicas > 0 && !replicas_return(target, state->replicas, report)) return false;
    state->demoted = false;
    return true;
}

const struct fault FAULT_READ_ONLY = {
    .name = "read-only",
    .summary = "the server takes no writes: -NOREPLICAS or -READONLY",
    .proof = "a write of its own is answered by -NOREPLICAS or -READONLY",
    .explanation =
        "An operator's mistake, or what a failover leaves behind: min-replicas-to-write asks for one more replica than is\n"
        "connected (how=min-replicas), or the server was made the replica of an address where nobody is (how=replica,\n"
        "which also throws its own replicas out until it is healed). Reads are answered, and keys run out meanwhile:\n"
        "nobody can acquire, and no holder can renew or release. Not modelled: a replica that gets another master's data.",
    .source =
        "Redis, Replication (min-replicas-to-write; read-only replicas); aspnet-redis-providers#130: locks after a failover",
    .target = "server",
    .options = OPTIONS,
    .times = FAULT_VIRTUAL | FAULT_REAL,
    .inject = inject,
    .prove = prove,
    .heal = heal,
};
