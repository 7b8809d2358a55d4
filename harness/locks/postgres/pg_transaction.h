/* What the locks share that PostgreSQL keeps until a transaction ends. */
#pragma once

#include "harness/locks/postgres/pg_session.h"

/* A lock's `variant`: statements that take the lock inside a transaction, about the name in $1. One waits, the other
 * answers at once whether it could (`taken` reads its reply). */
struct pg_transaction {
    const char *wait, *try;
    enum outcome (*taken)(const struct env_reply *reply);
};

/* As struct lock_type has them. A transaction that did not get the lock is rolled back. */
struct lock_grant pg_transaction_acquire(struct lock *lock, int64_t wait_ms);
struct lock_grant pg_transaction_attempt(struct lock *lock);
enum outcome pg_transaction_release(struct lock *lock);

#define PG_TRANSACTION_FIELDS                                                                                          \
    PG_FIELDS, .transaction = true, .waits = LOCK_WAITS_IN_SERVER, .open = pg_session_begin,                           \
               .acquire = pg_transaction_acquire, .attempt = pg_transaction_attempt, .release = pg_transaction_release
