/* A plug-in for tests: a lock with a queue in a list, which its waiters poll, and its mistakes:
 *   TAKES_HEAD  a waiter that gives up removes the head of the queue, its own or not, and stays itself
 *   TAKES_TWO   a waiter that gives up removes the head of the queue and itself
 *   STAYS       a waiter that gives up stays in the queue
 *   SLOW        a waiter sleeps twice as long each time, without a limit */
#include <stdio.h>

#include "lockstorm.h"

enum { POLL_MS = 50 };

static const char ACQUIRE[] = "local first = redis.call('lindex', KEYS[2], 0) "
                              "if redis.call('exists', KEYS[1]) == 0 and (not first or first == ARGV[1]) then "
                              "  redis.call('lrem', KEYS[2], 0, ARGV[1]) "
                              "  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) "
                              "  return 1 "
                              "end "
                              "if ARGV[3] == '1' and not redis.call('lpos', KEYS[2], ARGV[1]) then "
                              "  redis.call('rpush', KEYS[2], ARGV[1]) "
                              "end "
                              "return 0";
static const char RELEASE[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

struct queue_lock {
    char owner[17];
    struct key queue;
    struct script acquire, release;
};

static enum outcome open(struct lock *lock) {
    struct queue_lock *self = lock->state;
    self->queue = key_make("queue:", lock->options.resource, lock->options.resource_length, "");
    self->acquire.source = ACQUIRE;
    self->release.source = RELEASE;
    snprintf(self->owner, sizeof self->owner, "%016llx", (unsigned long long)env_random(lock->env));
    enum outcome loaded = script_load(lock->env, 0, &self->acquire);
    return loaded == OUTCOME_OK ? script_load(lock->env, 0, &self->release) : loaded;
}

static enum outcome attempt(struct lock *lock, bool queues) {
    struct queue_lock *self = lock->state;
    return script_outcome(script_run(lock->env, 0, &self->acquire, "2 %b %b %s %lld %d", lock->options.resource,
                                     lock->options.resource_length, self->queue.bytes, self->queue.length, self->owner,
                                     (long long)lock->options.lease_ms, queues));
}

static void give_up(struct lock *lock) {
    const struct queue_lock *self = lock->state;
#if defined TAKES_HEAD || defined TAKES_TWO
    env_command(lock->env, 0, "LPOP %b", self->queue.bytes, self->queue.length);
#endif
#if !defined TAKES_HEAD && !defined STAYS
    env_command(lock->env, 0, "LREM %b 0 %s", self->queue.bytes, self->queue.length, self->owner);
#endif
    (void)self;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    int64_t sleep_ms = POLL_MS;
    for (;;) {
        enum outcome outcome = attempt(lock, wait_ms != 0);
        if (outcome != OUTCOME_REFUSED || wait_ms == 0) return (struct lock_grant){.outcome = outcome};
        if (env_mono_ns(lock->env) >= until_ns) break;
        env_sleep(lock->env, sleep_ms);
#ifdef SLOW
        sleep_ms *= 2;
#endif
    }
    give_up(lock);
    return (struct lock_grant){.outcome = OUTCOME_REFUSED};
}

static enum outcome release(struct lock *lock) {
    struct queue_lock *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    return script_outcome(script_run(lock->env, 0, &self->release, "1 %b %s", lock->options.resource,
                                     lock->options.resource_length, self->owner));
}

static void close(struct lock *lock) {
    key_free(&((struct queue_lock *)lock->state)->queue);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-queue",
    .summary = "a string and a list of waiters, who poll",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_FAIR,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = POLL_MS,
    .state_size = sizeof(struct queue_lock),
    .open = open,
    .acquire = acquire,
    .release = release,
    .close = close,
};
