/* Redisson's semaphore: a counter of free permits. */
#include "harness/locks/semaphore.h"

extern const struct lock_type LOCK_SEMAPHORE;

static const char ACQUIRE[] = "if tonumber(redis.call('get', KEYS[1]) or 0) < 1 then return -1 end\n"
                              "redis.call('decr', KEYS[1])\n"
                              "return false";

static const char RELEASE[] = "local free = redis.call('incr', KEYS[1])\n"
                              "redis.call('publish', ARGV[1], free)\n"
                              "return free";

/* Whoever opens it first says how many permits there are. */
enum outcome semaphore_open(struct lock *lock) {
    struct semaphore *self = lock->state;
    const struct lock_options *options = &lock->options;
    self->channel = key_make("redisson_sc:", options->resource, options->resource_length, "");
    self->acquire.source = ACQUIRE;
    self->release.source = RELEASE;
    const struct env_reply *reply = env_command(lock->env, 0, "SET %b %lld NX", options->resource,
                                                options->resource_length, (long long)options->permits);
    if (reply->kind != ENV_REPLY_STATUS && reply->kind != ENV_REPLY_NIL) return OUTCOME_UNKNOWN;
    enum outcome loaded = script_load(lock->env, 0, &self->acquire);
    return loaded == OUTCOME_OK ? script_load(lock->env, 0, &self->release) : loaded;
}

struct push_try semaphore_attempt(struct lock *lock, void *what) {
    struct semaphore *self = what;
    struct push_try try = redisson_answer(
        script_run(lock->env, 0, &self->acquire, "1 %b", lock->options.resource, lock->options.resource_length));
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct semaphore *self = lock->state;
    const struct push_waiter waiter = {semaphore_attempt, self, &self->channel};
    return push_until_granted(lock, wait_ms, &waiter);
}

/* Nobody asks whether there was a permit to give back. One that was answered by silence is given back again. */
enum outcome semaphore_release(struct lock *lock) {
    struct semaphore *self = lock->state;
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
    struct semaphore *self = lock->state;
    key_free(&self->channel);
}

const struct lock_type LOCK_SEMAPHORE = {
    .name = "semaphore",
    .summary = "Redisson's semaphore: N permits in a counter, no owner, no lease",
    .explanation =
        "A key holds the number of free permits (--permits). Acquiring lowers it if it is above zero; who is refused\n"
        "subscribes, tries again and waits for the message of a release, without a timeout. Releasing raises it and\n"
        "publishes.\n"
        "Promises: no more holders than permits while everybody gives back what it took, once, and the server keeps its\n"
        "data; a holder may stand still as long as it likes.\n"
        "Costs: 1 script each to acquire and to release; one message to every waiter.\n"
        "Breaks: a permit has no owner, so one released twice - or once, by a release that was repeated because its\n"
        "answer was lost - lets one more in for ever; a holder that dies takes its permit with it for ever; a message\n"
        "that is lost leaves its waiter asleep beside a free permit.",
    .source = "Redisson, RedissonSemaphore",
    .capacity = LOCK_CAPACITY_ASKED,
    .waits = LOCK_WAITS_PUSH,
    .state_size = sizeof(struct semaphore),
    .open = semaphore_open,
    .acquire = acquire,
    .release = semaphore_release,
    .close = semaphore_close,
};
