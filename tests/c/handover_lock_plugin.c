/* A plug-in for tests: a client that releases the lock hands its key over to the one that waits first. The lease begins
 * then, however late that client notices. */
#include <string.h>

#include "drawn_owner.h"
#include "lockstorm.h"

/* KEYS: the lock, its queue; ARGV: the client, the lease. */
static const char TAKE[] = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                           "redis.call('lrem', KEYS[2], 0, ARGV[1]) return 1 end "
                           "if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end "
                           "if not redis.call('lpos', KEYS[2], ARGV[1]) then redis.call('rpush', KEYS[2], ARGV[1]) end "
                           "return 0";
static const char HAND_OVER[] =
    "redis.call('lrem', KEYS[2], 0, ARGV[1]) "
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local first = redis.call('lpop', KEYS[2]) "
    "if not first then return redis.call('del', KEYS[1]) end "
    "redis.call('set', KEYS[1], first, 'PX', ARGV[2]) "
    "redis.call('rpush', 'box:' .. first, 1) redis.call('pexpire', 'box:' .. first, ARGV[2]) "
    "return 1";

static enum outcome asked(struct lock *lock, const char *script) {
    const struct state *self = lock->state;
    const struct env_reply *reply = env_command(lock->env, 0, "EVAL %s 2 %b queue %s %lld", script, RESOURCE, self->me,
                                                (long long)lock->options.lease_ms);
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    const struct state *self = lock->state;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    draw(lock);
    for (;;) {
        enum outcome outcome = asked(lock, TAKE);
        bool over = wait_ms >= 0 && env_mono_ns(lock->env) >= until_ns;
        if (outcome == OUTCOME_OK) return (struct lock_grant){.outcome = OUTCOME_OK};
        if (over || outcome == OUTCOME_UNKNOWN) {
            (void)asked(lock, HAND_OVER);
            return (struct lock_grant){.outcome = outcome};
        }
        (void)env_command_blocking(lock->env, 0, 1000, "BLPOP box:%s 1", self->me);
    }
}

static enum outcome release(struct lock *lock) {
    return asked(lock, HAND_OVER);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "handover",
    .summary = "a key that its holder hands over to the next client",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_BLOCKING_POP,
    .state_size = sizeof(struct state),
    .acquire = acquire,
    .release = release,
};
