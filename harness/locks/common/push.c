#include "harness/locks/common/push.h"

bool push_await(struct env *env, const struct key *channel, int64_t limit_ms) {
    int64_t until_ns = limit_ms < 0 ? INT64_MAX : env_mono_ns(env) + limit_ms * ENV_NS_PER_MS;
    if (env_message(env, 0, limit_ms)->kind != ENV_REPLY_UNKNOWN || env_mono_ns(env) >= until_ns) return true;
    return env_subscribe(env, 0, channel->bytes, channel->length) == OUTCOME_OK;
}

/* Until the attempt has asked for another one, or the wait is over, whichever is first. */
static int64_t limit_ms(struct env *env, int64_t again_ms, int64_t until_ns) {
    if (again_ms == 0) again_ms = 1;
    if (until_ns == INT64_MAX) return again_ms;
    int64_t left_ms = (until_ns - env_mono_ns(env) + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
    return again_ms < 0 || left_ms < again_ms ? left_ms : again_ms;
}

struct lock_grant push_until_granted_by(struct lock *lock, int64_t wait_ms, const struct push_waiter *waiter,
                                        push_waiting *await) {
    struct env *env = lock->env;
    const struct key *channel = waiter->channel;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(env) + wait_ms * ENV_NS_PER_MS;
    struct push_try try = waiter->attempt(lock, waiter->what);
    if (try.grant.outcome != OUTCOME_REFUSED || wait_ms == 0) return try.grant;
    env_checkpoint(env, "between-check-and-subscribe");
    if (env_subscribe(env, 0, channel->bytes, channel->length) != OUTCOME_OK)
        return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    while (env_mono_ns(env) < until_ns) {
        try = waiter->attempt(lock, waiter->what);
        if (try.grant.outcome != OUTCOME_REFUSED) break;
        if (await(env, channel, limit_ms(env, try.again_ms, until_ns))) continue;
        try.grant.outcome = OUTCOME_UNKNOWN;
        break;
    }
    env_unsubscribe(env, 0, channel->bytes, channel->length);
    return try.grant;
}

struct lock_grant push_until_granted(struct lock *lock, int64_t wait_ms, const struct push_waiter *waiter) {
    return push_until_granted_by(lock, wait_ms, waiter, push_await);
}
