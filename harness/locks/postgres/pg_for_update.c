/* A row of a table, locked by an open transaction: SELECT ... FOR UPDATE. */
#include "harness/locks/postgres/pg_transaction.h"

static const char CREATE[] = "CREATE TABLE IF NOT EXISTS lock_row (name bytea PRIMARY KEY)";
static const char INSERT[] = "INSERT INTO lock_row VALUES ($1::bytea) ON CONFLICT DO NOTHING";

static const struct pg_transaction STATEMENTS = {
    .wait = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE",
    .try = "SELECT FROM lock_row WHERE name = $1::bytea FOR UPDATE NOWAIT",
    .taken = pg_rows,
};

/* Two clients that create a table at once can collide in the catalogue: then one of them has made it. */
static enum outcome pg_for_update_open(struct lock *lock) {
    enum outcome opened = pg_session_begin(lock);
    if (opened != OUTCOME_OK) return opened;
    if (pg_run(lock, CREATE) == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    return pg_outcome(pg_ask(lock, INSERT)) == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
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
    PG_TRANSACTION_FIELDS,
    .variant = &STATEMENTS,
    .open = pg_for_update_open,
    .is_held = pg_transaction_holds_row,
};
