/* A row of a table, locked by an open transaction: SELECT ... FOR UPDATE. */
#include "harness/locks/pg_transaction.h"

extern const struct lock_type LOCK_PG_FOR_UPDATE;

static const char CREATE[] = "CREATE TABLE IF NOT EXISTS lock_row (name bytea PRIMARY KEY)";
static const char INSERT[] = "INSERT INTO lock_row VALUES ($1::bytea) ON CONFLICT DO NOTHING";
static const char WAIT[] = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE";
static const char TRY[] = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE NOWAIT";
/* Whoever locks a row has a number as a transaction. */
static const char IS_HELD[] = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";

/* Two who create a table at once can collide in the catalogue: then one of them has done it. */
static enum outcome open(struct lock *lock) {
    enum outcome opened = pg_transaction_open(lock, WAIT, TRY, pg_rows);
    if (opened != OUTCOME_OK) return opened;
    const struct pg_transaction *self = lock->state;
    if (pg_run(lock, CREATE) == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    return pg_outcome(pg_ask(lock, self->name, INSERT)) == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static enum outcome is_held(struct lock *lock) {
    return pg_truth(env_query(lock->env, 0, IS_HELD, NULL, 0));
}

const struct lock_type LOCK_PG_FOR_UPDATE = {
    .name = "pg-for-update",
    .summary = "SELECT ... FOR UPDATE: a row that an open transaction has locked",
    .explanation =
        "BEGIN, then SELECT ... FOR UPDATE of the row that stands for the resource; COMMIT gives it back, and so does the\n"
        "end of the session. Who may not wait long adds NOWAIT and rolls back what was refused.\n"
        "Promises: one transaction holds the row, whatever the clocks say; what it writes to the same database commits\n"
        "only while it does.\n"
        "Costs: 2 statements to acquire, 1 to release, a transaction number, and an open transaction that keeps VACUUM from\n"
        "what is newer.\n"
        "Breaks: as pg-advisory, for everything outside of its transaction: when the connection ends the row is free, and\n"
        "a holder that does not look acts on. There is no fencing token.",
    .source = "PostgreSQL documentation, 13.3.2 Row-Level Locks; ShedLock and Quartz keep locks in rows",
    .capacity = 1,
    .waits = LOCK_WAITS_IN_SERVER,
    .service = LOCK_SERVICE_POSTGRES,
    .state_size = sizeof(struct pg_transaction),
    .open = open,
    .acquire = pg_transaction_acquire,
    .release = pg_transaction_release,
    .is_held = is_held,
    .close = pg_transaction_close,
};
