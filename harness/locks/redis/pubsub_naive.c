/* Waiting by pub/sub as a first draft has it: check, subscribe, wait. */
#include "harness/locks/common/push.h"
#include "harness/locks/redis/set_nx_px.h"

struct pubsub_naive {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct key channel;
};

static enum outcome pubsub_naive_open(struct lock *lock) {
    struct pubsub_naive *self = lock->state;
    self->channel = key_make("released:", lock->options.resource, lock->options.resource_length, "");
    return set_nx_px_open(lock);
}

/* Nothing checks the lock between the subscription and the wait: the message of a release that comes before the
 * subscription is lost. */
static struct lock_grant pubsub_naive_acquire(struct lock *lock, int64_t wait_ms) {
    struct pubsub_naive *self = lock->state;
    struct env *env = lock->env;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(env) + wait_ms * ENV_NS_PER_MS;
    bool subscribed = false;
    struct lock_grant grant = set_nx_px_attempt(lock);
    while (grant.outcome == OUTCOME_REFUSED && env_mono_ns(env) < until_ns) {
        if (!subscribed) env_checkpoint(env, "between-check-and-subscribe");
        if (!subscribed && env_subscribe(env, 0, self->channel.bytes, self->channel.length) != OUTCOME_OK)
            return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
        subscribed = true;
        int64_t left_ms = wait_ms < 0 ? -1 : (until_ns - env_mono_ns(env) + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
        if (!push_await(env, &self->channel, left_ms)) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
        grant = set_nx_px_attempt(lock);
    }
    if (subscribed) env_unsubscribe(env, 0, self->channel.bytes, self->channel.length);
    return grant;
}

/* It publishes even when the lock was no longer its own. */
static enum outcome pubsub_naive_release(struct lock *lock) {
    struct pubsub_naive *self = lock->state;
    enum outcome outcome = set_nx_px_release(lock);
    env_command(lock->env, 0, "PUBLISH %b 0", self->channel.bytes, self->channel.length);
    return outcome;
}

static void pubsub_naive_close(struct lock *lock) {
    struct pubsub_naive *self = lock->state;
    key_free(&self->channel);
}

const struct lock_type LOCK_PUBSUB_NAIVE = {
    .name = "pubsub-naive",
    .summary = "set-nx-px that checks, then subscribes, then waits for a message without a timeout",
    .explanation =
        "As set-nx-px, but a client that is refused subscribes to a channel and waits; a release publishes there.\n"
        "Promises: one holder while no client outlasts its lease; not that a waiter ever enters.\n"
        "Costs: 1 command to acquire, a script and a PUBLISH to release; one message to every waiter.\n"
        "Breaks: a release between the check and the subscription wakes no waiter, and a lease that runs out\n"
        "publishes nothing. The waiter then sleeps although the lock is free, until another client happens to\n"
        "release it, or for ever. pubsub is the same idea done right.",
    .source = "the usual first draft; what pubsub's second try and its timeout are there for (redisson#5761, #763)",
    SET_NX_PX_FIELDS,
    .waits = LOCK_WAITS_PUSH,
    .poll_ms = 0,
    .state_size = sizeof(struct pubsub_naive),
    .open = pubsub_naive_open,
    .acquire = pubsub_naive_acquire,
    .is_held = NULL,
    .release = pubsub_naive_release,
    .close = pubsub_naive_close,
};
