/* Redlock that does not take off the time that it took to ask. */
#include "harness/locks/redlock.h"

extern const struct lock_type LOCK_REDSYNC_72;

static const struct redlock_rule RULE = {.now_ns = env_mono_ns, .checks = true, .from_answers = true};

static struct lock_grant attempt(struct lock *lock) {
    return redlock_attempt(lock, &RULE);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &REDLOCK_PACE, attempt);
}

static enum outcome renew(struct lock *lock) {
    return redlock_extend(lock, lock->env, &RULE);
}

const struct lock_type LOCK_REDSYNC_72 = {
    .name = "redsync-72",
    .summary = "redlock whose validity is counted from the answers, not from the questions",
    .explanation =
        "As redlock, but the time between the first question and the last answer is not taken off.\n"
        "Breaks: whoever gets its answers late - a slow network, a pause - takes what is nearly over, or over,\n"
        "for a whole lease; the check of the time can refuse nothing any more.",
    .source = "redsync issue 72 and pull request 71",
    .fixed = "redlock",
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
