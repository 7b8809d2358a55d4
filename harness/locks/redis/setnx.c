/* SETNX without expiry: the client that sets the key holds the lock until the key is deleted. */
#include "harness/locks/redis/set_nx_px.h"

static struct lock_grant setnx_attempt(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    set_nx_px_new_owner(lock);
    enum outcome outcome = script_outcome(
        env_command(lock->env, 0, "SETNX %b %s", lock->options.resource, lock->options.resource_length, self->owner));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
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
    SET_NX_PX_FIELDS,
    .traits = 0,
    .poll_ms = 150,
    .pace = &(const struct poll_pace){.first_ms = 100, .most_ms = 100},
    .attempt = setnx_attempt,
    .renew = NULL,
};
