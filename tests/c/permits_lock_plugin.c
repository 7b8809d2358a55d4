/* A plug-in for tests: a counter of free permits. Its first client sets it to the number of permits, and to SURPLUS
 * more. */
#include "lockstorm.h"

#ifndef SURPLUS
#define SURPLUS 0
#endif

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000};
static const char TAKE[] = "if tonumber(redis.call('get', KEYS[1])) < 1 then return 0 end "
                           "redis.call('decr', KEYS[1]) return 1";

struct state {
    struct script take;
};

static enum outcome open(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    ((struct state *)lock->state)->take.source = TAKE;
    env_command(lock->env, 0, "SET %b %lld NX", options->resource, options->resource_length,
                (long long)options->permits + SURPLUS);
    return script_load(lock->env, 0, &((struct state *)lock->state)->take);
}

static struct lock_grant attempt(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    struct script *take = &((struct state *)lock->state)->take;
    return (struct lock_grant){
        .outcome = script_outcome(script_run(lock->env, 0, take, "1 %b", options->resource, options->resource_length))};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome release(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    const struct env_reply *reply = env_command(lock->env, 0, "INCR %b", options->resource, options->resource_length);
    return reply->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "permits",
    .summary = "a counter of free permits",
    .capacity = LOCK_CAPACITY_ASKED,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .open = open,
    .acquire = acquire,
    .release = release,
};
