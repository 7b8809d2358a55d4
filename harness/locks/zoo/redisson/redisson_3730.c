/* A waiter in the queue that waits only for the message of its turn. */
#include "harness/locks/redisson/fair.h"

static struct push_try redisson_3730_attempt(struct lock *lock, void *queues) {
    struct push_try try = fair_attempt(lock, queues);
    try.again_ms = -1; /* the bug: that the holder's lease ends is no reason to look */
    return try;
}

const struct lock_type LOCK_REDISSON_3730 = {
    .name = "redisson-3730",
    .summary = "fair whose waiters check the lock only after the message of a release",
    .explanation =
        "As fair, but a client that is refused waits for the message of its turn, however long the holder's lease\n"
        "lasts.\n"
        "Breaks: a lease that runs out publishes nothing. Behind a holder that died all clients wait beside a free\n"
        "lock until their own wait is over.",
    .source = "Redisson issue 3730",
    .fixed = "fair",
    FAIR_FIELDS,
    .variant = &(const struct fair_rule){.base = {FAIR_BASE, .attempt = redisson_3730_attempt}},
};
