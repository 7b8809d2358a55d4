/* A release without an answer, which skips the end of the renewal. */
#include "harness/locks/redisson/redisson.h"

static enum outcome redisson_1626_release(struct lock *lock) {
    struct redisson *self = lock->state;
    char request[KEY_RANDOM + 1];
    key_draw(lock->env, request);
    env_checkpoint(lock->env, "before-release");
    const struct env_reply *reply = redisson_hash_unlock(self, lock, request);
    bool ours = reply->kind == ENV_REPLY_INTEGER;
    if (!ours && reply->kind != ENV_REPLY_NIL) return OUTCOME_UNKNOWN; /* the bug: neither repeated nor noted */
    redisson_released(self, !ours || reply->integer == 1);
    return ours ? OUTCOME_OK : OUTCOME_REFUSED;
}

const struct lock_type LOCK_REDISSON_1626 = {
    .name = "redisson-1626",
    .summary = "pubsub whose watchdog goes on after a release that got no answer",
    .explanation =
        "As pubsub, but a release that gets no answer ends there: it is not sent again, and the watchdog goes on.\n"
        "Breaks: if the request did not arrive, its client goes on renewing a lock that it has given up, and all\n"
        "other clients wait as long as that process lives.",
    .source = "Redisson issue 1626",
    .fixed = "pubsub",
    REDISSON_FIELDS,
    .release = redisson_1626_release,
};
