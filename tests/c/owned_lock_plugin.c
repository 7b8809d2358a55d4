/* A plug-in for tests: a string with a random owner and a counter of tokens; with WATCHED a watchdog renews it. Its
 * mistakes:
 *   SHORT          the server's lease is half of the one that was asked for
 *   LOOKS_FIRST    looks whether it is free, and takes it with another command
 *   ERROR_GRANTS   takes an error for a grant
 *   LOSES_GRANT    takes an answer that does not come for a refusal
 *   WAITERS_KEEP   who is refused makes the lease longer
 *   KEEPS_OWNER    all grants of a client have one owner
 *   TOKEN_EXPIRES  the counter of tokens ends with the lease
 *   DRAWS_FIRST    draws the token, and then takes the lock with another command
 *   RENEWS_OTHERS  a renewal does not ask whose the lock is
 *   EMPTY_RENEWAL  says that it has renewed what is gone
 *   STAYS          the watchdog goes on after the release
 *   ENDS           the watchdog ends when one answer does not come
 *   TENTH          the watchdog ends after ten renewals
 *   ADDS           a renewal adds to the lease
 *   LEAVES         an acquire whose wait is over leaves a key without an end
 *   FORGETS_END    after an error it takes the lock by another command, without an end
 *   FAIR           it says that it is fair, and its waiters poll
 * With LATER it renews a millisecond after a third of the lease, which is no mistake. With STATES a grant says until
 * when it is valid, and the mistakes are
 *   ADDED          the allowance for clocks that drift is added to the lease
 *   ARRIVAL        the lease counts from the answer */
#include <stdio.h>

#include "lockstorm.h"

#ifdef LATER
enum { AFTER_MS = 1 };
#else
enum { AFTER_MS = 0 };
#endif
enum { POLL_MS = 200, OWNER = 33, PERIODS = 3 };

#ifdef LOOKS_FIRST
#define FREE "true"
#else
#define FREE "redis.call('exists', KEYS[1]) == 0"
#endif
#ifdef TOKEN_EXPIRES
#define COUNTED "redis.call('pexpire', KEYS[2], ARGV[2]) "
#else
#define COUNTED ""
#endif
#ifdef WAITERS_KEEP
#define REFUSED "redis.call('pexpire', KEYS[1], ARGV[2]) "
#else
#define REFUSED ""
#endif
#ifdef RENEWS_OTHERS
#define OWN "redis.call('exists', KEYS[1]) == 1"
#else
#define OWN "redis.call('get', KEYS[1]) == ARGV[1]"
#endif

/* The token, or 0. */
static const char ACQUIRE[] =
    "if " FREE " then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) "
    "local token = redis.call('incr', KEYS[2]) " COUNTED "return token end " REFUSED "return 0";
#ifdef ADDS
#define ADDED_TO "redis.call('pttl', KEYS[1]) + ARGV[2]"
#else
#define ADDED_TO "ARGV[2]"
#endif
static const char RENEW[] = "if " OWN " then return redis.call('pexpire', KEYS[1], " ADDED_TO ") end return 0";
static const char RELEASE[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

struct owned_lock {
    char owner[OWNER];
    struct key tokens;
    struct script acquire, renew, release;
    int renewals; /* of the watchdog, since the grant */
    struct watchdog watchdog;
};

static enum outcome open(struct lock *lock) {
    struct owned_lock *self = lock->state;
    self->tokens = key_make("tokens:", lock->options.resource, lock->options.resource_length, "");
    struct script *scripts[] = {&self->acquire, &self->renew, &self->release};
    const char *const sources[] = {ACQUIRE, RENEW, RELEASE};
    enum outcome loaded = OUTCOME_OK;
    for (int each = 0; each < 3 && loaded == OUTCOME_OK; each++) {
        scripts[each]->source = sources[each];
        loaded = script_load(lock->env, 0, scripts[each]);
    }
    return loaded;
}

static void new_owner(struct lock *lock) {
    struct owned_lock *self = lock->state;
#ifdef KEEPS_OWNER
    if (self->owner[0]) return;
#endif
    snprintf(self->owner, sizeof self->owner, "%016llx%016llx", (unsigned long long)env_random(lock->env),
             (unsigned long long)env_random(lock->env));
}

static const struct env_reply *ask(struct lock *lock, struct env *env, struct script *script, long long lease_ms) {
    struct owned_lock *self = lock->state;
    return script_run(env, 0, script, "2 %b %b %s %lld", lock->options.resource, lock->options.resource_length,
                      self->tokens.bytes, self->tokens.length, self->owner, lease_ms);
}

/* `asked_ns`: when it was asked for. 0: the lock does not say. */
static int64_t valid_until_ns(struct lock *lock, int64_t asked_ns) {
    int64_t lease_ns = lock->options.lease_ms * ENV_NS_PER_MS, from_ns = asked_ns, drift_ns = -lease_ns / 100;
#ifdef ADDED
    drift_ns = lease_ns / 10;
#endif
#ifdef ARRIVAL
    from_ns = env_mono_ns(lock->env);
#endif
#ifdef STATES
    return from_ns + lease_ns + drift_ns;
#else
    (void)from_ns, (void)drift_ns;
    return 0;
#endif
}

static struct lock_grant attempt(struct lock *lock) {
    struct owned_lock *self = lock->state;
    long long lease_ms = lock->options.lease_ms;
    int64_t asked_ns = env_mono_ns(lock->env);
    new_owner(lock);
#ifdef SHORT
    lease_ms = lease_ms > 1 ? lease_ms / 2 : 1;
#endif
#ifdef LOOKS_FIRST
    const struct env_reply *there =
        env_command(lock->env, 0, "EXISTS %b", lock->options.resource, lock->options.resource_length);
    if (there->kind != ENV_REPLY_INTEGER || there->integer) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
#endif
#ifdef DRAWS_FIRST
    const struct env_reply *drawn = env_command(lock->env, 0, "INCR %b", self->tokens.bytes, self->tokens.length);
    if (drawn->kind != ENV_REPLY_INTEGER) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
    long long token = drawn->integer;
#endif
    const struct env_reply *reply = ask(lock, lock->env, &self->acquire, lease_ms);
    env_checkpoint(lock->env, "after-acquire-reply");
    bool granted = reply->kind == ENV_REPLY_INTEGER && reply->integer > 0;
#ifdef DRAWS_FIRST
    if (granted) return (struct lock_grant){.outcome = OUTCOME_OK, .token = token};
#endif
    int64_t until_ns = valid_until_ns(lock, asked_ns);
    if (granted && (!until_ns || until_ns > env_mono_ns(lock->env)))
        return (struct lock_grant){.outcome = OUTCOME_OK, .token = reply->integer, .valid_until_ns = until_ns};
    if (granted) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN}; /* it may be over */
    enum outcome outcome = reply->kind == ENV_REPLY_INTEGER ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
#ifdef ERROR_GRANTS
    if (reply->kind == ENV_REPLY_ERROR) return (struct lock_grant){.outcome = OUTCOME_OK, .token = 1};
#endif
#ifdef FORGETS_END
    if (reply->kind == ENV_REPLY_ERROR) {
        const struct env_reply *taken = env_command(lock->env, 0, "SETNX %b %s", lock->options.resource,
                                                    lock->options.resource_length, self->owner);
        if (taken->kind == ENV_REPLY_INTEGER && taken->integer) {
            taken = env_command(lock->env, 0, "INCR %b", self->tokens.bytes, self->tokens.length);
            bool drawn = taken->kind == ENV_REPLY_INTEGER;
            return (struct lock_grant){.outcome = drawn ? OUTCOME_OK : OUTCOME_UNKNOWN, .token = taken->integer};
        }
    }
#endif
#ifdef LOSES_GRANT
    if (outcome == OUTCOME_UNKNOWN) outcome = OUTCOME_REFUSED;
#endif
    return (struct lock_grant){.outcome = outcome};
}

static enum outcome renew_in(struct lock *lock, struct env *env) {
    struct owned_lock *self = lock->state;
    enum outcome outcome = script_outcome(ask(lock, env, &self->renew, lock->options.lease_ms));
#ifdef EMPTY_RENEWAL
    if (outcome == OUTCOME_REFUSED) return OUTCOME_OK;
#endif
    return outcome;
}

#ifdef TENTH
static enum outcome renew_ten_times(struct lock *lock, struct env *env) {
    struct owned_lock *self = lock->state;
    return self->renewals++ < 10 ? renew_in(lock, env) : OUTCOME_REFUSED;
}
#else
#define renew_ten_times renew_in
#endif

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct owned_lock *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (;;) {
        struct lock_grant grant = attempt(lock);
#ifdef WATCHED
        self->watchdog.renew = renew_ten_times;
        self->renewals = 0;
        self->watchdog.period_ms = lock->options.lease_ms / PERIODS + AFTER_MS;
#ifdef ENDS
        self->watchdog.trouble = WATCHDOG_ENDS_SILENTLY;
#endif
        if (grant.outcome == OUTCOME_OK) watchdog_start(&self->watchdog, lock);
#endif
#ifdef LEAVES
        if (grant.outcome == OUTCOME_REFUSED && env_mono_ns(lock->env) >= until_ns)
            env_command(lock->env, 0, "SET waits:%b %s", lock->options.resource, lock->options.resource_length,
                        self->owner);
#endif
        if (grant.outcome != OUTCOME_REFUSED || env_mono_ns(lock->env) >= until_ns) return grant;
        env_sleep(lock->env, POLL_MS);
    }
    (void)self;
}

static enum outcome renew(struct lock *lock) {
    return renew_in(lock, lock->env);
}

static enum outcome release(struct lock *lock) {
    struct owned_lock *self = lock->state;
#if defined WATCHED && !defined STAYS
    watchdog_stop(&self->watchdog);
#endif
    env_checkpoint(lock->env, "before-release");
    return script_outcome(ask(lock, lock->env, &self->release, lock->options.lease_ms));
}

static void close(struct lock *lock) {
    struct owned_lock *self = lock->state;
#ifdef WATCHED
    watchdog_stop(&self->watchdog);
#endif
    key_free(&self->tokens);
}

#ifdef WATCHED
enum { RENEWS = LOCK_TRAIT_RENEWS };
#else
enum { RENEWS = 0 };
#endif
#ifdef FAIR
enum { KEEPS_ORDER = LOCK_TRAIT_FAIR };
#else
enum { KEEPS_ORDER = 0 };
#endif

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-owned",
    .summary = "a string with a random owner, and a counter of tokens",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | RENEWS | KEEPS_ORDER,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = POLL_MS,
    .state_size = sizeof(struct owned_lock),
    .open = open,
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .close = close,
};
