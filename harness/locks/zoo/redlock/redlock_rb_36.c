/* Redlock whose extension takes the lock again when it is gone. */
#include "harness/locks/redlock/redlock.h"
#include "harness/locks/zoo/revive.h"

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
    REDLOCK_FIELDS,
    .variant =
        &(const struct redlock_rule){.now_ns = env_mono_ns, .checks = true, .renew = REVIVE, .extends_expired = true},
};
