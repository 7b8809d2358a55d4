/* Redlock whose holder extends in the background, and learns when that has failed. */
#include "harness/locks/redlock/redlock.h"

/* An extension without an answer is tried again; one that is refused, or too late, announces the loss. */
static enum outcome extend_or_announce_loss(struct lock *lock, struct env *env) {
    const struct redlock *self = lock->state;
    enum outcome outcome = redlock_extend(lock, env);
    int64_t now_ns = env_mono_ns(env);
    if (outcome == OUTCOME_REFUSED) env_tell_validity(env, now_ns < self->expires_ns ? now_ns : self->expires_ns);
    return outcome;
}

struct lock_grant redlock_acquire_renewed(struct lock *lock, int64_t wait_ms) {
    struct redlock *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its owner is replaced now */
    struct lock_grant grant = poll_acquire(lock, wait_ms);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->watchdog.renew = ((const struct redlock_rule *)lock->type->variant)->extend;
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
    REDLOCK_RENEWED_FIELDS,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns, .checks = true, .extend = extend_or_announce_loss},
};
