/* A plug-in for tests: a key on each of two servers. Its mistake:
 *   UNANSWERED_KEPT  after a refusal only the servers that said yes are released; one whose answer was lost keeps its
 *                    key for a lease */
#include "drawn_owner.h"
#include "lockstorm.h"

#ifdef UNANSWERED_KEPT
#define LEAVES_UNANSWERED false
#else
#define LEAVES_UNANSWERED true
#endif
static const char DELETE[] = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                             "return redis.call('del', KEYS[1])";

static enum outcome leave_on(struct lock *lock, int node) {
    struct state *self = lock->state;
    return script_outcome(env_command(lock->env, node, "EVAL %s 1 %b %s", DELETE, RESOURCE, self->me));
}

static enum outcome leave(struct lock *lock) {
    enum outcome one = leave_on(lock, 0), other = leave_on(lock, 1);
    return one == OUTCOME_OK ? other : one;
}

static enum outcome enter_on(struct lock *lock, int node) {
    struct state *self = lock->state;
    const struct env_reply *reply =
        env_command(lock->env, node, "SET %b %s NX PX %lld", RESOURCE, self->me, (long long)lock->options.lease_ms);
    if (reply->kind == ENV_REPLY_NIL) return OUTCOME_REFUSED;
    return reply->kind == ENV_REPLY_STATUS ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (;;) {
        draw(lock);
        enum outcome one = enter_on(lock, 0), other = enter_on(lock, 1);
        if (one == OUTCOME_OK && other == OUTCOME_OK) return (struct lock_grant){.outcome = OUTCOME_OK};
        if (one == OUTCOME_OK || LEAVES_UNANSWERED) (void)leave_on(lock, 0);
        if (other == OUTCOME_OK || LEAVES_UNANSWERED) (void)leave_on(lock, 1);
        if (one == OUTCOME_UNKNOWN && other == OUTCOME_UNKNOWN) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
        if (env_mono_ns(lock->env) >= until_ns) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
        env_sleep(lock->env, 100 + (int64_t)env_random_below(lock->env, 100));
    }
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "pair",
    .summary = "a key on two servers",
    .nodes = 2,
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .acquire = acquire,
    .release = leave,
};
