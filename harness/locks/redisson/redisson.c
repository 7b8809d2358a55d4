#include "harness/locks/redisson/redisson.h"

#include <stdio.h>

static const char ACQUIRE[] =
    "if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then\n"
    "  return redis.call('pttl', KEYS[1])\n"
    "end\n"
    "redis.call('hincrby', KEYS[1], ARGV[1], 1)\n"
    "redis.call('pexpire', KEYS[1], ARGV[2])\n"
    "return false";

static const char RENEW[] = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end\n"
                            "return redis.call('pexpire', KEYS[1], ARGV[2])";

/* The latch (KEYS[2]) holds the answer of a request that has run. */
static const char RELEASE[] = "local answered = redis.call('get', KEYS[2])\n"
                              "if answered then return tonumber(answered) end\n"
                              "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return false end\n"
                              "local freed = 0\n"
                              "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then\n"
                              "  redis.call('pexpire', KEYS[1], ARGV[2])\n"
                              "else\n"
                              "  freed = 1\n"
                              "  redis.call('del', KEYS[1])\n"
                              "  if ARGV[4] ~= '' then redis.call('publish', ARGV[4], '0') end\n"
                              "end\n"
                              "redis.call('set', KEYS[2], freed, 'PX', ARGV[3])\n"
                              "return freed";

/* --- one hash --- */

void redisson_id_fill(struct env *env, char id[REDISSON_ID + 1]) {
    snprintf(id, REDISSON_ID + 1, "%016llx%016llx", (unsigned long long)env_random(env),
             (unsigned long long)env_random(env));
}

enum outcome redisson_hash_open(struct redisson *self, struct env *env, const char *name, size_t length,
                                bool publishes) {
    self->name = name;
    self->name_length = length;
    self->tagged = key_make("", name, length, "");
    redisson_id_fill(env, self->owner);
    if (publishes) self->channel = key_make("redisson_lock__channel:", name, length, "");
    struct script *scripts[] = {&self->acquire, &self->renew, &self->release};
    const char *const sources[] = {ACQUIRE, RENEW, RELEASE};
    enum outcome loaded = OUTCOME_OK;
    for (size_t each = 0; each < sizeof scripts / sizeof scripts[0] && loaded == OUTCOME_OK; each++) {
        if (!scripts[each]->source) scripts[each]->source = sources[each];
        loaded = script_load(env, 0, scripts[each]);
    }
    return loaded;
}

void redisson_hash_close(struct redisson *self) {
    key_free(&self->channel);
    key_free(&self->tagged);
}

struct push_try redisson_answer(const struct env_reply *reply) {
    if (reply->kind == ENV_REPLY_NIL) return (struct push_try){.grant.outcome = OUTCOME_OK};
    if (reply->kind != ENV_REPLY_INTEGER) return (struct push_try){.grant.outcome = OUTCOME_UNKNOWN};
    return (struct push_try){.grant.outcome = OUTCOME_REFUSED, .again_ms = reply->integer};
}

struct push_try redisson_hash_attempt(struct lock *lock, void *what) {
    struct redisson *self = what;
    struct push_try try =
        redisson_answer(script_run(lock->env, 0, &self->acquire, "1 %b %s %lld", self->name, self->name_length,
                                   self->owner, (long long)lock->options.lease_ms));
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

const struct env_reply *redisson_hash_ask_renewal(struct redisson *self, struct env *env, int64_t lease_ms) {
    return script_run(env, 0, &self->renew, "1 %b %s %lld", self->name, self->name_length, self->owner,
                      (long long)lease_ms);
}

enum outcome redisson_renewed(const struct env_reply *reply) {
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}

enum outcome redisson_hash_renew(struct redisson *self, struct env *env, int64_t lease_ms) {
    return redisson_renewed(redisson_hash_ask_renewal(self, env, lease_ms));
}

int64_t redisson_latch_ms(const struct env *env) {
    return REDISSON_TRIES * (env_reply_limit_ms(env) + REDISSON_RETRY_MS);
}

const struct env_reply *redisson_hash_unlock(struct redisson *self, struct lock *lock, const char *request) {
    return script_run(lock->env, 0, &self->release, "2 %b redisson_unlock_latch:%b:%s %s %lld %lld %b", self->name,
                      self->name_length, self->tagged.bytes, self->tagged.length, request, self->owner,
                      (long long)lock->options.lease_ms, (long long)redisson_latch_ms(lock->env),
                      self->channel.bytes ? self->channel.bytes : "", self->channel.length);
}

enum outcome redisson_hash_release(struct redisson *self, struct lock *lock, redisson_unlock *unlock, bool *freed) {
    char request[REDISSON_ID + 1];
    redisson_id_fill(lock->env, request);
    *freed = false;
    for (int try = 0; try < REDISSON_TRIES; try++) {
        if (try > 0) env_sleep(lock->env, REDISSON_RETRY_MS);
        const struct env_reply *reply = unlock(self, lock, request);
        if (reply->kind != ENV_REPLY_INTEGER && reply->kind != ENV_REPLY_NIL) continue;
        bool ours = reply->kind == ENV_REPLY_INTEGER;
        *freed = !ours || reply->integer == 1;
        if (ours)
            env_command(lock->env, 0, "DEL redisson_unlock_latch:%b:%s", self->tagged.bytes, self->tagged.length,
                        request);
        return ours ? OUTCOME_OK : OUTCOME_REFUSED;
    }
    return OUTCOME_UNKNOWN;
}

/* --- a lock that has one --- */

static enum outcome renew_own(struct lock *lock, struct env *env) {
    return redisson_hash_renew(lock->state, env, lock->options.lease_ms);
}

struct lock_grant redisson_granted(struct redisson *self, struct lock *lock, struct lock_grant grant,
                                   enum outcome (*renew)(struct lock *lock, struct env *env)) {
    if (grant.outcome != OUTCOME_OK) return grant;
    if (self->depth++ == 0) {
        self->watchdog.renew = renew ? renew : renew_own;
        self->watchdog.period_ms = lock->options.lease_ms / 3 > 0 ? lock->options.lease_ms / 3 : 1;
    }
    watchdog_start(&self->watchdog, lock); /* it runs already, or has ended by a refused renewal */
    return grant;
}

void redisson_released(struct redisson *self, bool freed) {
    self->depth = freed || self->depth == 0 ? 0 : self->depth - 1;
    if (self->depth == 0) watchdog_stop(&self->watchdog);
}

enum outcome redisson_open(struct lock *lock) {
    return redisson_hash_open(lock->state, lock->env, lock->options.resource, lock->options.resource_length, true);
}

struct lock_grant redisson_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson *self = lock->state;
    const struct push_waiter waiter = {redisson_hash_attempt, self, &self->channel};
    return redisson_granted(self, lock, push_until_granted(lock, wait_ms, &waiter), NULL);
}

enum outcome redisson_renew(struct lock *lock) {
    return renew_own(lock, lock->env);
}

enum outcome redisson_release_by(struct lock *lock, redisson_unlock *unlock) {
    struct redisson *self = lock->state;
    bool freed;
    env_checkpoint(lock->env, "before-release");
    enum outcome outcome = redisson_hash_release(self, lock, unlock, &freed);
    redisson_released(self, freed);
    return outcome;
}

enum outcome redisson_release(struct lock *lock) {
    return redisson_release_by(lock, redisson_hash_unlock);
}

enum outcome redisson_is_held(struct lock *lock) {
    const struct redisson *self = lock->state;
    const struct env_reply *reply =
        env_command(lock->env, 0, "HEXISTS %b %s", self->name, self->name_length, self->owner);
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}

void redisson_close(struct lock *lock) {
    struct redisson *self = lock->state;
    watchdog_stop(&self->watchdog);
    redisson_hash_close(self);
}
