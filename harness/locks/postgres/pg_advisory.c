/* PostgreSQL's advisory lock of a session: held until it is released, or until the session ends. */
#include <stdlib.h>

#include "harness/locks/postgres/pg_session.h"

extern const struct lock_type LOCK_PG_ADVISORY;

struct pg_advisory {
    char *name;
};

#define KEY "hashtextextended($1, 0)"

static const char WAIT[] = "SELECT pg_advisory_lock(" KEY ")";
static const char TRY[] = "SELECT pg_try_advisory_lock(" KEY ")";
static const char UNLOCK[] = "SELECT pg_advisory_unlock(" KEY ")";
static const char IS_HELD[] =
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND pid = pg_backend_pid() AND classid::bigint << 32 | objid::bigint = " KEY ")";

static const char *pg_advisory_name_of(const struct lock *lock) {
    return ((const struct pg_advisory *)lock->state)->name;
}

static enum outcome pg_advisory_open(struct lock *lock) {
    ((struct pg_advisory *)lock->state)->name = pg_name(&lock->options);
    return pg_run(lock, "SELECT"); /* the session begins */
}

static struct lock_grant pg_advisory_attempt(struct lock *lock) {
    enum outcome outcome = pg_truth(pg_ask(lock, pg_advisory_name_of(lock), TRY));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static struct lock_grant pg_advisory_acquire(struct lock *lock, int64_t wait_ms) {
    if (wait_ms >= 0) return poll_until_granted(lock, wait_ms, &PG_PACE, pg_advisory_attempt);
    enum outcome outcome = pg_rows(pg_ask_blocking(lock, pg_advisory_name_of(lock), WAIT));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static enum outcome pg_advisory_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return pg_truth(pg_ask(lock, pg_advisory_name_of(lock), UNLOCK));
}

static enum outcome pg_advisory_is_held(struct lock *lock) {
    return pg_truth(pg_ask(lock, pg_advisory_name_of(lock), IS_HELD));
}

static void pg_advisory_close(struct lock *lock) {
    free(((struct pg_advisory *)lock->state)->name);
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
    .traits = LOCK_TRAIT_REENTRANT,
    .capacity = 1,
    .waits = LOCK_WAITS_IN_SERVER,
    .poll_ms = 1500,
    .service = LOCK_SERVICE_POSTGRES,
    .state_size = sizeof(struct pg_advisory),
    .open = pg_advisory_open,
    .acquire = pg_advisory_acquire,
    .release = pg_advisory_release,
    .is_held = pg_advisory_is_held,
    .close = pg_advisory_close,
};
