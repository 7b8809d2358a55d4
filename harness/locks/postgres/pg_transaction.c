#include "harness/locks/postgres/pg_transaction.h"

#include <stdlib.h>
#include <string.h>

enum outcome pg_transaction_open(struct lock *lock, const char *wait, const char *try,
                                 enum outcome (*taken)(const struct env_reply *reply)) {
    struct pg_transaction *self = lock->state;
    *self = (struct pg_transaction){pg_name(&lock->options), wait, try, taken};
    return pg_run(lock, "SELECT");
}

static enum outcome begin_and(struct lock *lock, bool blocking) {
    const struct pg_transaction *self = lock->state;
    enum outcome outcome = pg_run(lock, "BEGIN");
    if (outcome != OUTCOME_OK) return outcome;
    outcome = blocking ? pg_rows(pg_ask_blocking(lock, self->name, self->wait))
                       : self->taken(pg_ask(lock, self->name, self->try));
    env_checkpoint(lock->env, "after-acquire-reply");
    if (outcome == OUTCOME_REFUSED) pg_run(lock, "ROLLBACK");
    return outcome;
}

static struct lock_grant pg_transaction_attempt(struct lock *lock) {
    return (struct lock_grant){.outcome = begin_and(lock, false)};
}

struct lock_grant pg_transaction_acquire(struct lock *lock, int64_t wait_ms) {
    if (wait_ms >= 0) return poll_until_granted(lock, wait_ms, &PG_PACE, pg_transaction_attempt);
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

void pg_transaction_close(struct lock *lock) {
    free(((struct pg_transaction *)lock->state)->name);
}
