/* A waiter that gives up and leaves its place in the queue behind. */
#include "harness/locks/redisson/fair.h"

extern const struct lock_type LOCK_REDISSON_5019;

static struct lock_grant redisson_5019_acquire(struct lock *lock, int64_t wait_ms) {
    static const struct fair_rule rule = {.attempt = fair_attempt, .leaves = false /* the bug */};
    return fair_acquire_by(lock, wait_ms, &rule);
}

const struct lock_type LOCK_REDISSON_5019 = {
    .name = "redisson-5019",
    .summary = "fair whose waiters stay in the queue when they give up",
    .explanation =
        "As fair, but a client whose wait is over leaves without removing itself from the queue.\n"
        "Breaks: all clients behind it wait for one that will not come, until its place expires like that of a dead\n"
        "client: minutes beside a free lock.",
    .source = "Redisson issue 5019",
    .fixed = "fair",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct fair),
    .open = fair_open,
    .acquire = redisson_5019_acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = fair_release,
    .close = fair_close,
};
