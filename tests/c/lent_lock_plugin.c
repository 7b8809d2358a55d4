/* A plug-in for tests: a lock that is made of what lockstorm lends, a variant for each helper:
 *   PUSH         SET NX PX; its waiters wait for the message that a release publishes (push.h)
 *   SIGNAL_LIST  SET NX PX; its waiters wait in BLPOP for the signal that a release pushes (signal_list.h)
 *   QUEUE        a queue of ephemeral nodes on ZooKeeper (zookeeper_queue.h); also without any of these */
#include "lockstorm.h"

#ifdef PUSH

struct lent_lock {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct key channel;
    struct script release;
};

static enum outcome open(struct lock *lock) {
    struct lent_lock *self = lock->state;
    self->channel = key_make("freed:", lock->options.resource, lock->options.resource_length, "");
    self->release.source = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
                           "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '1') return 1";
    enum outcome opened = set_nx_px_open(lock);
    return opened == OUTCOME_OK ? script_load(lock->env, 0, &self->release) : opened;
}

/* A refused client tries again when the lease that it saw is over: nobody publishes that. */
static struct push_try attempt(struct lock *lock, void *what) {
    (void)what;
    struct push_try try = {.grant = set_nx_px_attempt(lock), .again_ms = -1};
    if (try.grant.outcome != OUTCOME_REFUSED) return try;
    const struct env_reply *left =
        env_command(lock->env, 0, "PTTL %b", lock->options.resource, lock->options.resource_length);
    if (left->kind == ENV_REPLY_INTEGER) try.again_ms = left->integer > 0 ? left->integer : 1;
    return try;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    const struct push_waiter waiter = {attempt, NULL, &((struct lent_lock *)lock->state)->channel};
    return push_until_granted(lock, wait_ms, &waiter);
}

static enum outcome release(struct lock *lock) {
    struct lent_lock *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    return script_outcome(script_run(lock->env, 0, &self->release, "2 %b %b %s", lock->options.resource,
                                     lock->options.resource_length, self->channel.bytes, self->channel.length,
                                     self->base.owner));
}

static void close(struct lock *lock) {
    key_free(&((struct lent_lock *)lock->state)->channel);
}

#elif defined SIGNAL_LIST

static const struct signal_list_way WAY = {
    .lock_prefix = "lock:",
    .list_prefix = "signals:",
    .release = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
               "redis.call('del', KEYS[1]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], 1000) "
               "return 1",
};

static enum outcome open(struct lock *lock) {
    return signal_list_open(lock, &WAY);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return signal_list_acquire(lock, wait_ms, true, set_nx_px_attempt);
}

#else

static enum outcome open(struct lock *lock) {
    return zookeeper_queue_open(lock, "turn");
}

#endif

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "lent",
    .summary = "a lock that is made of what lockstorm lends",
    .open = open,
#if !defined PUSH && !defined SIGNAL_LIST
    ZOOKEEPER_QUEUE_FIELDS,
#else
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .acquire = acquire,
#endif
#ifdef PUSH
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct lent_lock),
    .release = release,
    .close = close,
#elif defined SIGNAL_LIST
    .waits = LOCK_WAITS_BLOCKING_POP,
    .state_size = sizeof(struct signal_list),
    .release = signal_list_release,
    .close = signal_list_close,
#endif
};
