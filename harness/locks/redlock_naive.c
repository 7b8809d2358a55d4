/* Redlock as some libraries have it: a majority is enough, however late it came. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDLOCK_NAIVE;

static const struct redlock_rule RULE = {.now_ns = env_wall_ns};

static struct lock_grant attempt(struct lock *lock) {
    return redlock_attempt(lock, &RULE);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    static const struct poll_pace pace = {.first_ms = 100, .most_ms = 100, .spread_ms = 200};
    return poll_until_granted(lock, wait_ms, &pace, attempt);
}

static enum outcome renew(struct lock *lock) {
    return redlock_extend(lock, lock->env, &RULE);
}

const struct lock_type LOCK_REDLOCK_NAIVE = {
    .name = "redlock-naive",
    .summary = "redlock without the check of the time that has passed, and by the wall clock",
    .explanation =
        "As redlock, but a client that a majority has said yes to holds the lock: it does not look how long that took. It\n"
        "computes an expiry by its wall clock, which only extending looks at, and believes until it releases. A refused\n"
        "client tries again after a random 100 to 300 ms.\n"
        "Promises: one holder while nobody is slower than the lease, from the first command on; two of five nodes may be\n"
        "lost.\n"
        "Costs: as redlock.\n"
        "Breaks: as redlock; a client that is paused while the replies wait for it comes in when the keys have expired\n"
        "long ago; and a wall clock that is set back lets it extend what has lapsed.",
    .source = "node-redlock 5 (its retryCount of 10 aside); RedissonRedLock, which has no check and no drift either",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_open,
    .acquire = acquire,
    .renew = renew,
    .release = redlock_release,
};
