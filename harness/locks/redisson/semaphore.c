/* Redisson's semaphore: a counter of free permits. */
#include "harness/locks/redisson/semaphore.h"

static const char ACQUIRE[] = "if tonumber(redis.call('get', KEYS[1]) or 0) < 1 then return -1 end\n"
                              "redis.call('decr', KEYS[1])\n"
                              "return false";

static const char RELEASE[] = "local free = redis.call('incr', KEYS[1])\n"
                              "redis.call('publish', ARGV[1], free)\n"
                              "return free";

/* The first client to open it sets the number of permits. */
enum outcome semaphore_make(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    const struct env_reply *reply = env_command(lock->env, 0, "SET %b %lld NX", options->resource,
                                                options->resource_length, (long long)options->permits);
    return reply->kind == ENV_REPLY_STATUS || reply->kind == ENV_REPLY_NIL ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

enum outcome semaphore_open(struct lock *lock) {
    struct redisson_semaphore *self = lock->state;
    struct script *const scripts[] = {&self->acquire, &self->release};
    self->channel = key_make("redisson_sc:", lock->options.resource, lock->options.resource_length, "");
    self->acquire.source = ACQUIRE;
    self->release.source = RELEASE;
    if (semaphore_make(lock) != OUTCOME_OK) return OUTCOME_UNKNOWN;
    return script_load_all(lock->env, 0, scripts, sizeof scripts / sizeof scripts[0]);
}

struct push_try semaphore_attempt(struct lock *lock, void *what) {
    struct redisson_semaphore *self = what;
    struct push_try try = redisson_answer(
        script_run(lock->env, 0, &self->acquire, "1 %b", lock->options.resource, lock->options.resource_length));
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

struct lock_grant semaphore_acquire(struct lock *lock, int64_t wait_ms) {
    struct redisson_semaphore *self = lock->state;
    const struct push_waiter waiter = {semaphore_attempt, self, &self->channel};
    return push_until_granted(lock, wait_ms, &waiter);
}

/* Does not check that there was a permit to give back, and repeats a release without an answer. */
enum outcome semaphore_release(struct lock *lock) {
    struct redisson_semaphore *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    for (int try = 0; try < REDISSON_TRIES; try++) {
        if (try > 0) env_sleep(lock->env, REDISSON_RETRY_MS);
        const struct env_reply *reply =
            script_run(lock->env, 0, &self->release, "1 %b %b", lock->options.resource, lock->options.resource_length,
                       self->channel.bytes, self->channel.length);
        if (reply->kind == ENV_REPLY_INTEGER) return OUTCOME_OK;
    }
    return OUTCOME_UNKNOWN;
}

void semaphore_close(struct lock *lock) {
    struct redisson_semaphore *self = lock->state;
    key_free(&self->channel);
}

const struct lock_type LOCK_SEMAPHORE = {
    .name = "semaphore",
    .summary = "Redisson's semaphore: N permits in a counter, no owner, no lease",
    .explanation =
        "A key holds the number of free permits (--permits). Acquiring lowers it if it is above zero; a client that\n"
        "is refused subscribes, tries again, and waits for the message of a release, without a timeout. Releasing\n"
        "raises it and publishes.\n"
        "Promises: no more holders than permits while every client gives back once what it took, and the server\n"
        "keeps its data; a holder may stand still as long as it likes.\n"
        "Costs: 1 script each to acquire and to release; one message to every waiter.\n"
        "Breaks: a permit has no owner, so one that is released twice (or once, by a release that was repeated\n"
        "because its answer was lost) lets one more client in for ever; a holder that dies takes its permit with it\n"
        "for ever; a lost message leaves its waiter asleep although a permit is free.",
    .source = "Redisson, RedissonSemaphore",
    SEMAPHORE_FIELDS,
};
