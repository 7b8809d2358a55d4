/* A lock that stays valid for its holder, however much time has passed. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_AIOREDLOCK_46;

static struct lock_grant aioredlock_46_attempt(struct lock *lock) {
    struct lock_grant grant = redlock_attempt(lock);
    grant.valid_until_ns = 0; /* the bug: it is never checked again */
    return grant;
}

static struct lock_grant aioredlock_46_acquire(struct lock *lock, int64_t wait_ms) {
    const struct redlock *self = lock->state;
    return poll_until_granted(lock, wait_ms, self->rule->pace, aioredlock_46_attempt);
}

const struct lock_type LOCK_AIOREDLOCK_46 = {
    .name = "aioredlock-46",
    .summary = "redlock whose grant says that it is valid until it is released",
    .explanation = "As redlock, but a grant does not state until when it is valid.\n"
                   "Breaks: a holder that works for longer than the lease goes on beside the next holder.",
    .source = "aioredlock issue 46",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_open_standard,
    .acquire = aioredlock_46_acquire,
    .release = redlock_release,
};
