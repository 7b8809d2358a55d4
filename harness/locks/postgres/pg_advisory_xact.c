/* PostgreSQL's advisory lock of a transaction: it cannot be released before the transaction ends. */
#include "harness/locks/postgres/pg_transaction.h"

static const struct pg_transaction STATEMENTS = {
    .wait = "SELECT pg_advisory_xact_lock(" PG_ADVISORY_KEY ")",
    .try = "SELECT pg_try_advisory_xact_lock(" PG_ADVISORY_KEY ")",
    .taken = pg_truth,
};

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
    PG_TRANSACTION_FIELDS,
    .variant = &STATEMENTS,
    .is_held = pg_advisory_is_held,
};
