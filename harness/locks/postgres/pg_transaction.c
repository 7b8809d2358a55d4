#include "harness/locks/postgres/pg_transaction.h"

#include <string.h>

static enum outcome begin_and(struct lock *lock, bool blocking) {
    const struct pg_transaction *variant = lock->type->variant;
    enum outcome outcome = pg_run(lock, "BEGIN");
    if (outcome != OUTCOME_OK) return outcome;
    outcome = blocking ? pg_rows(pg_ask_blocking(lock, variant->wait)) : variant->taken(pg_ask(lock, variant->try));
    env_checkpoint(lock->env, "after-acquire-reply");
    if (outcome == OUTCOME_REFUSED) pg_run(lock, "ROLLBACK");
    return outcome;
}

struct lock_grant pg_transaction_attempt(struct lock *lock) {
    return (struct lock_grant){.outcome = begin_and(lock, false)};
}

struct lock_grant pg_transaction_acquire(struct lock *lock, int64_t wait_ms) {
    if (wait_ms >= 0) return poll_acquire(lock, wait_ms);
    return (struct lock_grant){.outcome = begin_and(lock, true)};
}

/* A COMMIT without a transaction succeeds with a warning. That cannot be seen here: only a lost session has no
 * transaction, and there this statement has no answer. */
enum outcome pg_transaction_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    const struct env_reply *reply = env_query(lock->env, 0, "COMMIT", NULL, 0);
    if (reply->kind != ENV_REPLY_STATUS) return pg_outcome(reply);
    return strcmp(reply->text, "COMMIT") == 0 ? OUTCOME_OK : OUTCOME_REFUSED; /* "ROLLBACK": it had failed before */
}
