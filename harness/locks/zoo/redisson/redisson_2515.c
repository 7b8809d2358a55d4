/* Renewal that ends with its first trouble. */
#include "harness/locks/redisson/redisson.h"

const struct lock_type LOCK_REDISSON_2515 = {
    .name = "redisson-2515",
    .summary = "pubsub whose watchdog ends when one renewal gets an error or no answer",
    .explanation = "As pubsub, but the task that renews schedules itself again only after an answer.\n"
                   "Breaks: after one closed connection, or one -BUSY, a healthy holder loses its lease.",
    .source = "Redisson issue 2515 (fixed in 3.12.1)",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .variant =
        &(const struct redisson_rule){.trouble = WATCHDOG_ENDS_SILENTLY /* the bug: the task is not scheduled again */},
};
