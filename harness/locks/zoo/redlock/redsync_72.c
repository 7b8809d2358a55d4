/* Redlock that does not subtract the time that its requests took. */
#include "harness/locks/redlock/redlock.h"

const struct lock_type LOCK_REDSYNC_72 = {
    .name = "redsync-72",
    .summary = "redlock whose validity is counted from the answers, not from the requests",
    .explanation =
        "As redlock, but the time between the first request and the last answer is not subtracted.\n"
        "Breaks: a client that gets its answers late (a slow network, a pause) takes a grant that is nearly over,\n"
        "or over, for a full lease; the check of the time can no longer refuse anything.",
    .source = "redsync issue 72 and pull request 71",
    .fixed = "redlock",
    REDLOCK_FIELDS,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns, .checks = true, .from_answers = true},
};
