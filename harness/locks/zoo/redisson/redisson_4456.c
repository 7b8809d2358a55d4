/* Several locks as one. Some of them stay behind when the acquire is cut short. */
#include "harness/locks/redisson/multi.h"

const struct lock_type LOCK_REDISSON_4456 = {
    .name = "redisson-4456",
    .summary = "multi whose acquire, cut short between two of its locks, keeps those that it has",
    .explanation =
        "As multi, but an acquire that ends without an answer, as by an interrupt, skips the code that gives back\n"
        "the locks that it has by then.\n"
        "Breaks: the watchdog renews them as long as the process lives, and no client knows of them.",
    .source = "Redisson issue 4456",
    .fixed = "multi",
    MULTI_FIELDS,
    .variant = &(const struct multi_rule){.attempt = redisson_hash_attempt, .keeps_unknown = true /* the bug */},
};
