/* Redlock with its check, by a wall clock, which may be set. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_REDLOCK_WALL;

/* A random 100 to 300 ms. */
static const struct poll_pace PACE = {.first_ms = 100, .most_ms = 100, .spread_ms = 200};

static const struct redlock_rule RULE = {.now_ns = env_wall_ns, .pace = &PACE, .checks = true};

static enum outcome redlock_wall_open(struct lock *lock) {
    return redlock_open(lock, &RULE);
}

const struct lock_type LOCK_REDLOCK_WALL = {
    .name = "redlock-wall",
    .summary = "redlock whose check of the elapsed time goes by the wall clock",
    .explanation =
        "As redlock, validity and check included, but the elapsed time is read from the client's wall clock. A\n"
        "refused client tries again after a random 100 to 300 ms; a grant can be extended any number of times.\n"
        "Promises: as redlock, as long as the clocks of its clients are not set either.\n"
        "Costs: as redlock.\n"
        "Breaks: as redlock; a wall clock that is set back while the client asks, or is paused, hides the elapsed\n"
        "time, and the client takes an expired grant for a valid one; one that is set forward makes it refuse or\n"
        "give up a valid grant.",
    .source = "node-redlock 4 (Date.now(), its retryCount of 10 aside); clients that take time.time()",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 300,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_wall_open,
    .acquire = redlock_acquire,
    .renew = redlock_renew,
    .release = redlock_release,
};
