#include "faults/server/postgres_crash.h"

#include <inttypes.h>
#include <stdio.h>

#include "faults/server/postgres.h"

enum { STATEMENT = 128 };

/* The position of the last checkpoint in the log: recovery ends with a new one. */
static const char CHECKPOINT[] = "SELECT (checkpoint_lsn - '0/0')::bigint FROM pg_control_checkpoint()";

struct postgres_crash_state {
    bool killed;
    int64_t checkpoint;
    int64_t written; /* the number of a large object: needs no table */
};
_Static_assert(sizeof(struct postgres_crash_state) <= FAULT_STATE, "fits the target's state");

static struct postgres_crash_state *postgres_crash_state_of(struct fault_target *target) {
    return (struct postgres_crash_state *)(void *)target->state;
}

bool postgres_crash_inject(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = postgres_crash_state_of(target);
    const struct fault_driver *driver = target->driver;
    if (!postgres_query(target, CHECKPOINT, &state->checkpoint, report) ||
        !postgres_query(target, "SELECT lo_create(0)", &state->written, report))
        return false;
    driver->unreliable(driver->scheduler);
    driver->server_silent(driver->scheduler, target->server, true);
    state->killed = true;
    if (!postgres_end(target->pid, report)) return false;
    return driver->settle(driver->scheduler) || fault_fail(report, "not every server answers");
}

bool postgres_crash_heal(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = postgres_crash_state_of(target);
    const struct fault_driver *driver = target->driver;
    if (!state->killed) return true;
    if (!driver->server_restart(target->server)) return fault_fail(report, "%s did not start again", target->name);
    state->killed = false;
    driver->server_silent(driver->scheduler, target->server, false);
    return true;
}

bool postgres_crash_prove(struct fault_target *target, struct fault_report *report) {
    struct postgres_crash_state *state = postgres_crash_state_of(target);
    char statement[STATEMENT];
    int64_t checkpoint, kept, removed = 0;
    snprintf(statement, sizeof statement, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = %" PRId64,
             state->written);
    if (!postgres_query(target, CHECKPOINT, &checkpoint, report) || !postgres_query(target, statement, &kept, report))
        return false;
    snprintf(statement, sizeof statement, "SELECT lo_unlink(%" PRId64 ")", state->written);
    if (kept == 1 && !postgres_query(target, statement, &removed, report)) return false;
    snprintf(report->text, sizeof report->text,
             "its log was recovered up to %" PRIX64 ", before %" PRIX64 "; what was committed last is %s", checkpoint,
             state->checkpoint, kept ? "there" : "lost");
    return checkpoint > state->checkpoint && kept == 1;
}
