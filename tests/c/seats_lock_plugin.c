/* A plug-in for tests: a semaphore whose permits have leases, in a sorted set by the end of each, by the server's
 * clock. Its mistake, which nobody sees with one permit:
 *   OLDEST  a release gives back the permit that ends first, of any client */
#include <stdio.h>

#include "lockstorm.h"

#define NOW                                                                                                            \
    "local time = redis.call('time') "                                                                                 \
    "local now = time[1] * 1000 + math.floor(time[2] / 1000) "                                                         \
    "redis.call('zremrangebyscore', KEYS[1], '-inf', now) "

#ifdef OLDEST
#define GIVEN_BACK "redis.call('zremrangebyrank', KEYS[1], 0, 0)"
#else
#define GIVEN_BACK "redis.call('zrem', KEYS[1], ARGV[1])"
#endif

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 200};
static const char TAKE[] =
    NOW "if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end "
        "redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1";
static const char GIVE[] = NOW "if not redis.call('zscore', KEYS[1], ARGV[1]) then return 0 end return " GIVEN_BACK;

struct seats_lock {
    char owner[33];
    struct script take, give;
};

static enum outcome open(struct lock *lock) {
    struct seats_lock *self = lock->state;
    self->take.source = TAKE;
    self->give.source = GIVE;
    enum outcome opened = script_load(lock->env, 0, &self->take);
    return opened == OUTCOME_OK ? script_load(lock->env, 0, &self->give) : opened;
}

static enum outcome ask(struct lock *lock, struct script *script) {
    const struct seats_lock *self = lock->state;
    const struct lock_options *options = &lock->options;
    return script_outcome(script_run(lock->env, 0, script, "1 %b %s %lld %lld", options->resource,
                                     options->resource_length, self->owner, (long long)options->lease_ms,
                                     (long long)options->permits));
}

static struct lock_grant attempt(struct lock *lock) {
    struct seats_lock *self = lock->state;
    snprintf(self->owner, sizeof self->owner, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
    return (struct lock_grant){.outcome = ask(lock, &self->take)};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome release(struct lock *lock) {
    return ask(lock, &((struct seats_lock *)lock->state)->give);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-seats",
    .summary = "a sorted set of permits with leases",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = LOCK_CAPACITY_ASKED,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 200,
    .state_size = sizeof(struct seats_lock),
    .open = open,
    .acquire = acquire,
    .release = release,
};
