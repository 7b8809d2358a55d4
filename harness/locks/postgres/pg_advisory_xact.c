/* PostgreSQL's advisory lock of a transaction: it cannot be released before the transaction ends. */
#include "harness/locks/postgres/pg_transaction.h"

extern const struct lock_type LOCK_PG_ADVISORY_XACT;

#define KEY "hashtextextended($1, 0)"

static const char WAIT[] = "SELECT pg_advisory_xact_lock(" KEY ")";
static const char TRY[] = "SELECT pg_try_advisory_xact_lock(" KEY ")";
static const char IS_HELD[] =
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND pid = pg_backend_pid() AND classid::bigint << 32 | objid::bigint = " KEY ")";

static enum outcome pg_advisory_xact_open(struct lock *lock) {
    return pg_transaction_open(lock, WAIT, TRY, pg_truth);
}

static enum outcome pg_advisory_xact_is_held(struct lock *lock) {
    const struct pg_transaction *self = lock->state;
    return pg_truth(pg_ask(lock, self->name, IS_HELD));
}

const struct lock_type LOCK_PG_ADVISORY_XACT = {
    .name = "pg-advisory-xact",
    .summary = "pg_advisory_xact_lock: a lock that ends with the transaction",
    .explanation =
        "BEGIN, then pg_advisory_xact_lock(key); only COMMIT or ROLLBACK releases it.\n"
        "Promises: as pg-advisory, and the release cannot be forgotten; a pool that hands out sessions per\n"
        "transaction does not break it.\n"
        "Costs: 2 statements to acquire, 1 to release, and a transaction that stays open while the holder works.\n"
        "Breaks: as pg-advisory, when the connection ends under a holder that does not check. There is no fencing\n"
        "token.",
    .source = "PostgreSQL documentation, 13.3.5 Advisory Locks and 9.27.10 Advisory Lock Functions",
    .capacity = 1,
    .transaction = true,
    .waits = LOCK_WAITS_IN_SERVER,
    .poll_ms = 1500,
    .service = LOCK_SERVICE_POSTGRES,
    .state_size = sizeof(struct pg_transaction),
    .open = pg_advisory_xact_open,
    .acquire = pg_transaction_acquire,
    .release = pg_transaction_release,
    .is_held = pg_advisory_xact_is_held,
    .close = pg_transaction_close,
};
