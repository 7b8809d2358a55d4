/* Redlock whose holder extends in the background, and learns when that has failed. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_REDLOCK_RENEW;

static const struct redlock_rule RULE = {.now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true};

static enum outcome redlock_renew_open(struct lock *lock) {
    return redlock_open(lock, &RULE);
}

/* An extension without an answer is tried again; one that is refused, or too late, announces the loss. */
static enum outcome extend_or_announce_loss(struct lock *lock, struct env *env) {
    const struct redlock *self = lock->state;
    enum outcome outcome = redlock_extend(lock, env);
    int64_t now_ns = env_mono_ns(env);
    if (outcome == OUTCOME_REFUSED) env_tell_validity(env, now_ns < self->expires_ns ? now_ns : self->expires_ns);
    return outcome;
}

struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms,
                                          struct lock_grant (*try_once)(struct lock *lock),
                                          enum outcome (*extend)(struct lock *lock, struct env *env)) {
    struct redlock *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its owner is replaced now */
    struct lock_grant grant = poll_until_granted(lock, wait_ms, self->rule->pace, try_once);
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

static struct lock_grant redlock_renew_acquire(struct lock *lock, int64_t wait_ms) {
    return redlock_acquire_renewed(lock, wait_ms, redlock_attempt, extend_or_announce_loss);
}

const struct lock_type LOCK_REDLOCK_RENEW = {
    .name = "redlock-renew",
    .summary = "redlock with a watchdog that extends before the validity ends, and announces when it could not",
    .explanation =
        "As redlock; while the lock is held, a watchdog in the same process extends it every third of the lease, as\n"
        "often as needed, and states the new validity. An extension that a majority refuses is announced to the\n"
        "holder at once as a loss; one without enough answers is tried again, and the loss is announced when the\n"
        "validity has ended.\n"
        "Promises: as redlock, for holds longer than the lease; the holder learns of the loss while its process\n"
        "runs.\n"
        "Costs: as redlock, and 15 scripts per lease while it is held.\n"
        "Breaks: as redlock: a paused process learns of the loss too late. A worker that hangs while its watchdog\n"
        "runs keeps all other clients out for ever.",
    .source = "node-redlock 5, using() with its automatic extension and abort signal; the check is that of redis.io",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_renew_open,
    .acquire = redlock_renew_acquire,
    .release = redlock_release_renewed,
    .close = redlock_close_renewed,
};
