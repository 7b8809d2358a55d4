/* python-redis-lock with its defaults: no expiry, and a BLPOP that ends only with a signal. */
#include "harness/locks/redis/python_redis_lock.h"

static struct lock_grant blpop_default_attempt(struct lock *lock) {
    const struct signal_list *self = lock->state;
    set_nx_px_new_owner(lock);
    enum outcome outcome = set_nx_outcome(env_command(lock->env, 0, "SET %b %s NX", lock->options.resource,
                                                      lock->options.resource_length, self->base.owner));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static struct lock_grant blpop_default_acquire(struct lock *lock, int64_t wait_ms) {
    return signal_list_acquire(lock, wait_ms, false, blpop_default_attempt);
}

const struct lock_type LOCK_BLPOP_DEFAULT = {
    .name = "blpop-default",
    .summary = "blpop without expiry: the lock stays until it is released, a waiter waits until it is signalled",
    .explanation =
        "The lock is a string that never expires. A client that is refused waits in BLPOP without a limit. The\n"
        "release script leaves exactly one signal, which expires after 1 s.\n"
        "Promises: one holder as long as the server keeps its data, however long that holder stands still; a\n"
        "release wakes a waiter at once.\n"
        "Costs: 1 command to acquire, 1 script to release, 2 commands per wake-up.\n"
        "Breaks: a holder that dies leaves the lock held for ever. When a waiter takes more than 1 s from its\n"
        "refusal to its BLPOP, or dies after it has received the signal, all clients wait although the lock is\n"
        "free.",
    .source = "python-redis-lock 4.0.1, Lock(name) with its defaults; its PR#32 on the signal that expires",
    SIGNAL_LIST_FIELDS,
    .traits = 0,
    .open = python_redis_lock_open,
    .acquire = blpop_default_acquire,
};
