/* A lock that stays valid for its holder whatever time it is. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_AIOREDLOCK_46;

static struct lock_grant attempt(struct lock *lock) {
    struct lock_grant grant = redlock_attempt(lock, &REDLOCK_RULE);
    grant.valid_until_ns = 0; /* the bug: nobody looks again */
    return grant;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &REDLOCK_PACE, attempt);
}

const struct lock_type LOCK_AIOREDLOCK_46 = {
    .name = "aioredlock-46",
    .summary = "redlock whose grant says that it is valid until it is released",
    .explanation = "As redlock, but the holder is never told until when its grant is valid.\n"
                   "Breaks: whoever works for longer than the lease goes on beside the next holder.",
    .source = "aioredlock issue 46",
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
