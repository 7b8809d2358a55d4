/* Redlock with its check, by a wall clock, which may be set. */
#include "harness/locks/redlock/redlock.h"

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
    REDLOCK_FIELDS,
    .poll_ms = 300,
    .pace = &REDLOCK_NODE_PACE,
    .variant = &(const struct redlock_rule){.now_ns = env_wall_ns, .checks = true},
};
