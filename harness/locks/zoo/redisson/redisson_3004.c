/* A waiter in the queue that goes by the answer it got when it queued. */
#include "harness/locks/redisson/fair.h"

struct redisson_3004 {
    struct fair base; /* first: the shared functions use it as the lock's state */
    bool answered;
    int64_t first_answer_ms; /* how long its turn may take to come, by the first answer */
};

static struct push_try redisson_3004_attempt(struct lock *lock, void *queues) {
    struct redisson_3004 *self = lock->state;
    struct push_try try = fair_attempt(lock, queues);
    if (try.grant.outcome != OUTCOME_REFUSED) return try;
    if (!self->answered) self->first_answer_ms = try.again_ms;
    self->answered = true;
    try.again_ms = self->first_answer_ms; /* the bug: not what is left of the holder's lease */
    return try;
}

static struct lock_grant redisson_3004_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson_3004 *self = lock->state;
    self->answered = false;
    return fair_acquire(lock, wait_ms);
}

const struct lock_type LOCK_REDISSON_3004 = {
    .name = "redisson-3004",
    .summary = "fair whose waiters check the lock only when those before them must have given up",
    .explanation =
        "As fair, but a client that is refused waits for as long as the queue before it may take, minutes for each\n"
        "client in it, and does not check sooner without a message.\n"
        "Breaks: a client that was removed from the queue as dead, or whose message is lost, sleeps on although the\n"
        "lock is free.",
    .source = "Redisson issue 3004",
    .fixed = "fair",
    FAIR_FIELDS,
    .variant = &(const struct fair_rule){.base = {FAIR_BASE, .attempt = redisson_3004_attempt}},
    .state_size = sizeof(struct redisson_3004),
    .acquire = redisson_3004_acquire,
};
