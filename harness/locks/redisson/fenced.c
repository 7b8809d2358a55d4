/* Redisson's fenced lock: pubsub whose acquiring script also raises a counter, the grant's fencing token. */
#include "harness/locks/redisson/redisson.h"

static const char ACQUIRE[] =
    "if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then\n"
    "  return {0, redis.call('pttl', KEYS[1])}\n"
    "end\n"
    "redis.call('hincrby', KEYS[1], ARGV[1], 1)\n"
    "redis.call('pexpire', KEYS[1], ARGV[2])\n"
    "return {1, redis.call('incr', KEYS[2])}";

/* The answer: whether it was granted, and the token or the rest of the holder's lease. */
static struct push_try fenced_attempt(struct lock *lock, void *what) {
    struct redisson *self = what;
    const struct env_reply *reply =
        script_run(lock->env, 0, &self->acquire, "2 %b redisson_lock_token:%b %s %lld", self->name, self->name_length,
                   self->tagged.bytes, self->tagged.length, self->owner, (long long)lock->options.lease_ms);
    struct push_try try = {.grant.outcome = OUTCOME_UNKNOWN};
    if (reply->kind == ENV_REPLY_ARRAY && reply->count == 2) {
        bool granted = reply->items[0].integer == 1;
        try.grant.outcome = granted ? OUTCOME_OK : OUTCOME_REFUSED;
        *(granted ? &try.grant.token : &try.again_ms) = reply->items[1].integer;
    }
    env_checkpoint(lock->env, "after-acquire-reply");
    return try;
}

const struct lock_type LOCK_FENCED = {
    .name = "fenced",
    .summary = "Redisson's fenced lock: pubsub whose grants carry a fencing token",
    .explanation =
        "As pubsub; the script that acquires also raises a counter beside the lock, whose new value is the grant's\n"
        "fencing token. Acquiring again while holding raises it, too. The counter never expires.\n"
        "Promises: as pubsub; tokens unique and rising as long as the counter's data lives.\n"
        "Costs: as pubsub.\n"
        "Breaks: where pubsub does, but a resource that checks tokens on reads and writes refuses late clients. One\n"
        "that checks writes only still loses an update (see the scenario gc-pause-read). A failover, restart or\n"
        "eviction that forgets the counter hands out old tokens again, and then the resource refuses the rightful\n"
        "holder.",
    .source = "Redisson >= 3.19.0, RedissonFencedLock; Kleppmann 2016, \"Making the lock safe with fencing\"",
    REDISSON_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_RENEWS,
    .variant = &(const struct redisson_rule){.acquire = ACQUIRE, .attempt = fenced_attempt},
};
