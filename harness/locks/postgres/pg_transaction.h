/* What the locks share that PostgreSQL keeps until a transaction ends. */
#ifndef LOCKSTORM_LOCKS_PG_TRANSACTION_H
#define LOCKSTORM_LOCKS_PG_TRANSACTION_H

#include "harness/locks/postgres/pg_session.h"

struct pg_transaction {
    char *name;
    /* Statements that take the lock inside a transaction, about the name in $1: one waits, the other says at once
     * whether it could (`taken` reads its reply). */
    const char *wait, *try;
    enum outcome (*taken)(const struct env_reply *reply);
};

/* Notes the statements; the session begins. */
enum outcome pg_transaction_open(struct lock *lock, const char *wait, const char *try,
                                 enum outcome (*taken)(const struct env_reply *reply));
/* As struct lock_type has them. A transaction that did not get the lock is rolled back. */
struct lock_grant pg_transaction_acquire(struct lock *lock, int64_t wait_ms);
enum outcome pg_transaction_release(struct lock *lock);
void pg_transaction_close(struct lock *lock);

#endif
