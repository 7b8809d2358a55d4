/* SET NX PX with an empty value, released by a DEL without a check. */
#include "harness/locks/redis/set_nx_px.h"

static struct lock_grant set_nx_blind_del_attempt(struct lock *lock) {
    enum outcome outcome =
        set_nx_outcome(env_command(lock->env, 0, "SET %b %s NX PX %lld", lock->options.resource,
                                   lock->options.resource_length, "", (long long)lock->options.lease_ms));
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

static enum outcome set_nx_blind_del_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return script_outcome(env_command(lock->env, 0, "DEL %b", lock->options.resource, lock->options.resource_length));
}

const struct lock_type LOCK_SET_NX_BLIND_DEL = {
    .name = "set-nx-blind-del",
    .summary = "SET NX PX with an empty value, released by a plain DEL",
    .explanation =
        "The key says that the lock is held, not by whom. The holder deletes it when it is done, and reports an\n"
        "error only when there was nothing to delete. Waiters poll after a random 0 to 25 ms.\n"
        "Promises: one holder while no client outlasts its lease.\n"
        "Costs: 1 command to acquire, 1 to release, and about 80 polls a second by each waiter.\n"
        "Breaks: a client that outlasts its lease deletes the next holder's lock when it releases. So one late\n"
        "client lets in a third, whose lock the second then deletes, and so on.",
    .source = "the fourth article's lock in Go (there with EX 10); laravel/framework#26213",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 25,
    .pace = &(const struct poll_pace){.spread_ms = 25},
    .acquire = poll_acquire,
    .attempt = set_nx_blind_del_attempt,
    .release = set_nx_blind_del_release,
};
