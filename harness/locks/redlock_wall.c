/* Redlock with its check, by a clock that somebody may set. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDLOCK_WALL;

static const struct redlock_rule RULE = {.now_ns = env_wall_ns, .checks = true};

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

const struct lock_type LOCK_REDLOCK_WALL = {
    .name = "redlock-wall",
    .summary = "redlock whose check of the time that has passed goes by the wall clock",
    .explanation =
        "As redlock, validity and check included, but the time that has passed is read from the client's wall clock. A\n"
        "refused client tries again after a random 100 to 300 ms; a grant can be extended as often as one likes.\n"
        "Promises: as redlock, as long as nobody sets the clocks of its clients either.\n"
        "Costs: as redlock.\n"
        "Breaks: as redlock; a wall clock that is set back while the client asks, or is paused, hides the time that has\n"
        "passed, and the client takes for a grant what has expired; one that is set forward makes it refuse or give up\n"
        "what it has.",
    .source = "node-redlock 4 (Date.now(), its retryCount of 10 aside); clients that take time.time()",
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
