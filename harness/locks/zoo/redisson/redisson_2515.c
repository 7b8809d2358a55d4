/* Renewal that ends with its first trouble. */
#include "harness/locks/redisson/redisson.h"

extern const struct lock_type LOCK_REDISSON_2515;

static enum outcome redisson_2515_open(struct lock *lock) {
    struct redisson *self = lock->state;
    self->watchdog.trouble = WATCHDOG_ENDS_SILENTLY; /* the bug: the task is not scheduled again */
    return redisson_open(lock);
}

const struct lock_type LOCK_REDISSON_2515 = {
    .name = "redisson-2515",
    .summary = "pubsub whose watchdog ends when one renewal gets an error or no answer",
    .explanation = "As pubsub, but the task that renews schedules itself again only after an answer.\n"
                   "Breaks: after one closed connection, or one -BUSY, a healthy holder loses its lease.",
    .source = "Redisson issue 2515 (fixed in 3.12.1)",
    .fixed = "pubsub",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct redisson),
    .open = redisson_2515_open,
    .acquire = redisson_acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = redisson_release,
    .close = redisson_close,
};
