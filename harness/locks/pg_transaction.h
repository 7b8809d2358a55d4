/* Locks that PostgreSQL keeps until a transaction ends: what they share. */
#ifndef LOCKSTORM_LOCKS_PG_TRANSACTION_H
#define LOCKSTORM_LOCKS_PG_TRANSACTION_H

#include "harness/locks/pg_session.h"

struct pg_transaction {
    char *name;
    /* Statements that take the lock inside a transaction, about the name in $1: one waits, the other says at once
     * whether it could (`taken` reads its reply). */
    const char *wait, *try;
    enum outcome (*taken)(const struct env_reply *reply);
};

/* Keeps what the statements are; the session begins. */
enum outcome pg_transaction_open(struct lock *lock, const char *wait, const char *try,
                                 enum outcome (*taken)(const struct env_reply *reply));
/* What the lock table wants. A transaction that did not get the lock is rolled back. */
struct lock_grant pg_transaction_acquire(struct lock *lock, int64_t wait_ms);
enum outcome pg_transaction_release(struct lock *lock);
void pg_transaction_close(struct lock *lock);

#endif
