/* Renewal for an acquire that its caller has given up. */
#include "harness/locks/redisson/redisson.h"

extern const struct lock_type LOCK_REDISSON_2714;

static struct lock_grant redisson_2714_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson *self = lock->state;
    const struct push_waiter waiter = {redisson_hash_attempt, self, &self->channel};
    struct lock_grant grant = push_until_granted(lock, wait_ms, &waiter);
    if (grant.outcome == OUTCOME_UNKNOWN) /* the bug: the task begins whether or not the caller learns of the grant */
        redisson_granted(self, lock, (struct lock_grant){.outcome = OUTCOME_OK}, NULL);
    return redisson_granted(self, lock, grant, NULL);
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
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct redisson),
    .open = redisson_open,
    .acquire = redisson_2714_acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = redisson_release,
    .close = redisson_close,
};
