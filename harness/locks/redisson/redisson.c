#include "harness/locks/redisson/redisson.h"

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

static const struct redisson_rule *redisson_rule_of(const struct lock *lock) {
    static const struct redisson_rule usual;
    return lock->type->variant ? lock->type->variant : &usual;
}

enum outcome redisson_hash_open(struct redisson *self, struct env *env, const char *name, size_t length,
                                const struct redisson_rule *rule) {
    self->name = name;
    self->name_length = length;
    self->tagged = key_make("", name, length, "");
    key_draw(env, self->owner);
    if (!rule->publishes_nothing) self->channel = key_make("redisson_lock__channel:", name, length, "");
    self->acquire.source = rule->acquire ? rule->acquire : ACQUIRE;
    self->renew.source = RENEW;
    self->release.source = rule->release ? rule->release : RELEASE;
    struct script *const scripts[] = {&self->acquire, &self->renew, &self->release};
    return script_load_all(env, 0, scripts, sizeof scripts / sizeof scripts[0]);
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

enum outcome redisson_hash_renew(struct redisson *self, struct env *env, int64_t lease_ms) {
    return script_outcome(redisson_hash_ask_renewal(self, env, lease_ms));
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
    char request[KEY_RANDOM + 1];
    key_draw(lock->env, request);
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

struct lock_grant redisson_granted(struct lock *lock, struct lock_grant grant) {
    struct redisson *self = lock->state;
    const struct redisson_rule *rule = redisson_rule_of(lock);
    if (grant.outcome != OUTCOME_OK) return grant;
    if (self->depth++ == 0) {
        self->watchdog.renew = rule->renew ? rule->renew : renew_own;
        self->watchdog.trouble = rule->trouble;
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
    return redisson_hash_open(lock->state, lock->env, lock->options.resource, lock->options.resource_length,
                              redisson_rule_of(lock));
}

struct lock_grant redisson_wait(struct lock *lock, int64_t wait_ms) {
    struct redisson *self = lock->state;
    const struct redisson_rule *rule = redisson_rule_of(lock);
    const struct push_waiter waiter = {rule->attempt ? rule->attempt : redisson_hash_attempt, self, &self->channel};
    return push_until_granted(lock, wait_ms, &waiter);
}

struct lock_grant redisson_acquire(struct lock *lock, int64_t wait_ms) {
    return redisson_granted(lock, redisson_wait(lock, wait_ms));
}

enum outcome redisson_renew(struct lock *lock) {
    return renew_own(lock, lock->env);
}

enum outcome redisson_release(struct lock *lock) {
    struct redisson *self = lock->state;
    redisson_unlock *unlock = redisson_rule_of(lock)->unlock;
    bool freed;
    env_checkpoint(lock->env, "before-release");
    enum outcome outcome = redisson_hash_release(self, lock, unlock ? unlock : redisson_hash_unlock, &freed);
    redisson_released(self, freed);
    return outcome;
}

enum outcome redisson_is_held(struct lock *lock) {
    const struct redisson *self = lock->state;
    return script_outcome(env_command(lock->env, 0, "HEXISTS %b %s", self->name, self->name_length, self->owner));
}

void redisson_close(struct lock *lock) {
    struct redisson *self = lock->state;
    watchdog_stop(&self->watchdog);
    redisson_hash_close(self);
}
