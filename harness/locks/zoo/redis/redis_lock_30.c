/* A lock whose lease ends at a time of its holder's clock, which other clients compare with their own clocks. */
#include <stdio.h>

#include "harness/locks/redis/set_nx_px.h"

enum { RANDOM = 12, TIME = SET_NX_PX_OWNER - RANDOM }; /* digits of the value */

struct redis_lock_30 {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct script take;
};

/* ARGV[1]: value, ARGV[2]: now, with as many digits. */
static const char TAKE[] = "local value = redis.call('get', KEYS[1]) "
                           "if value and string.sub(value, 1, #ARGV[2]) > ARGV[2] then return 0 end "
                           "redis.call('set', KEYS[1], ARGV[1]) "
                           "return 1";

static enum outcome redis_lock_30_open(struct lock *lock) {
    struct redis_lock_30 *self = lock->state;
    self->take.source = TAKE;
    enum outcome loaded = script_load(lock->env, 0, &self->take);
    return loaded == OUTCOME_OK ? set_nx_px_open(lock) : loaded;
}

static struct lock_grant redis_lock_30_attempt(struct lock *lock) {
    struct redis_lock_30 *self = lock->state;
    const struct lock_options *options = &lock->options;
    char now[TIME + 1];
    long long now_ms = env_wall_ns(lock->env) / ENV_NS_PER_MS;
    unsigned long long random = env_random_below(lock->env, 1ULL << (4 * RANDOM));
    snprintf(now, sizeof now, "%0*lld", TIME, now_ms);
    snprintf(self->base.owner, sizeof self->base.owner, "%0*lld%0*llx", TIME, now_ms + (long long)options->lease_ms,
             RANDOM, random);
    enum outcome outcome = script_outcome(script_run(lock->env, 0, &self->take, "1 %b %s %s", options->resource,
                                                     options->resource_length, self->base.owner, now));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

const struct lock_type LOCK_REDIS_LOCK_30 = {
    .name = "redis-lock-30",
    .summary = "set-nx-px whose lease is a time in the value, by its holder's clock, judged by the next one's",
    .explanation =
        "As set-nx-px, but the key does not expire: its value begins with the time, by its holder's wall clock, at\n"
        "which the lease ends, and a client takes the lock when its own wall clock shows a later time.\n"
        "Breaks: a client whose clock is ahead takes a lock that is held; one that stood still between reading its\n"
        "clock and its command holds a lock that has expired.",
    .source = "errorception/redis-lock issue 30; dv/redis-semaphore issue 13",
    .fixed = "set-nx-px",
    SET_NX_PX_FIELDS,
    .state_size = sizeof(struct redis_lock_30),
    .open = redis_lock_30_open,
    .attempt = redis_lock_30_attempt,
    .renew = NULL,
};
