/* A waiter in the queue who goes by what it was told when it queued up. */
#include "harness/locks/fair.h"

extern const struct lock_type LOCK_REDISSON_3004;

struct redisson_3004 {
    struct fair base; /* first: the shared functions see it */
    bool told;
    int64_t told_ms; /* how long its turn may take to come, as it was said first */
};

static struct push_try attempt(struct lock *lock, void *queues) {
    struct redisson_3004 *self = lock->state;
    struct push_try try = fair_attempt(lock, queues);
    if (try.grant.outcome != OUTCOME_REFUSED) return try;
    if (!self->told) self->told_ms = try.again_ms;
    self->told = true;
    try.again_ms = self->told_ms; /* the bug: not what is left of the holder's lease */
    return try;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    static const struct fair_rule rule = {.attempt = attempt, .leaves = true};
    struct redisson_3004 *self = lock->state;
    self->told = false;
    return fair_acquire_by(lock, wait_ms, &rule);
}

const struct lock_type LOCK_REDISSON_3004 = {
    .name = "redisson-3004",
    .summary = "fair whose waiters look at the lock only when those before them must have given up",
    .explanation =
        "As fair, but who is refused waits for as long as the queue before it may take, minutes for each who stands\n"
        "there, and looks no sooner unless it is told.\n"
        "Breaks: whoever was taken out of the queue as dead, or whose message is lost, sleeps on beside a free lock.",
    .source = "Redisson issue 3004",
    .fixed = "fair",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct redisson_3004),
    .open = fair_open,
    .acquire = acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = fair_release,
    .close = fair_close,
};
