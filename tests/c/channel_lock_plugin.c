/* A plug-in for tests: a key, and a channel on which releases are announced. Its mistake:
 *   SUBSCRIPTION_KEPT  a client that gives up stays subscribed */
#include "drawn_owner.h"
#include "lockstorm.h"

static enum outcome leave(struct lock *lock) {
    struct state *self = lock->state;
    static const char DELETE[] = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                                 "redis.call('publish', 'freed', 1) return redis.call('del', KEYS[1])";
    return script_outcome(env_command(lock->env, 0, "EVAL %s 1 %b %s", DELETE, RESOURCE, self->me));
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct state *self = lock->state;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    draw(lock);
    if (env_subscribe(lock->env, 0, "freed", 5) != OUTCOME_OK) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    struct lock_grant grant = {.outcome = OUTCOME_REFUSED};
    for (;;) {
        const struct env_reply *reply =
            env_command(lock->env, 0, "SET %b %s NX PX %lld", RESOURCE, self->me, (long long)lock->options.lease_ms);
        if (reply->kind == ENV_REPLY_STATUS) grant.outcome = OUTCOME_OK;
        else if (reply->kind != ENV_REPLY_NIL) (void)leave(lock);
        int64_t left_ns = until_ns - env_mono_ns(lock->env);
        if (grant.outcome == OUTCOME_OK || left_ns <= 0) break;
        (void)env_message(lock->env, 0, left_ns < 100000000 ? left_ns / ENV_NS_PER_MS + 1 : 100);
    }
#ifdef SUBSCRIPTION_KEPT
    if (grant.outcome != OUTCOME_OK) return grant;
#endif
    env_unsubscribe(lock->env, 0, "freed", 5);
    return grant;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "channel",
    .summary = "a key and a channel",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .acquire = acquire,
    .release = leave,
};
