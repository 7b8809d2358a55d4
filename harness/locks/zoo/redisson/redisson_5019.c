/* A waiter that gives up and leaves its place in the queue behind. */
#include "harness/locks/redisson/fair.h"

const struct lock_type LOCK_REDISSON_5019 = {
    .name = "redisson-5019",
    .summary = "fair whose waiters stay in the queue when they give up",
    .explanation =
        "As fair, but a client whose wait is over leaves without removing itself from the queue.\n"
        "Breaks: all clients behind it wait for one that will not come, until its place expires like that of a dead\n"
        "client: minutes beside a free lock.",
    .source = "Redisson issue 5019",
    .fixed = "fair",
    FAIR_FIELDS,
    .variant = &(const struct fair_rule){.base = {FAIR_BASE, .attempt = fair_attempt}, .stays = true /* the bug */},
};
