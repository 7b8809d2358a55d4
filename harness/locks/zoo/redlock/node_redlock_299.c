/* Redlock whose validity begins with the first of its tries, however many were refused since. */
#include "harness/locks/redlock/redlock.h"

struct node_redlock_299 {
    struct redlock base; /* first: the shared functions use it as the lock's state */
    int64_t asked_ns;    /* when the caller asked for the lock */
};

static struct lock_grant node_redlock_299_attempt(struct lock *lock) {
    struct node_redlock_299 *self = lock->state;
    int64_t waited_ns = env_mono_ns(lock->env) - self->asked_ns;
    struct lock_grant grant = redlock_attempt(lock);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->base.expires_ns -= waited_ns;
    grant.valid_until_ns -= waited_ns;
    return grant;
}

static struct lock_grant node_redlock_299_acquire(struct lock *lock, int64_t wait_ms) {
    struct node_redlock_299 *self = lock->state;
    self->asked_ns = env_mono_ns(lock->env);
    return poll_acquire(lock, wait_ms);
}

const struct lock_type LOCK_NODE_REDLOCK_299 = {
    .name = "node-redlock-299",
    .summary = "redlock whose validity begins with the first try of the acquire, not with the one that is granted",
    .explanation =
        "As redlock, but the time spent waiting for the lock counts as if it had been held.\n"
        "Breaks: a client that has waited for longer than the lease is granted a lock that is over already: it\n"
        "cannot be extended; a client that believes the stated validity cannot work, and one that does not check\n"
        "works beyond it.",
    .source = "node-redlock issue 299, and 283 and 169 before it",
    .fixed = "redlock",
    REDLOCK_FIELDS,
    .variant = &REDLOCK_RULE,
    .state_size = sizeof(struct node_redlock_299),
    .acquire = node_redlock_299_acquire,
    .attempt = node_redlock_299_attempt,
};
