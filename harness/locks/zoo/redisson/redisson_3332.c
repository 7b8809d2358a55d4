/* Renewal that ends when the server answers with an error. */
#include "harness/locks/redisson/redisson.h"

static enum outcome redisson_3332_renew(struct lock *lock, struct env *env) {
    struct redisson *self = lock->state;
    const struct env_reply *reply = redisson_hash_ask_renewal(self, env, lock->options.lease_ms);
    if (reply->kind == ENV_REPLY_ERROR) return OUTCOME_REFUSED; /* the bug: -BUSY is no loss of the lock */
    return script_outcome(reply);
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
    REDISSON_FIELDS,
    .variant = &(const struct redisson_rule){.renew = redisson_3332_renew},
};
