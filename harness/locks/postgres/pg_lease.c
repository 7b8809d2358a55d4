/* A row with an owner, an expiry by the server's clock, and a version that rises with every grant: a lease with a
 * fencing token. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/locks/common/key.h"
#include "harness/locks/postgres/pg_session.h"

enum { NUMBER_ROOM = 24 };

struct pg_lease {
    struct pg_session base;     /* first: the shared functions use it as the lock's state */
    char owner[KEY_RANDOM + 1]; /* new for every attempt, so no old grant can be mistaken for this one */
    bool unsure;                /* the last attempt had no answer: the lease may be this owner's */
    char lease_ms[NUMBER_ROOM];
};

/* clock_timestamp() and not now(), the time at which the transaction began: a statement that has waited for a locked
 * row would compare it with an old time. The row of a released lease stays: its version must never begin again. */
#define UNTIL "clock_timestamp() + make_interval(secs => $3::float8 / 1000)"
#define MINE "name = $1::bytea AND owner = $2 AND expires > clock_timestamp()"

static const char CREATE[] =
    "CREATE TABLE IF NOT EXISTS lease (name bytea PRIMARY KEY, owner text NOT NULL, version bigint NOT NULL, "
    "expires timestamptz NOT NULL)";
static const char ACQUIRE[] =
    "INSERT INTO lease AS held VALUES ($1::bytea, $2, 1, " UNTIL ") ON CONFLICT (name) DO UPDATE "
    "SET owner = excluded.owner, version = held.version + 1, expires = " UNTIL
    " WHERE held.expires <= clock_timestamp() OR held.owner = excluded.owner RETURNING version";
static const char RENEW[] = "UPDATE lease SET expires = " UNTIL " WHERE " MINE " RETURNING version";
static const char RELEASE[] = "UPDATE lease SET expires = '-infinity' WHERE " MINE " RETURNING version";
static const char IS_HELD[] = "SELECT EXISTS (SELECT FROM lease WHERE " MINE ")";

static const struct env_reply *pg_lease_ask(struct lock *lock, const char *statement, size_t count) {
    const struct pg_lease *self = lock->state;
    const char *parameters[] = {self->base.name, self->owner, self->lease_ms};
    return env_query(lock->env, 0, statement, parameters, count);
}

/* Two clients that create a table at once can collide in the catalogue: then one of them has made it. */
static enum outcome pg_lease_open(struct lock *lock) {
    struct pg_lease *self = lock->state;
    pg_session_open(lock);
    snprintf(self->lease_ms, sizeof self->lease_ms, "%" PRId64, lock->options.lease_ms);
    if (pg_run(lock, CREATE) == OUTCOME_UNKNOWN) return OUTCOME_UNKNOWN;
    return pg_outcome(pg_lease_ask(lock, IS_HELD, 2)) == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static struct lock_grant claim(struct lock *lock) {
    struct pg_lease *self = lock->state;
    const struct env_reply *reply = pg_lease_ask(lock, ACQUIRE, 3);
    struct lock_grant grant = {.outcome = pg_rows(reply)};
    if (grant.outcome == OUTCOME_OK) grant.token = strtoll(reply->items[0].items[0].text, NULL, 10);
    self->unsure = grant.outcome == OUTCOME_UNKNOWN;
    env_checkpoint(lock->env, "after-acquire-reply");
    return grant;
}

/* Without an answer it is unknown whether the lease was granted. So it is asked for once more as the same owner, which
 * is harmless. If that has no answer either, the next attempt keeps the owner. */
static struct lock_grant pg_lease_attempt(struct lock *lock) {
    struct pg_lease *self = lock->state;
    if (!self->unsure) key_draw(lock->env, self->owner);
    struct lock_grant grant = claim(lock);
    return grant.outcome == OUTCOME_UNKNOWN ? claim(lock) : grant;
}

static enum outcome pg_lease_renew(struct lock *lock) {
    return pg_rows(pg_lease_ask(lock, RENEW, 3));
}

static enum outcome pg_lease_release(struct lock *lock) {
    struct pg_lease *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    enum outcome outcome = pg_rows(pg_lease_ask(lock, RELEASE, 2));
    if (outcome != OUTCOME_UNKNOWN) self->unsure = false;
    return outcome;
}

static enum outcome pg_lease_is_held(struct lock *lock) {
    return pg_truth(pg_lease_ask(lock, IS_HELD, 2));
}

const struct lock_type LOCK_PG_LEASE = {
    .name = "pg-lease",
    .summary = "a row with an owner, an expiry and a version, which is the fencing token",
    .explanation =
        "INSERT ... ON CONFLICT DO UPDATE ... WHERE expires <= clock_timestamp() RETURNING version: a client that\n"
        "finds no lease, or one that has run out, writes its own, and the returned version is its fencing token.\n"
        "UPDATE ... WHERE owner = ... AND it has not run out renews and releases it. A client without an answer\n"
        "asks again as the same owner, which may hold the lease by now. A client that is refused polls: 50 ms,\n"
        "doubling to 1 s.\n"
        "Promises: one holder while no client outlasts its lease; tokens that rise over crashes and restarts, since\n"
        "rows are never removed and commits are durable.\n"
        "Costs: 1 statement to acquire, 1 to release, and the waiters' polls; a row version each.\n"
        "Breaks: a holder that is paused past the lease acts beside the next holder, as with any lease, but a\n"
        "resource that checks the token refuses it. The expiry is by the server's wall clock: a step of it ends\n"
        "leases, or prolongs them. An asynchronous replica that is promoted without the newest grant grants its\n"
        "lease and its token again.",
    .source = "Kleppmann 2016, Making the lock safe with fencing; ShedLock's JdbcTemplate provider, with a version",
    PG_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct pg_lease),
    .open = pg_lease_open,
    .acquire = poll_acquire,
    .attempt = pg_lease_attempt,
    .renew = pg_lease_renew,
    .release = pg_lease_release,
    .is_held = pg_lease_is_held,
};
