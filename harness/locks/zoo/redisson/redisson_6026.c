/* A waiter that loses its subscription and goes on waiting. */
#include "harness/locks/redisson/semaphore.h"

enum { DAY_MS = 24 * 3600 * 1000 }; /* as good as for ever */

static bool await(struct env *env, const struct key *channel, int64_t limit_ms) {
    (void)channel;
    int64_t left_ms = limit_ms < 0 ? DAY_MS : limit_ms;
    int64_t until_ns = env_mono_ns(env) + left_ms * ENV_NS_PER_MS;
    if (env_message(env, 0, limit_ms)->kind != ENV_REPLY_UNKNOWN) return true;
    left_ms = (until_ns - env_mono_ns(env)) / ENV_NS_PER_MS;
    if (left_ms > 0) env_sleep(env, left_ms); /* the bug: the connection is made anew, its subscriptions are not */
    return true;
}

static struct lock_grant redisson_6026_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson_semaphore *self = lock->state;
    const struct push_waiter waiter = {semaphore_attempt, self, &self->channel};
    return push_until_granted_by(lock, wait_ms, &waiter, await);
}

const struct lock_type LOCK_REDISSON_6026 = {
    .name = "redisson-6026",
    .summary = "semaphore whose waiters do not subscribe again when their connection was lost",
    .explanation =
        "As semaphore, but a client that loses its connection while it waits goes on waiting, on a channel to which\n"
        "it is no longer subscribed.\n"
        "Breaks: after a restart or a failover no release wakes the clients that waited before, though permits are\n"
        "free.",
    .source = "Redisson issues 6026, 2180 and 2181",
    .fixed = "semaphore",
    SEMAPHORE_FIELDS,
    .acquire = redisson_6026_acquire,
};
