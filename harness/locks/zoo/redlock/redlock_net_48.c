/* Redlock that goes on extending in the background, whatever the answers are. */
#include "harness/locks/redlock/redlock.h"
#include "harness/locks/zoo/revive.h"

extern const struct lock_type LOCK_REDLOCK_NET_48;

static const struct redlock_rule RULE = {
    .now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true, .extends_lapsed = true};

static enum outcome redlock_net_48_open(struct lock *lock) {
    struct redlock *self = lock->state;
    self->base.renew.source = REVIVE;
    return redlock_open(lock, &RULE);
}

/* A conflict is one more failure, after which the timer fires again: a refusal counts like a missing answer. */
static enum outcome extend(struct lock *lock, struct env *env) {
    enum outcome outcome = redlock_extend(lock, env);
    return outcome == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static struct lock_grant redlock_net_48_acquire(struct lock *lock, int64_t wait_ms) {
    return redlock_acquire_renewed(lock, wait_ms, redlock_attempt, extend);
}

const struct lock_type LOCK_REDLOCK_NET_48 = {
    .name = "redlock-net-48",
    .summary = "redlock-renew whose watchdog goes on after a conflict, and takes the lock again when it is free",
    .explanation =
        "As redlock-renew, but an extension also sets keys that are gone, and one that finds another owner's keys\n"
        "is tried again a third of a lease later.\n"
        "Breaks: the holder loses the lock to another client, and has it again after that one, as if nothing had\n"
        "happened in between.",
    .source = "RedLock.net issue 48",
    .fixed = "redlock-renew",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_net_48_open,
    .acquire = redlock_net_48_acquire,
    .release = redlock_release_renewed,
    .close = redlock_close_renewed,
};
