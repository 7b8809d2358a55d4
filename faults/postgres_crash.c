#include "faults/postgres_crash.h"

#include <inttypes.h>
#include <stdio.h>

#include "faults/postgres.h"

enum { STATEMENT = 128 };

/* Where the last checkpoint is: recovery ends with a new one. */
static const char CHECKPOINT[] = "SELECT (checkpoint_lsn - '0/0')::bigint FROM pg_control_checkpoint()";

struct state {
    bool killed;
    int64_t checkpoint;
    int64_t written; /* the number of a large object, which takes no table of ours */
};
_Static_assert(sizeof(struct state) <= FAULT_STATE, "it is kept in a target's state");

static struct state *state_of(struct fault_target *target) {
    return (struct state *)(void *)target->state;
}

bool postgres_crash_inject(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    const struct fault_means *means = target->means;
    if (!means->server_restart) return fault_fail(report, "nobody would start %s again", target->name);
    if (!postgres_ask(target, CHECKPOINT, &state->checkpoint, report) ||
        !postgres_ask(target, "SELECT lo_create(0)", &state->written, report))
        return false;
    means->unreliable(means->conductor);
    means->server_silent(means->conductor, target->server, true);
    state->killed = true;
    if (!postgres_end(target->pid, report)) return false;
    return means->settle(means->conductor) || fault_fail(report, "not every server answers");
}

bool postgres_crash_heal(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    const struct fault_means *means = target->means;
    if (!state->killed) return true;
    if (!means->server_restart(target->server)) return fault_fail(report, "%s did not start again", target->name);
    state->killed = false;
    means->server_silent(means->conductor, target->server, false);
    return true;
}

bool postgres_crash_prove(struct fault_target *target, struct fault_report *report) {
    struct state *state = state_of(target);
    char statement[STATEMENT];
    int64_t checkpoint, kept, removed = 0;
    snprintf(statement, sizeof statement, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = %" PRId64,
             state->written);
    if (!postgres_ask(target, CHECKPOINT, &checkpoint, report) || !postgres_ask(target, statement, &kept, report))
        return false;
    snprintf(statement, sizeof statement, "SELECT lo_unlink(%" PRId64 ")", state->written);
    if (kept == 1 && !postgres_ask(target, statement, &removed, report)) return false;
    snprintf(report->text, sizeof report->text,
             "its log was recovered up to %" PRIX64 ", before %" PRIX64 "; what was committed last is %s", checkpoint,
             state->checkpoint, kept ? "there" : "lost");
    return checkpoint > state->checkpoint && kept == 1;
}
