/* Redlock whose extension takes the lock again when it is gone. */
#include "harness/locks/redlock/redlock.h"
#include "harness/locks/zoo/revive.h"

extern const struct lock_type LOCK_REDLOCK_RB_36;

static const struct redlock_rule RULE = {
    .now_ns = env_mono_ns, .pace = &REDLOCK_PACE, .checks = true, .extends_lapsed = true};

static enum outcome redlock_rb_36_open(struct lock *lock) {
    struct redlock *self = lock->state;
    self->base.renew.source = REVIVE;
    return redlock_open(lock, &RULE);
}

const struct lock_type LOCK_REDLOCK_RB_36 = {
    .name = "redlock-rb-36",
    .summary = "redlock whose extension sets the key when it is gone, and does not check the time",
    .explanation =
        "As redlock, but extending is asking for the lock once more: it succeeds for the owner, and also when no\n"
        "client holds it any more.\n"
        "Breaks: the lease runs out, other clients have held the lock, and the extension succeeds all the same: its\n"
        "holder works on with what it knew before.",
    .source = "redlock-rb issue 36; redsync's SetNXOnExtend does the same when asked to",
    .fixed = "redlock",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 250,
    .nodes = REDLOCK_NODES,
    .state_size = sizeof(struct redlock),
    .open = redlock_rb_36_open,
    .acquire = redlock_acquire,
    .renew = redlock_renew,
    .release = redlock_release,
};
