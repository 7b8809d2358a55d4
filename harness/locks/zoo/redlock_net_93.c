/* Redlock that extends in the background and says "acquired" for ever. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDLOCK_NET_93;

static const struct redlock_rule SILENT = {.now_ns = env_mono_ns};

static struct lock_grant attempt(struct lock *lock) {
    static const struct redlock_rule rule = {.now_ns = env_mono_ns, .checks = true};
    struct lock_grant grant = redlock_attempt(lock, &rule);
    grant.valid_until_ns = 0; /* the bug: acquired is acquired */
    return grant;
}

static enum outcome extend(struct lock *lock, struct env *env) {
    return redlock_extend(lock, env, &SILENT);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return redlock_acquire_renewed(lock, wait_ms, attempt, extend);
}

const struct lock_type LOCK_REDLOCK_NET_93 = {
    .name = "redlock-net-93",
    .summary = "redlock-renew whose holder is not told when an extension has failed, nor until when its grant is valid",
    .explanation =
        "As redlock-renew, but the state that the holder sees is set with the grant and not looked at again.\n"
        "Breaks: the extensions fail, another client takes the lock, and both say that they have it.",
    .source = "RedLock.net issue 93",
    .fixed = "redlock-renew",
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
