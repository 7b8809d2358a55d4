/* Redisson's fair lock: pubsub with a queue; a release notifies the head of the queue, on a channel of its own. */
#include "harness/locks/redisson/fair.h"

#include <string.h>

/* How long a waiter that does not come back keeps its place: Redisson's fairLockWaitTimeout, 5 s until 3.13.3. */
enum { DEAD_WAITER_MS = 300000 };

/* KEYS: hash, queue, time limits of the waiters in the queue (ms, by the caller's clock). ARGV[1]: owner, ARGV[2]: now.
 * Removes heads of the queue whose time is over; `first` is then the head, or false. */
#define PURGE                                                                                                          \
    "local now = tonumber(ARGV[2])\n"                                                                                  \
    "local first = redis.call('lindex', KEYS[2], 0)\n"                                                                 \
    "while first do\n"                                                                                                 \
    "  local limit = redis.call('zscore', KEYS[3], first)\n"                                                           \
    "  if not limit or tonumber(limit) > now then break end\n"                                                         \
    "  redis.call('zrem', KEYS[3], first)\n"                                                                           \
    "  redis.call('lpop', KEYS[2])\n"                                                                                  \
    "  first = redis.call('lindex', KEYS[2], 0)\n"                                                                     \
    "end\n"

/* ARGV[3]: lease, ARGV[4]: DEAD_WAITER_MS, ARGV[5]: 1 to queue. A client that queues gets the limit of the one before
 * it plus its own patience; a grant subtracts that patience from the limits of all others again. A client that asks
 * again is answered the rest of the lease: 0 when the lock is free and a dead client is before it. */
const char FAIR_ACQUIRE[] =
    PURGE "local patience = tonumber(ARGV[4])\n"
          "local held = redis.call('exists', KEYS[1]) == 1\n"
          "if not held and (not first or first == ARGV[1]) then\n"
          "  redis.call('lpop', KEYS[2])\n"
          "  redis.call('zrem', KEYS[3], ARGV[1])\n"
          "  for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do\n"
          "    redis.call('zincrby', KEYS[3], -patience, other)\n"
          "  end\n"
          "elseif redis.call('hexists', KEYS[1], ARGV[1]) == 0 then\n"
          "  if redis.call('zscore', KEYS[3], ARGV[1]) then return math.max(0, redis.call('pttl', KEYS[1])) end\n"
          "  local last = redis.call('lindex', KEYS[2], -1)\n"
          "  local ahead = last and tonumber(redis.call('zscore', KEYS[3], last) or now) - now\n"
          "    or redis.call('pttl', KEYS[1])\n"
          "  if ARGV[5] == '1' then\n"
          "    redis.call('rpush', KEYS[2], ARGV[1])\n"
          "    redis.call('zadd', KEYS[3], now + ahead + patience, ARGV[1])\n"
          "  end\n"
          "  return ahead\n"
          "end\n"
          "redis.call('hincrby', KEYS[1], ARGV[1], 1)\n"
          "redis.call('pexpire', KEYS[1], ARGV[3])\n"
          "return false";

/* ARGV[2]: DEAD_WAITER_MS. Leaves the queue. */
static const char LEAVE[] = "local behind = false\n"
                            "for _, each in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do\n"
                            "  if behind then redis.call('zincrby', KEYS[3], -ARGV[2], each) end\n"
                            "  behind = behind or each == ARGV[1]\n"
                            "end\n"
                            "redis.call('zrem', KEYS[3], ARGV[1])\n"
                            "return redis.call('lrem', KEYS[2], 0, ARGV[1])";

/* KEYS[4]: the latch; ARGV[3]: lease, ARGV[4]: the latch's life, ARGV[5]: the channels' common prefix. The head of the
 * queue is notified also when the lock is free already because its lease ran out. */
const char FAIR_RELEASE[] =
    "local answered = redis.call('get', KEYS[4])\n"
    "if answered then return tonumber(answered) end\n" PURGE "local freed = false\n"
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then\n"
    "  freed = 1\n"
    "  if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then\n"
    "    redis.call('pexpire', KEYS[1], ARGV[3])\n"
    "    freed = 0\n"
    "  else redis.call('del', KEYS[1]) end\n"
    "  redis.call('set', KEYS[4], freed, 'PX', ARGV[4])\n"
    "end\n"
    "if first and redis.call('exists', KEYS[1]) == 0 then redis.call('publish', ARGV[5] .. first, '0') end\n"
    "return freed";
#undef PURGE

#define KEYS "%b redisson_lock_queue:%b redisson_lock_timeout:%b"
#define KEYS_OF(self)                                                                                                  \
    (self)->name, (self)->name_length, (self)->tagged.bytes, (self)->tagged.length, (self)->tagged.bytes,              \
        (self)->tagged.length

enum outcome fair_open(struct lock *lock) {
    struct fair *self = lock->state;
    self->leave.source = LEAVE;
    enum outcome opened = redisson_open(lock);
    if (opened == OUTCOME_OK) opened = script_load(lock->env, 0, &self->leave);
    char after[KEY_RANDOM + 2] = ":";
    memcpy(after + 1, self->base.owner, sizeof self->base.owner);
    self->own = key_make("redisson_lock__channel:", lock->options.resource, lock->options.resource_length, after);
    return opened;
}

static long long now_ms(struct lock *lock) {
    return env_wall_ns(lock->env) / ENV_NS_PER_MS;
}

struct push_try fair_attempt(struct lock *lock, void *what) {
    struct fair *self = lock->state;
    struct push_try try = redisson_answer(script_run(lock->env, 0, &self->base.acquire, "3 " KEYS " %s %lld %lld %d %d",
                                                     KEYS_OF(&self->base), self->base.owner, now_ms(lock),
                                                     (long long)lock->options.lease_ms, DEAD_WAITER_MS, *(bool *)what));
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

struct lock_grant fair_acquire(struct lock *lock, int64_t wait_ms) {
    struct fair *self = lock->state;
    const struct fair_rule *rule = lock->type->variant;
    bool queues = wait_ms != 0;
    const struct push_waiter waiter = {rule->base.attempt, &queues, &self->own};
    struct lock_grant grant = push_until_granted(lock, wait_ms, &waiter);
    if (queues && !rule->stays && grant.outcome == OUTCOME_REFUSED)
        script_run(lock->env, 0, &self->leave, "3 " KEYS " %s %d", KEYS_OF(&self->base), self->base.owner,
                   DEAD_WAITER_MS);
    return redisson_granted(lock, grant);
}

const struct env_reply *fair_unlock(struct redisson *self, struct lock *lock, const char *request) {
    return script_run(
        lock->env, 0, &self->release,
        "4 " KEYS " redisson_unlock_latch:%b:%s %s %lld %lld %lld redisson_lock__channel:%b:", KEYS_OF(self),
        self->tagged.bytes, self->tagged.length, request, self->owner, now_ms(lock), (long long)lock->options.lease_ms,
        (long long)redisson_latch_ms(lock->env), self->tagged.bytes, self->tagged.length);
}

void fair_close(struct lock *lock) {
    struct fair *self = lock->state;
    key_free(&self->own);
    redisson_close(lock);
}

const struct lock_type LOCK_FAIR = {
    .name = "fair",
    .summary = "Redisson's fair lock: re-entrant hash, watchdog, waiters served in the order of their requests",
    .explanation =
        "As pubsub, with a queue: a client that is refused is appended to a list, and to a sorted set with the time\n"
        "by which it has to come back, by its own wall clock: its turn and 5 minutes more. Only the head of the\n"
        "list is granted a free lock, and a release publishes to the head alone. Each script first removes heads\n"
        "whose time is over.\n"
        "Promises: as pubsub, in the order of arrival; one waiter woken per release.\n"
        "Costs: 1 script to acquire, a script and a DEL to release, 3 scripts per lease held; the scripts grow with\n"
        "the queue.\n"
        "Breaks: where pubsub does. A waiter that dies in the queue delays all behind it by those 5 minutes\n"
        "although the lock is free, and a waiter that got 0 ms as its time to wait asks every millisecond\n"
        "meanwhile. Wall clocks that differ remove waiters too early (they lose their place, never the exclusion)\n"
        "or too late.",
    .source = "Redisson, RedissonFairLock (fairLockWaitTimeout: 5 min since 3.13.3, 5 s before)",
    FAIR_FIELDS,
    .variant = &(const struct fair_rule){.base = {FAIR_BASE, .attempt = fair_attempt}},
};
