/* Redlock that goes on extending in the background, whatever the answers are. */
#include "harness/locks/redlock/redlock.h"
#include "harness/locks/zoo/revive.h"

/* A conflict is one more failure, after which the timer fires again: a refusal counts like a missing answer. */
static enum outcome extend_whatever_happens(struct lock *lock, struct env *env) {
    enum outcome outcome = redlock_extend(lock, env);
    return outcome == OUTCOME_OK ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

const struct lock_type LOCK_REDLOCK_NET_48 = {
    .name = "redlock-net-48",
    .summary = "redlock-renew whose watchdog goes on after a conflict, and takes the lock again when it is free",
    .explanation =
        "As redlock-renew, but an extension also sets keys that are gone, and one that finds another owner's keys\n"
        "is tried again a third of a lease later.\n"
        "Breaks: the holder loses the lock to another client, and has it again after that one, as if nothing had\n"
        "happened in between.",
    .source = "RedLock.net issue 48",
    .fixed = "redlock-renew",
    REDLOCK_RENEWED_FIELDS,
    .variant = &(const struct redlock_rule){.now_ns = env_mono_ns,
                                            .checks = true,
                                            .extend = extend_whatever_happens,
                                            .renew = REVIVE,
                                            .extends_expired = true},
};
