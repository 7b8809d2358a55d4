/* Redlock whose extension takes the lock again when it is gone. */
#include "harness/locks/redlock.h"
#include "harness/locks/zoo/revive.h"

extern const struct lock_type LOCK_REDLOCK_RB_36;

static const struct redlock_rule RULE = {.now_ns = env_mono_ns, .checks = true, .extends_lapsed = true};

static enum outcome open(struct lock *lock) {
    struct redlock *self = lock->state;
    self->base.renew.source = REVIVE;
    return redlock_open(lock);
}

static struct lock_grant attempt(struct lock *lock) {
    return redlock_attempt(lock, &RULE);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &REDLOCK_PACE, attempt);
}

static enum outcome renew(struct lock *lock) {
    return redlock_extend(lock, lock->env, &RULE);
}

const struct lock_type LOCK_REDLOCK_RB_36 = {
    .name = "redlock-rb-36",
    .summary = "redlock whose extension sets the key where it is gone, and does not look at the time",
    .explanation =
        "As redlock, but extending is asking for the lock once more: it works for the owner, and also when\n"
        "nobody has it any more.\n"
        "Breaks: the lease runs out, others have been in and out, and the extension says that all is as it was:\n"
        "its holder works on with what it knew before.",
    .source = "redlock-rb issue 36; redsync's SetNXOnExtend does the same when asked to",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = open,
    .acquire = acquire,
    .renew = renew,
    .release = redlock_release,
};
