/* Redlock whose holder extends in the background, and is told when that has failed. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDLOCK_RENEW;

static const struct redlock_rule RULE = {.now_ns = env_mono_ns, .checks = true};

static struct lock_grant attempt(struct lock *lock) {
    return redlock_attempt(lock, &RULE);
}

/* Without an answer it is tried again, until the validity is over: then it is lost. */
static enum outcome extend_or_tell(struct lock *lock, struct env *env) {
    const struct redlock *self = lock->state;
    enum outcome outcome = redlock_extend(lock, env, &RULE);
    int64_t now_ns = env_mono_ns(env);
    if (outcome == OUTCOME_REFUSED) env_tell_validity(env, now_ns < self->expires_ns ? now_ns : self->expires_ns);
    return outcome;
}

struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms,
                                          struct lock_grant (*try_once)(struct lock *lock),
                                          enum outcome (*extend)(struct lock *lock, struct env *env)) {
    struct redlock *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its owner is about to be forgotten */
    struct lock_grant grant = poll_until_granted(lock, wait_ms, &REDLOCK_PACE, try_once);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->watchdog.renew = extend;
    self->watchdog.period_ms = lock->options.lease_ms / 3 > 0 ? lock->options.lease_ms / 3 : 1;
    watchdog_start(&self->watchdog, lock);
    return grant;
}

enum outcome redlock_release_renewed(struct lock *lock) {
    struct redlock *self = lock->state;
    watchdog_stop(&self->watchdog);
    return redlock_release(lock);
}

void redlock_close_renewed(struct lock *lock) {
    struct redlock *self = lock->state;
    watchdog_stop(&self->watchdog);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return redlock_acquire_renewed(lock, wait_ms, attempt, extend_or_tell);
}

const struct lock_type LOCK_REDLOCK_RENEW = {
    .name = "redlock-renew",
    .summary = "redlock with a watchdog that extends before the validity ends, and tells its holder when it could not",
    .explanation =
        "As redlock; while the lock is held, a watchdog in the same process extends it every third of the lease, as often\n"
        "as needed, and states the new validity. An extension that a majority refuses is told to the holder at once; one\n"
        "without enough answers is tried again, and told when the validity has ended.\n"
        "Promises: as redlock, for holds longer than the lease; the holder learns of the loss while its process runs.\n"
        "Costs: as redlock, and 15 scripts per lease while it is held.\n"
        "Breaks: as redlock: a paused process is told when it is too late. A worker that is stuck while its watchdog runs\n"
        "keeps everybody out for ever.",
    .source = "node-redlock 5, using() with its automatic extension and abort signal; the check is that of redis.io",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_open,
    .acquire = acquire,
    .release = redlock_release_renewed,
    .close = redlock_close_renewed,
};
