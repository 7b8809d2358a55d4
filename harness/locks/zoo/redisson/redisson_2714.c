/* Renewal for an acquire that its caller has given up. */
#include "harness/locks/redisson/redisson.h"

static struct lock_grant redisson_2714_acquire(struct lock *lock, int64_t wait_ms) {
    struct lock_grant grant = redisson_wait(lock, wait_ms);
    if (grant.outcome == OUTCOME_UNKNOWN) /* the bug: the task begins whether or not the caller learns of the grant */
        redisson_granted(lock, (struct lock_grant){.outcome = OUTCOME_OK});
    return redisson_granted(lock, grant);
}

const struct lock_type LOCK_REDISSON_2714 = {
    .name = "redisson-2714",
    .summary = "pubsub whose watchdog also begins for an acquire that its caller never learned of",
    .explanation =
        "As pubsub, but the watchdog begins with the server's grant, not with the caller's: a caller that gave up\n"
        "waiting for the answer, or was interrupted, has a lock that it does not know of.\n"
        "Breaks: no client releases that lock, and it is renewed as long as the process lives.",
    .source = "Redisson issues 2714 and 4368 (fixed in 3.16.3)",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .acquire = redisson_2714_acquire,
};
