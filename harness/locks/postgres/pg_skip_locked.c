/* An outbox: messages in a table, each claimed by one publisher: SELECT ... FOR UPDATE SKIP LOCKED. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/locks/postgres/pg_session.h"

enum { NUMBER_ROOM = 24 };

struct pg_skip_locked {
    struct pg_session queue;   /* first: the shared functions use it as the lock's state */
    char claimed[NUMBER_ROOM]; /* the message's number */
};

static const char CREATE[] =
    "CREATE TABLE IF NOT EXISTS outbox (queue bytea, id bigint, sent timestamptz, PRIMARY KEY (queue, id))";
static const char INSERT[] =
    "INSERT INTO outbox SELECT $1::bytea, generate_series(1, $2::bigint) ON CONFLICT DO NOTHING";
static const char CLAIM[] = "SELECT id FROM outbox WHERE queue = $1::bytea AND sent IS NULL ORDER BY id LIMIT 1 "
                            "FOR UPDATE SKIP LOCKED";
static const char MARK[] = "UPDATE outbox SET sent = clock_timestamp() WHERE queue = $1::bytea AND id = $2::bigint";

static const struct env_reply *pg_skip_locked_ask(struct lock *lock, const char *statement, const char *number) {
    const char *parameters[] = {((struct pg_session *)lock->state)->name, number};
    return env_query(lock->env, 0, statement, parameters, 2);
}

/* Two clients that create a table at once can collide in the catalogue: then one of them has made it. */
static enum outcome pg_skip_locked_open(struct lock *lock) {
    char messages[NUMBER_ROOM];
    pg_session_open(lock);
    snprintf(messages, sizeof messages, "%" PRId64, lock->options.permits);
    if (pg_run(lock, CREATE) == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    return pg_outcome(pg_skip_locked_ask(lock, INSERT, messages)) == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static struct lock_grant pg_skip_locked_attempt(struct lock *lock) {
    struct pg_skip_locked *self = lock->state;
    struct lock_grant grant = {.outcome = pg_run(lock, "BEGIN")};
    if (grant.outcome != OUTCOME_OK) return grant;
    const struct env_reply *reply = pg_ask(lock, CLAIM);
    grant.outcome = pg_rows(reply);
    if (grant.outcome == OUTCOME_OK) {
        snprintf(self->claimed, sizeof self->claimed, "%s", reply->items[0].items[0].text);
        grant.item = strtoll(self->claimed, NULL, 10);
    }
    env_checkpoint(lock->env, "after-acquire-reply");
    if (grant.outcome == OUTCOME_REFUSED) pg_run(lock, "ROLLBACK");
    return grant;
}

/* Runs in the transaction that claimed the message. If the session was lost the first statement has no answer, and no
 * second is sent: in a new session it would mark a message that another client may have claimed by now. */
static enum outcome pg_skip_locked_release(struct lock *lock) {
    const struct pg_skip_locked *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    enum outcome marked = pg_outcome(pg_skip_locked_ask(lock, MARK, self->claimed));
    if (marked == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    env_checkpoint(lock->env, "between-mark-and-commit");
    enum outcome ended = pg_run(lock, marked == OUTCOME_OK ? "COMMIT" : "ROLLBACK");
    return ended == OUTCOME_OK ? marked : ended;
}

const struct lock_type LOCK_PG_SKIP_LOCKED = {
    .name = "pg-skip-locked",
    .summary = "SELECT ... FOR UPDATE SKIP LOCKED: an outbox, whose messages publishers claim one by one",
    .explanation =
        "BEGIN, then SELECT ... WHERE sent IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED: each publisher gets\n"
        "another message, and none waits. It dispatches the message, marks it as sent, and COMMITs. There are as\n"
        "many messages as --permits.\n"
        "Promises: no two publishers hold one message at once; a marked message is never claimed again.\n"
        "Costs: 2 statements to claim, 2 to mark, and a transaction that is open while the message is dispatched.\n"
        "Breaks: between dispatch and COMMIT. A publisher that dies there, or whose connection ends, leaves a\n"
        "message that was dispatched and is claimed again: at least once, never exactly once. The receiver has to\n"
        "recognise duplicates.",
    .source = "PostgreSQL documentation, SELECT, The Locking Clause; Richardson, Transactional outbox",
    PG_FIELDS,
    .capacity = LOCK_CAPACITY_ASKED,
    .once = true,
    .transaction = true,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct pg_skip_locked),
    .open = pg_skip_locked_open,
    .acquire = poll_acquire,
    .attempt = pg_skip_locked_attempt,
    .release = pg_skip_locked_release,
    .is_held = pg_transaction_holds_row,
};
