/* Redisson's spin lock: the hash of pubsub, without a message; waiters poll. */
#include "harness/locks/redisson/spin.h"

#include "harness/locks/common/poll.h"

static struct lock_grant spin_attempt(struct lock *lock) {
    return redisson_hash_attempt(lock, lock->state).grant;
}

struct lock_grant spin_acquire(struct lock *lock, int64_t wait_ms) {
    static const struct poll_pace pace = {.first_ms = 1, .most_ms = 128};
    return redisson_granted(lock, poll_until_granted(lock, wait_ms, &pace, spin_attempt));
}

const struct redisson_rule SPIN_RULE = {.publishes_nothing = true};

const struct lock_type LOCK_SPIN = {
    .name = "spin",
    .summary = "Redisson's spin lock: re-entrant hash, watchdog, waiters poll from 1 ms up to 128 ms",
    .explanation =
        "The hash, the scripts and the watchdog of pubsub, but no subscriptions, and a release publishes nothing: a\n"
        "client that is refused asks again after 1 ms, doubling to 128 ms, plus up to half of it.\n"
        "Promises: as pubsub; there is no message that could be lost, and no order among waiters.\n"
        "Costs: 1 script to acquire, a script and a DEL to release, 3 scripts per lease held, and at least 5 polls\n"
        "a second by each waiter: cheaper than messages when locks are held for a moment, dearer when they are held\n"
        "for long.\n"
        "Breaks: where pubsub does: a pause past the lease, a failover that loses the lock.",
    .source = "Redisson, RedissonSpinLock with LockOptions.ExponentialBackOff",
    SPIN_FIELDS,
};
