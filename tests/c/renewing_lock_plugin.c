/* A plug-in for tests: SET NX PX with a watchdog, and its mistakes:
 *   TWO_COMMANDS  a renewal reads the owner, and extends with a second command
 *   GOES_ON       the release does not stop the watchdog */
#include <string.h>

#include "lockstorm.h"

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000};

struct renewing_lock {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct watchdog watchdog;
};

static enum outcome renew_by(struct lock *lock, struct env *env) {
#ifdef TWO_COMMANDS
    const struct renewing_lock *self = lock->state;
    const struct lock_options *options = &lock->options;
    const struct env_reply *reply = env_command(env, 0, "GET %b", options->resource, options->resource_length);
    if (reply->kind == ENV_REPLY_NIL) return OUTCOME_REFUSED;
    if (reply->kind != ENV_REPLY_STRING) return OUTCOME_UNKNOWN;
    if (strcmp(reply->text, self->base.owner) != 0) return OUTCOME_REFUSED;
    return script_outcome(env_command(env, 0, "PEXPIRE %b %lld", options->resource, options->resource_length,
                                      (long long)options->lease_ms));
#else
    return set_nx_px_renew_in(lock, env);
#endif
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct renewing_lock *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released */
    struct lock_grant grant = poll_until_granted(lock, wait_ms, &PACE, set_nx_px_attempt);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->watchdog.renew = renew_by;
    self->watchdog.period_ms = lock->options.lease_ms / 3 > 0 ? lock->options.lease_ms / 3 : 1;
    watchdog_start(&self->watchdog, lock);
    return grant;
}

static enum outcome renew(struct lock *lock) {
    return renew_by(lock, lock->env);
}

static enum outcome release(struct lock *lock) {
#ifndef GOES_ON
    watchdog_stop(&((struct renewing_lock *)lock->state)->watchdog);
#endif
    return set_nx_px_release(lock);
}

static void close(struct lock *lock) {
    watchdog_stop(&((struct renewing_lock *)lock->state)->watchdog);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-renewing",
    .summary = "SET NX PX with a watchdog",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 1500,
    .state_size = sizeof(struct renewing_lock),
    .open = set_nx_px_open,
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .close = close,
};
