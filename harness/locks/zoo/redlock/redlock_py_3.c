/* Redlock with one sign wrong in its validity. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_REDLOCK_PY_3;

static const struct redlock_rule RULE = {
    .now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true, .adds_drift = true};

static enum outcome redlock_py_3_open(struct lock *lock) {
    return redlock_open(lock, &RULE);
}

const struct lock_type LOCK_REDLOCK_PY_3 = {
    .name = "redlock-py-3",
    .summary = "redlock whose validity is lease - (elapsed - drift): the drift is added",
    .explanation = "As redlock, but the term that should make the validity shorter than the lease makes it longer.\n"
                   "Breaks: for 1 % of the lease and 2 ms the holder believes in a lock that has expired.",
    .source = "redlock-py pull request 3",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_py_3_open,
    .acquire = redlock_acquire,
    .release = redlock_release,
};
