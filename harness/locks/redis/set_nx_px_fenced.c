/* set-nx-px with a fencing token: a counter that is raised in the script that acquires. */
#include <stdlib.h>
#include <string.h>

#include "harness/locks/redis/set_nx_px.h"

struct set_nx_px_fenced {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct script acquire;
    char *counter; /* the lock's name with ":token" behind it */
    size_t counter_length;
};

static const char ACQUIRE[] =
    "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('incr', KEYS[2]) end "
    "return false";

static enum outcome set_nx_px_fenced_open(struct lock *lock) {
    struct set_nx_px_fenced *self = lock->state;
    static const char suffix[] = ":token";
    size_t length = lock->options.resource_length;
    self->counter_length = length + sizeof suffix - 1;
    self->counter = malloc(self->counter_length);
    if (!self->counter) abort();
    memcpy(self->counter, lock->options.resource, length);
    memcpy(self->counter + length, suffix, sizeof suffix - 1);
    self->acquire.source = ACQUIRE;
    enum outcome opened = set_nx_px_open(lock);
    return opened == OUTCOME_OK ? script_load(lock->env, 0, &self->acquire) : opened;
}

static struct lock_grant set_nx_px_fenced_attempt(struct lock *lock) {
    struct set_nx_px_fenced *self = lock->state;
    set_nx_px_new_owner(lock);
    const struct env_reply *reply = script_run(lock->env, 0, &self->acquire, "2 %b %b %s %lld", lock->options.resource,
                                               lock->options.resource_length, self->counter, self->counter_length,
                                               self->base.owner, (long long)lock->options.lease_ms);
    env_checkpoint(lock->env, "after-acquire-reply");
    if (reply->kind == ENV_REPLY_INTEGER) return (struct lock_grant){.outcome = OUTCOME_OK, .token = reply->integer};
    return (struct lock_grant){.outcome = reply->kind == ENV_REPLY_NIL ? OUTCOME_REFUSED : OUTCOME_UNKNOWN};
}

static void set_nx_px_fenced_close(struct lock *lock) {
    struct set_nx_px_fenced *self = lock->state;
    free(self->counter);
}

const struct lock_type LOCK_SET_NX_PX_FENCED = {
    .name = "set-nx-px-fenced",
    .summary = "set-nx-px whose grant carries a fencing token",
    .explanation =
        "As set-nx-px, but one script sets the key and raises a counter, whose new value is the grant's fencing\n"
        "token: a later holder has a larger one. The lock itself is no safer, since the lease still runs out under\n"
        "a paused holder, but a resource that remembers the newest token it has seen can refuse late clients.\n"
        "Promises: as set-nx-px; tokens unique and rising as long as the counter's data lives.\n"
        "Costs: 1 script to acquire, 1 to release.\n"
        "Breaks: against a resource that checks tokens only on writes, a late write that comes before the next\n"
        "holder's is still accepted, and the next holder's update is based on what it had read before (see the\n"
        "scenario gc-pause-read). A failover or restart that forgets the counter hands out old tokens again.",
    .source = "Kleppmann 2016, \"Making the lock safe with fencing\"; the counter as in Redisson's RFencedLock",
    SET_NX_PX_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN,
    .state_size = sizeof(struct set_nx_px_fenced),
    .open = set_nx_px_fenced_open,
    .attempt = set_nx_px_fenced_attempt,
    .close = set_nx_px_fenced_close,
};
