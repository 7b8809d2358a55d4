/* Redlock that does not subtract the time that its requests took. */
#include "harness/locks/redlock/redlock.h"

extern const struct lock_type LOCK_REDSYNC_72;

static const struct redlock_rule RULE = {
    .now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true, .from_answers = true};

static enum outcome redsync_72_open(struct lock *lock) {
    return redlock_open(lock, &RULE);
}

const struct lock_type LOCK_REDSYNC_72 = {
    .name = "redsync-72",
    .summary = "redlock whose validity is counted from the answers, not from the requests",
    .explanation =
        "As redlock, but the time between the first request and the last answer is not subtracted.\n"
        "Breaks: a client that gets its answers late (a slow network, a pause) takes a grant that is nearly over,\n"
        "or over, for a full lease; the check of the time can no longer refuse anything.",
    .source = "redsync issue 72 and pull request 71",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redsync_72_open,
    .acquire = redlock_acquire,
    .renew = redlock_renew,
    .release = redlock_release,
};
