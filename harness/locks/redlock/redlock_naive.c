/* Redlock as some libraries have it: a majority is enough, however late its answers came. */
#include "harness/locks/redlock/redlock.h"

const struct lock_type LOCK_REDLOCK_NAIVE = {
    .name = "redlock-naive",
    .summary = "redlock without the check of the elapsed time, and by the wall clock",
    .explanation =
        "As redlock, but a client that a majority has accepted holds the lock: it does not check how long that\n"
        "took. It computes an expiry by its wall clock, which only an extension checks, and believes in its grant\n"
        "until it releases. A refused client tries again after a random 100 to 300 ms.\n"
        "Promises: one holder while no client is slower than its lease, counted from its first command; two of five\n"
        "nodes may be lost.\n"
        "Costs: as redlock.\n"
        "Breaks: as redlock; a client that is paused while replies wait for it enters when the keys have long\n"
        "expired; and a wall clock that is set back lets it extend a grant that has lapsed.",
    .source = "node-redlock 5 (its retryCount of 10 aside); RedissonRedLock, which has no check and no drift either",
    REDLOCK_FIELDS,
    .poll_ms = 300,
    .pace = &REDLOCK_NODE_PACE,
    .variant = &(const struct redlock_rule){.now_ns = env_wall_ns},
};
