/* PostgreSQL's advisory lock of a session: held until it is released, or until the session ends. */
#include "harness/locks/postgres/pg_session.h"

static struct lock_grant pg_advisory_attempt(struct lock *lock) {
    enum outcome outcome = pg_truth(pg_ask(lock, "SELECT pg_try_advisory_lock(" PG_ADVISORY_KEY ")"));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static struct lock_grant pg_advisory_acquire(struct lock *lock, int64_t wait_ms) {
    if (wait_ms >= 0) return poll_acquire(lock, wait_ms);
    enum outcome outcome = pg_rows(pg_ask_blocking(lock, "SELECT pg_advisory_lock(" PG_ADVISORY_KEY ")"));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static enum outcome pg_advisory_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return pg_truth(pg_ask(lock, "SELECT pg_advisory_unlock(" PG_ADVISORY_KEY ")"));
}

const struct lock_type LOCK_PG_ADVISORY = {
    .name = "pg-advisory",
    .summary = "pg_advisory_lock: a lock of the session, in PostgreSQL's memory",
    .explanation =
        "SELECT pg_advisory_lock(key) returns when this session has the lock; pg_advisory_unlock(key) releases it,\n"
        "and so does the end of the session, however it ends. A client with a limited wait polls\n"
        "pg_try_advisory_lock instead.\n"
        "Promises: one session holds it, independent of clocks; a holder that dies frees it at once.\n"
        "Costs: 1 statement to acquire, 1 to release; a waiter keeps its connection and sends nothing.\n"
        "Breaks: it lives as long as the connection, not as long as the holder's belief. When the server closes the\n"
        "connection the lock is free, and a holder that does not check acts on; a holder that hangs keeps it for\n"
        "ever; behind a pool that shares sessions it belongs to another client. There is no fencing token.",
    .source = "PostgreSQL documentation, 13.3.5 Advisory Locks; with_advisory_lock (Ruby), Rails' migrations",
    PG_FIELDS,
    .traits = LOCK_TRAIT_REENTRANT,
    .waits = LOCK_WAITS_IN_SERVER,
    .open = pg_session_begin,
    .acquire = pg_advisory_acquire,
    .attempt = pg_advisory_attempt,
    .release = pg_advisory_release,
    .is_held = pg_advisory_is_held,
};
