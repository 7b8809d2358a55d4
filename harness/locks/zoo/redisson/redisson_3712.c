/* Renewal that is not begun anew for a lock that was lost and is acquired again. */
#include "harness/locks/redisson/redisson.h"

static struct lock_grant redisson_3712_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson *self = lock->state;
    struct lock_grant grant = redisson_wait(lock, wait_ms);
    if (grant.outcome != OUTCOME_OK || self->depth == 0) return redisson_granted(lock, grant);
    self->depth++; /* the bug: an existing entry is assumed to be renewed */
    return grant;
}

const struct lock_type LOCK_REDISSON_3712 = {
    .name = "redisson-3712",
    .summary = "pubsub that starts a watchdog only for a client that did not hold the lock before",
    .explanation =
        "As pubsub, but a client that has an entry of its own for this lock is assumed to have a watchdog, too.\n"
        "Breaks: if the key was gone from the server, the watchdog has ended, and the entry still exists. Acquired\n"
        "again, the lock lasts for one lease, whatever its holder does.",
    .source = "Redisson issues 3712 and 3714 (fixed in 3.16.1)",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .acquire = redisson_3712_acquire,
};
