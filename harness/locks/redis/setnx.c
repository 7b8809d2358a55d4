/* SETNX without expiry: the client that sets the key holds the lock until the key is deleted. */
#include "harness/locks/redis/set_nx_px.h"

extern const struct lock_type LOCK_SETNX;

static struct lock_grant setnx_attempt(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    set_nx_px_new_owner(lock);
    const struct env_reply *reply =
        env_command(lock->env, 0, "SETNX %b %s", lock->options.resource, lock->options.resource_length, self->owner);
    env_checkpoint(lock->env, "after-acquire-reply");
    if (reply->kind != ENV_REPLY_INTEGER) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    return (struct lock_grant){.outcome = reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED};
}

static struct lock_grant setnx_acquire(struct lock *lock, int64_t wait_ms) {
    static const struct poll_pace pace = {.first_ms = 100, .most_ms = 100};
    return poll_until_granted(lock, wait_ms, &pace, setnx_attempt);
}

const struct lock_type LOCK_SETNX = {
    .name = "setnx",
    .summary = "SETNX without expiry, compare-and-delete in Lua",
    .explanation =
        "SETNX sets the key if it is absent; a script deletes it for its owner only. Nothing ever expires.\n"
        "Promises: one holder as long as the server keeps its data, however long that holder stands still.\n"
        "Costs: 1 command to acquire, 1 script to release, a poll every 100 ms by each waiter.\n"
        "Breaks: a holder that dies leaves the lock held for ever; an operator has to delete the key by hand.",
    .source = "Redis documentation of SETNX (the old locking pattern); first article, \"SETNX\"",
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 150,
    .state_size = sizeof(struct set_nx_px),
    .open = set_nx_px_open,
    .acquire = setnx_acquire,
    .is_held = set_nx_px_is_held,
    .release = set_nx_px_release,
};
