/* A plug-in for tests: a lock whose release wakes its waiters by a message, and its mistakes:
 *   SILENT   the release publishes nothing: waiters sleep until the lease would have ended
 *   EARLY    the release publishes before it deletes the key, with another command
 *   LISTENS  a client that gives up stays subscribed
 *   KEEPS    the release leaves the key, which then ends with its lease
 *   IS_HOST  the owner is the client's host, and a key with that owner is taken for a grant, however old it is */
#include <stdio.h>

#include "host_name.h"
#include "lockstorm.h"

static const char RELEASE[] = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
#ifndef KEEPS
                              "redis.call('del', KEYS[1]) "
#endif
#if !defined SILENT && !defined EARLY
                              "redis.call('publish', KEYS[2], '1') "
#endif
                              "return 1";

struct push_lock {
    char owner[17];
    struct key channel;
    struct script release;
};

static enum outcome open(struct lock *lock) {
    struct push_lock *self = lock->state;
    self->channel = key_make("freed:", lock->options.resource, lock->options.resource_length, "");
    self->release.source = RELEASE;
    return script_load(lock->env, 0, &self->release);
}

static struct lock_grant attempt(struct lock *lock) {
    struct push_lock *self = lock->state;
    const struct lock_options *options = &lock->options;
#ifdef IS_HOST
    unsigned long long who = host_name();
#else
    unsigned long long who = env_random(lock->env);
#endif
    snprintf(self->owner, sizeof self->owner, "%016llx", who);
    const struct env_reply *reply = env_command(lock->env, 0, "SET %b %s NX PX %lld", options->resource,
                                                options->resource_length, self->owner, (long long)options->lease_ms);
    if (reply->kind == ENV_REPLY_STATUS) return (struct lock_grant){.outcome = OUTCOME_OK};
#ifdef IS_HOST
    reply = env_command(lock->env, 0, "GET %b", options->resource, options->resource_length);
    if (reply->kind == ENV_REPLY_STRING && strcmp(reply->text, self->owner) == 0)
        return (struct lock_grant){.outcome = OUTCOME_OK};
    return (struct lock_grant){.outcome = reply->kind == ENV_REPLY_UNKNOWN ? OUTCOME_UNKNOWN : OUTCOME_REFUSED};
#else
    return (struct lock_grant){.outcome = reply->kind == ENV_REPLY_NIL ? OUTCOME_REFUSED : OUTCOME_UNKNOWN};
#endif
}

/* A waiter that misses a message tries again when the lease that it saw is over. */
static void await(struct lock *lock, int64_t until_ns) {
    const struct env_reply *reply =
        env_command(lock->env, 0, "PTTL %b", lock->options.resource, lock->options.resource_length);
    int64_t limit_ms = reply->kind == ENV_REPLY_INTEGER && reply->integer > 0 ? reply->integer : 1;
    int64_t left_ms = (until_ns - env_mono_ns(lock->env)) / ENV_NS_PER_MS + 1;
    (void)env_message(lock->env, 0, left_ms < limit_ms ? left_ms : limit_ms);
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    const struct key *channel = &((struct push_lock *)lock->state)->channel;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    struct lock_grant grant = attempt(lock);
    if (grant.outcome != OUTCOME_REFUSED || wait_ms == 0) return grant;
    env_checkpoint(lock->env, "between-check-and-subscribe");
    if (env_subscribe(lock->env, 0, channel->bytes, channel->length) != OUTCOME_OK)
        return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    for (grant = attempt(lock); grant.outcome == OUTCOME_REFUSED && env_mono_ns(lock->env) < until_ns;
         grant = attempt(lock))
        await(lock, until_ns);
#ifdef LISTENS
    if (grant.outcome == OUTCOME_REFUSED) return grant;
#endif
    env_unsubscribe(lock->env, 0, channel->bytes, channel->length);
    return grant;
}

static enum outcome release(struct lock *lock) {
    struct push_lock *self = lock->state;
    env_checkpoint(lock->env, "before-release");
#ifdef EARLY
    env_command(lock->env, 0, "PUBLISH %b 1", self->channel.bytes, self->channel.length);
#endif
    return script_outcome(script_run(lock->env, 0, &self->release, "2 %b %b %s", lock->options.resource,
                                     lock->options.resource_length, self->channel.bytes, self->channel.length,
                                     self->owner));
}

static void close(struct lock *lock) {
    key_free(&((struct push_lock *)lock->state)->channel);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-push",
    .summary = "SET NX PX, and a message for each release",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct push_lock),
    .open = open,
    .acquire = acquire,
    .release = release,
    .close = close,
};
