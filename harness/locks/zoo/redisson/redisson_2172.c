/* Several locks as one, taken for twice the caller's wait, which may be -1: no limit. */
#include "harness/locks/redisson/multi.h"

struct redisson_2172 {
    struct multi base; /* first: the shared functions use it as the lock's state */
    int64_t wait_ms;
};

static struct push_try redisson_2172_attempt(struct lock *lock, void *what) {
    const struct redisson_2172 *self = lock->state;
    struct redisson *part = what;
    int64_t lease_ms = 2 * self->wait_ms; /* the bug: negative when the wait has no limit */
    struct push_try try = redisson_answer(script_run(lock->env, 0, &part->acquire, "1 %b %s %lld", part->name,
                                                     part->name_length, part->owner, (long long)lease_ms));
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

/* When all are taken, they get the lease that was asked for. */
static struct lock_grant redisson_2172_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson_2172 *self = lock->state;
    self->wait_ms = wait_ms;
    struct lock_grant grant = multi_acquire(lock, wait_ms);
    if (grant.outcome == OUTCOME_OK) (void)multi_renew(lock);
    return grant;
}

const struct lock_type LOCK_REDISSON_2172 = {
    .name = "redisson-2172",
    .summary = "multi that takes its locks for twice the time that its caller would wait",
    .explanation =
        "As multi, but while the locks are gathered each is taken for twice the caller's wait, and only when all\n"
        "are taken do they get the lease that was asked for. Whether they still exist then is not checked.\n"
        "Breaks: a wait without a limit is written -1, and a negative lease is over at once: every client is\n"
        "granted every lock.",
    .source = "Redisson issue 2172 (fixed in 3.11.1)",
    .fixed = "multi",
    MULTI_FIELDS,
    .variant = &(const struct multi_rule){.attempt = redisson_2172_attempt},
    .state_size = sizeof(struct redisson_2172),
    .acquire = redisson_2172_acquire,
};
