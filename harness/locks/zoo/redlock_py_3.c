/* Redlock with one sign wrong in its validity. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDLOCK_PY_3;

static const struct redlock_rule RULE = {.now_ns = env_mono_ns, .checks = true, .adds_drift = true};

static struct lock_grant attempt(struct lock *lock) {
    return redlock_attempt(lock, &RULE);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &REDLOCK_PACE, attempt);
}

const struct lock_type LOCK_REDLOCK_PY_3 = {
    .name = "redlock-py-3",
    .summary = "redlock whose validity is lease - (elapsed - drift): the drift is added",
    .explanation = "As redlock, but what is meant to make the validity shorter than the lease makes it longer.\n"
                   "Breaks: for 1 % of the lease and 2 ms the holder is told that it holds what has expired.",
    .source = "redlock-py pull request 3",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_open,
    .acquire = acquire,
    .release = redlock_release,
};
