/* A plug-in for tests: SET NX PX with a watchdog, and its mistakes:
 *   BLIND_PEXPIRE  a renewal extends the key of any holder
 *   BLIND_SET      a stale holder's renewal sets the key anew
 *   DEAF           every answer of the server to a renewal counts as a success
 *   UNSTOPPED      the watchdog runs until its own renewal is refused */
#include <stdio.h>

#include "lockstorm.h"

#define OWNED "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return "

#if defined BLIND_PEXPIRE
#define RENEWAL "return redis.call('pexpire', KEYS[1], ARGV[2])"
#elif defined BLIND_SET
#define RENEWAL "redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1"
#else
#define RENEWAL OWNED "redis.call('pexpire', KEYS[1], ARGV[2])"
#endif

struct state {
    char owner[33];
    struct script release, renew;
    struct watchdog watchdog;
};

static enum outcome open(struct lock *lock) {
    struct state *self = lock->state;
    self->release.source = OWNED "redis.call('del', KEYS[1])";
    self->renew.source = RENEWAL;
    enum outcome opened = script_load(lock->env, 0, &self->release);
    return opened == OUTCOME_OK ? script_load(lock->env, 0, &self->renew) : opened;
}

static enum outcome renew_in(struct lock *lock, struct env *env) {
    struct state *self = lock->state;
    enum outcome renewed =
        script_outcome(script_run(env, 0, &self->renew, "1 %b %s %lld", lock->options.resource,
                                  lock->options.resource_length, self->owner, (long long)lock->options.lease_ms));
#ifdef DEAF
    renewed = OUTCOME_OK;
#endif
    return renewed;
}

static void watch_begin(struct lock *lock) {
    struct state *self = lock->state;
    self->watchdog.renew = renew_in;
    self->watchdog.period_ms = lock->options.lease_ms / 3;
    watchdog_start(&self->watchdog, lock);
}

static struct lock_grant attempt(struct lock *lock) {
    struct state *self = lock->state;
    snprintf(self->owner, sizeof self->owner, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
    const struct env_reply *reply =
        env_command(lock->env, 0, "SET %b %s NX PX %lld", lock->options.resource, lock->options.resource_length,
                    self->owner, (long long)lock->options.lease_ms);
    if (reply->kind == ENV_REPLY_NIL) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
    if (reply->kind != ENV_REPLY_STATUS) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    watch_begin(lock);
    return (struct lock_grant){.outcome = OUTCOME_OK};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};
    struct state *self = lock->state;
    watchdog_stop(&self->watchdog);
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome renew(struct lock *lock) {
    return renew_in(lock, lock->env);
}

static enum outcome release(struct lock *lock) {
    struct state *self = lock->state;
#ifndef UNSTOPPED
    watchdog_stop(&self->watchdog);
#endif
    return script_outcome(script_run(lock->env, 0, &self->release, "1 %b %s", lock->options.resource,
                                     lock->options.resource_length, self->owner));
}

static void close(struct lock *lock) {
    struct state *self = lock->state;
    watchdog_stop(&self->watchdog);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "watched",
    .summary = "set-nx-px with a watchdog",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .open = open,
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .close = close,
};
