/* Redisson's semaphore of permits that expire: each has a name and an expiry, by the caller's clock. */
#include <string.h>

#include "harness/locks/redisson/semaphore.h"

struct permit_semaphore {
    struct key channel, tagged; /* where a release is published; the resource in braces, for the other key */
    struct script acquire, renew, release;
    char permit[KEY_RANDOM + 1]; /* the one that it has, or may have */
};

/* KEYS: counter, expiry of the permits that are held (ms). ARGV[1]: permit, ARGV[2]: now, ARGV[3]: channel. Frees the
 * permits that have expired. */
#define RECLAIM                                                                                                        \
    "local expired = redis.call('zrangebyscore', KEYS[2], '-inf', ARGV[2])\n"                                          \
    "if #expired > 0 then\n"                                                                                           \
    "  redis.call('zrem', KEYS[2], unpack(expired))\n"                                                                 \
    "  redis.call('publish', ARGV[3], redis.call('incrby', KEYS[1], #expired))\n"                                      \
    "end\n"

/* ARGV[4]: when the permit expires. Refused: ms until the first one does. */
static const char ACQUIRE[] = RECLAIM "if tonumber(redis.call('get', KEYS[1]) or 0) < 1 then\n"
                                      "  local nearest = redis.call('zrange', KEYS[2], 0, 0, 'withscores')[2]\n"
                                      "  return nearest and tonumber(nearest) - tonumber(ARGV[2]) or -1\n"
                                      "end\n"
                                      "redis.call('decr', KEYS[1])\n"
                                      "redis.call('zadd', KEYS[2], ARGV[4], ARGV[1])\n"
                                      "return false";

static const char RENEW[] = RECLAIM "if not redis.call('zscore', KEYS[2], ARGV[1]) then return 0 end\n"
                                    "redis.call('zadd', KEYS[2], ARGV[4], ARGV[1])\n"
                                    "return 1";

static const char RELEASE[] = RECLAIM "if redis.call('zrem', KEYS[2], ARGV[1]) == 0 then return 0 end\n"
                                      "redis.call('publish', ARGV[3], redis.call('incr', KEYS[1]))\n"
                                      "return 1";
#undef RECLAIM

static enum outcome permit_semaphore_open(struct lock *lock) {
    struct permit_semaphore *self = lock->state;
    const struct lock_options *options = &lock->options;
    struct script *const scripts[] = {&self->acquire, &self->renew, &self->release};
    self->tagged = key_make("", options->resource, options->resource_length, "");
    self->channel = key_make("redisson_sc:", options->resource, options->resource_length, "");
    self->acquire.source = ACQUIRE;
    self->renew.source = RENEW;
    self->release.source = RELEASE;
    if (semaphore_make(lock) != OUTCOME_OK) return OUTCOME_UNKNOWN;
    return script_load_all(lock->env, 0, scripts, sizeof scripts / sizeof scripts[0]);
}

/* All scripts take the same arguments. */
static const struct env_reply *permit_semaphore_ask(struct lock *lock, struct script *script, const char *permit) {
    struct permit_semaphore *self = lock->state;
    const struct lock_options *options = &lock->options;
    long long now_ms = env_wall_ns(lock->env) / ENV_NS_PER_MS;
    return script_run(lock->env, 0, script, "2 %b %b:timeout %s %lld %b %lld", options->resource,
                      options->resource_length, self->tagged.bytes, self->tagged.length, permit, now_ms,
                      self->channel.bytes, self->channel.length, now_ms + (long long)options->lease_ms);
}

static struct push_try permit_semaphore_attempt(struct lock *lock, void *what) {
    struct permit_semaphore *self = what;
    char permit[KEY_RANDOM + 1];
    key_draw(lock->env, permit);
    struct push_try try = redisson_answer(permit_semaphore_ask(lock, &self->acquire, permit));
    if (try.grant.outcome != OUTCOME_REFUSED) memcpy(self->permit, permit, sizeof permit);
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

static struct lock_grant permit_semaphore_acquire(struct lock *lock, int64_t wait_ms) {
    struct permit_semaphore *self = lock->state;
    const struct push_waiter waiter = {permit_semaphore_attempt, self, &self->channel};
    return push_until_granted(lock, wait_ms, &waiter);
}

static enum outcome permit_semaphore_renew(struct lock *lock) {
    struct permit_semaphore *self = lock->state;
    return script_outcome(permit_semaphore_ask(lock, &self->renew, self->permit));
}

static enum outcome permit_semaphore_release(struct lock *lock) {
    struct permit_semaphore *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    enum outcome outcome = OUTCOME_UNKNOWN;
    for (int try = 0; try < REDISSON_TRIES && outcome == OUTCOME_UNKNOWN; try++) {
        if (try > 0) env_sleep(lock->env, REDISSON_RETRY_MS);
        outcome = script_outcome(permit_semaphore_ask(lock, &self->release, self->permit));
    }
    return outcome;
}

static void permit_semaphore_close(struct lock *lock) {
    struct permit_semaphore *self = lock->state;
    key_free(&self->channel);
    key_free(&self->tagged);
}

const struct lock_type LOCK_PERMIT_SEMAPHORE = {
    .name = "permit-semaphore",
    .summary = "Redisson's expirable permits: N permits with names and leases, by the caller's clock",
    .explanation =
        "As semaphore, but a permit has a random name and is in a sorted set with the time at which it expires, by\n"
        "the wall clock of the client that took it. Every script first gives back the permits that have expired by\n"
        "its caller's clock. A client that is refused waits for a message, at most until the first permit expires.\n"
        "Promises: no more holders than permits while no holder outlasts its lease and all clocks agree; a holder\n"
        "that dies keeps its permit for one lease; no client can release what another holds, or release twice.\n"
        "Costs: 1 script each to acquire and to release; one message to every waiter.\n"
        "Breaks: a pause past the lease lets one more in; so does one client whose clock is ahead, for it removes\n"
        "permits that are still valid. A release that is repeated because its answer was lost is refused although\n"
        "it has happened.",
    .source = "Redisson, RedissonPermitExpirableSemaphore",
    SEMAPHORE_FIELDS,
    .traits = LOCK_TRAIT_LEASE,
    .state_size = sizeof(struct permit_semaphore),
    .open = permit_semaphore_open,
    .acquire = permit_semaphore_acquire,
    .renew = permit_semaphore_renew,
    .release = permit_semaphore_release,
    .close = permit_semaphore_close,
};
