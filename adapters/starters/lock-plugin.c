/* A lock of your own in C: set-nx-px with one difference: the holder learns when its lease ends.
 *
 *   cc -std=c11 -O2 -fPIC -shared -I "$LOCKSTORM/build/include" -o lock-plugin.so lock-plugin.c
 *   lockstorm plugin check ./lock-plugin.so
 *
 * Get time, sleep, randomness and messages from `env` only: then the trial controls time, and the same seed gives the
 * same history. Keep the state of a grant in lock->state, never in a static variable. */
#include <stdio.h>

#include "lockstorm.h"

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};

static const char RELEASE[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

struct state {
    char owner[33]; /* random, new for every attempt */
    struct script release;
};

static enum outcome open(struct lock *lock) {
    struct state *self = lock->state;
    self->release.source = RELEASE;
    return script_load(lock->env, 0, &self->release);
}

static struct lock_grant attempt(struct lock *lock) {
    struct state *self = lock->state;
    const struct lock_options *options = &lock->options;
    snprintf(self->owner, sizeof self->owner, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
    int64_t asked_ns = env_mono_ns(lock->env); /* before the request: the server's lease ends later */
    const struct env_reply *reply = env_command(lock->env, 0, "SET %b %s NX PX %lld", options->resource,
                                                options->resource_length, self->owner, (long long)options->lease_ms);
    env_checkpoint(lock->env, "after-acquire-reply"); /* a fault can be injected here */
    if (reply->kind == ENV_REPLY_NIL) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
    if (reply->kind != ENV_REPLY_STATUS) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    /* The difference: without valid_until_ns the holder believes in its grant until it releases. */
    int64_t valid_until_ns = asked_ns + options->lease_ms * ENV_NS_PER_MS;
    return (struct lock_grant){.outcome = OUTCOME_OK, .valid_until_ns = valid_until_ns};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome release(struct lock *lock) {
    struct state *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    return script_outcome(script_run(lock->env, 0, &self->release, "1 %b %s", lock->options.resource,
                                     lock->options.resource_length, self->owner));
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "my-lock",
    .summary = "set-nx-px whose holder learns when its lease ends",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 1500, /* PACE: a second, and up to half of it at random */
    .state_size = sizeof(struct state),
    .open = open,
    .acquire = acquire,
    .release = release,
};
