/* A row of a table, locked by an open transaction: SELECT ... FOR UPDATE. */
#include "harness/locks/postgres/pg_transaction.h"

extern const struct lock_type LOCK_PG_FOR_UPDATE;

static const char CREATE[] = "CREATE TABLE IF NOT EXISTS lock_row (name bytea PRIMARY KEY)";
static const char INSERT[] = "INSERT INTO lock_row VALUES ($1::bytea) ON CONFLICT DO NOTHING";
static const char WAIT[] = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE";
static const char TRY[] = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE NOWAIT";
/* A transaction that has locked a row has a transaction number. */
static const char IS_HELD[] = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";

/* Two clients that create a table at once can collide in the catalogue: then one of them has made it. */
static enum outcome pg_for_update_open(struct lock *lock) {
    enum outcome opened = pg_transaction_open(lock, WAIT, TRY, pg_rows);
    if (opened != OUTCOME_OK) return opened;
    const struct pg_transaction *self = lock->state;
    if (pg_run(lock, CREATE) == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    return pg_outcome(pg_ask(lock, self->name, INSERT)) == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static enum outcome pg_for_update_is_held(struct lock *lock) {
    return pg_truth(env_query(lock->env, 0, IS_HELD, NULL, 0));
}

const struct lock_type LOCK_PG_FOR_UPDATE = {
    .name = "pg-for-update",
    .summary = "SELECT ... FOR UPDATE: a row that an open transaction has locked",
    .explanation =
        "BEGIN, then SELECT ... FOR UPDATE of the row that stands for the resource; COMMIT releases it, and so does\n"
        "the end of the session. A client with a limited wait adds NOWAIT and rolls back when it is refused.\n"
        "Promises: one transaction holds the row, independent of clocks; what it writes to the same database is\n"
        "committed only while it does.\n"
        "Costs: 2 statements to acquire, 1 to release, a transaction number, and an open transaction that keeps\n"
        "VACUUM from removing newer row versions.\n"
        "Breaks: as pg-advisory, for everything outside of its transaction: when the connection ends the row is\n"
        "free, and a holder that does not check acts on. There is no fencing token.",
    .source = "PostgreSQL documentation, 13.3.2 Row-Level Locks; ShedLock and Quartz keep locks in rows",
    .capacity = 1,
    .transaction = true,
    .waits = LOCK_WAITS_IN_SERVER,
    .poll_ms = 1500,
    .service = LOCK_SERVICE_POSTGRES,
    .state_size = sizeof(struct pg_transaction),
    .open = pg_for_update_open,
    .acquire = pg_transaction_acquire,
    .release = pg_transaction_release,
    .is_held = pg_for_update_is_held,
    .close = pg_transaction_close,
};
