/* Renewal that ends when the server answers with an error. */
#include "harness/locks/redisson/redisson.h"

extern const struct lock_type LOCK_REDISSON_3332;

static enum outcome redisson_3332_renew(struct lock *lock, struct env *env) {
    struct redisson *self = lock->state;
    const struct env_reply *reply = redisson_hash_ask_renewal(self, env, lock->options.lease_ms);
    if (reply->kind == ENV_REPLY_ERROR) return OUTCOME_REFUSED; /* the bug: -BUSY is no loss of the lock */
    return redisson_renewed(reply);
}

static struct lock_grant redisson_3332_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson *self = lock->state;
    const struct push_waiter waiter = {redisson_hash_attempt, self, &self->channel};
    return redisson_granted(self, lock, push_until_granted(lock, wait_ms, &waiter), redisson_3332_renew);
}

const struct lock_type LOCK_REDISSON_3332 = {
    .name = "redisson-3332",
    .summary = "pubsub whose watchdog takes an error of the server for the loss of the lock",
    .explanation =
        "As pubsub, but the watchdog ends with an answer that is an error, as it does when the lock is lost.\n"
        "Breaks: a slow script of another client makes the server answer -BUSY for a while, and a healthy holder\n"
        "loses its lease.",
    .source = "Redisson issues 3332 and 3334",
    .fixed = "pubsub",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct redisson),
    .open = redisson_open,
    .acquire = redisson_3332_acquire,
    .renew = redisson_renew,
    .is_held = redisson_is_held,
    .release = redisson_release,
    .close = redisson_close,
};
