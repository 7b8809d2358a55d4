/* The lock of redis.io's "single instance" section: SET NX PX with a random value, released by compare-and-delete. */
#include "harness/locks/redis/set_nx_px.h"

#include <string.h>

const struct poll_pace SET_NX_PX_PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};

static const char RELEASE[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
static const char RENEW[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

enum outcome set_nx_px_load_on(struct lock *lock, int node) {
    struct set_nx_px *self = lock->state;
    if (!self->release.source) self->release.source = RELEASE;
    if (!self->renew.source) self->renew.source = RENEW;
    enum outcome loaded = script_load(lock->env, node, &self->release);
    return loaded == OUTCOME_OK ? script_load(lock->env, node, &self->renew) : loaded;
}

void set_nx_px_new_owner(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    key_draw(lock->env, self->owner);
}

enum outcome set_nx_outcome(const struct env_reply *reply) {
    if (reply->kind == ENV_REPLY_STATUS) return OUTCOME_OK;
    return reply->kind == ENV_REPLY_NIL ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

enum outcome set_nx_px_set_on(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    struct set_nx_px *self = lock->state;
    return set_nx_outcome(env_command_within(env, node, limit_ms, "SET %b %s NX PX %lld", lock->options.resource,
                                             lock->options.resource_length, self->owner,
                                             (long long)lock->options.lease_ms));
}

enum outcome set_nx_px_renew_on(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    struct set_nx_px *self = lock->state;
    return script_outcome(script_run_within(env, node, limit_ms, &self->renew, "1 %b %s %lld", lock->options.resource,
                                            lock->options.resource_length, self->owner,
                                            (long long)lock->options.lease_ms));
}

enum outcome set_nx_px_release_on(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    struct set_nx_px *self = lock->state;
    return script_outcome(script_run_within(env, node, limit_ms, &self->release, "1 %b %s", lock->options.resource,
                                            lock->options.resource_length, self->owner));
}

enum outcome set_nx_px_open(struct lock *lock) {
    return set_nx_px_load_on(lock, 0);
}

struct lock_grant set_nx_px_attempt(struct lock *lock) {
    set_nx_px_new_owner(lock);
    return set_nx_px_attempt_as(lock);
}

struct lock_grant set_nx_px_attempt_as(struct lock *lock) {
    enum outcome outcome = set_nx_px_set_on(lock, lock->env, 0, env_reply_limit_ms(lock->env));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

enum outcome set_nx_px_renew_in(struct lock *lock, struct env *env) {
    return set_nx_px_renew_on(lock, env, 0, env_reply_limit_ms(env));
}

enum outcome set_nx_px_renew(struct lock *lock) {
    return set_nx_px_renew_in(lock, lock->env);
}

enum outcome set_nx_px_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return set_nx_px_release_on(lock, lock->env, 0, env_reply_limit_ms(lock->env));
}

enum outcome set_nx_px_is_held(struct lock *lock) {
    const struct set_nx_px *self = lock->state;
    const struct env_reply *reply =
        env_command(lock->env, 0, "GET %b", lock->options.resource, lock->options.resource_length);
    if (reply->kind == ENV_REPLY_NIL) return OUTCOME_REFUSED;
    if (reply->kind != ENV_REPLY_STRING) return OUTCOME_UNKNOWN;
    return strcmp(reply->text, self->owner) == 0 ? OUTCOME_OK : OUTCOME_REFUSED;
}

const struct lock_type LOCK_SET_NX_PX = {
    .name = "set-nx-px",
    .summary = "SET NX PX with a random value, compare-and-delete in Lua",
    .explanation =
        "SET key value NX PX lease grants the lock to the client that finds the key absent; the random value names\n"
        "the owner, and a script deletes the key only for its owner. A client that is refused polls: 50 ms,\n"
        "doubling to 1 s, plus up to half of it, 100 tries.\n"
        "Promises: one holder while no client outlasts its lease; a crashed holder blocks the others for one lease.\n"
        "Costs: 1 command to acquire, 1 script to release, and the waiters' polls.\n"
        "Breaks: a holder that is paused, or whose write is delayed, past the lease acts beside the next holder,\n"
        "and nothing in its write lets the resource recognise that (no fencing token).",
    .source = "redis.io, Distributed Locks, \"Correct implementation with a single instance\"; redis-py Lock",
    SET_NX_PX_FIELDS,
};
