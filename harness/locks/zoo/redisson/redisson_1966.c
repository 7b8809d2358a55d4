/* Renewal that goes on until the server says that the lock is free. */
#include "harness/locks/redisson/redisson.h"

static enum outcome redisson_1966_release(struct lock *lock) {
    struct redisson *self = lock->state;
    bool freed;
    env_checkpoint(lock->env, "before-release");
    enum outcome outcome = redisson_hash_release(self, lock, redisson_hash_unlock, &freed);
    if (freed) redisson_released(self, freed); /* the bug: a release that leaves a count behind ends nothing */
    return outcome;
}

const struct lock_type LOCK_REDISSON_1966 = {
    .name = "redisson-1966",
    .summary = "pubsub whose watchdog goes on after the last release if the hash still has a count",
    .explanation =
        "As pubsub, but the watchdog ends when the server answers that nothing is left of the lock, not when its\n"
        "holder has released as often as it was granted. An acquire whose answer came too late has counted all the\n"
        "same.\n"
        "Breaks: after one lost answer the count never comes down to zero, and a lock that no client holds is\n"
        "renewed for ever.",
    .source = "Redisson issue 1966 (fixed in 3.10.5)",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .release = redisson_1966_release,
};
