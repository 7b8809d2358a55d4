/* Redlock that extends in the background and reports "acquired" for ever. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_REDLOCK_NET_93;

static const struct redlock_rule RULE = {
    .now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true, .extends_silently = true};

static enum outcome redlock_net_93_open(struct lock *lock) {
    return redlock_open(lock, &RULE);
}

static struct lock_grant redlock_net_93_attempt(struct lock *lock) {
    struct lock_grant grant = redlock_attempt(lock);
    grant.valid_until_ns = 0; /* the bug: acquired is acquired */
    return grant;
}

static struct lock_grant redlock_net_93_acquire(struct lock *lock, int64_t wait_ms) {
    return redlock_acquire_renewed(lock, wait_ms, redlock_net_93_attempt, redlock_extend);
}

const struct lock_type LOCK_REDLOCK_NET_93 = {
    .name = "redlock-net-93",
    .summary = "redlock-renew whose holder learns neither that an extension has failed nor how long its grant is valid",
    .explanation = "As redlock-renew, but the state that the holder sees is set with the grant and never updated.\n"
                   "Breaks: the extensions fail, another client takes the lock, and both believe that they hold it.",
    .source = "RedLock.net issue 93",
    .fixed = "redlock-renew",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_net_93_open,
    .acquire = redlock_net_93_acquire,
    .release = redlock_release_renewed,
    .close = redlock_close_renewed,
};
