/* SETNX, and the expiry by a second command. */
#include "harness/locks/redis/get_del.h"
#include "harness/locks/redis/set_nx_px.h"

static struct lock_grant setnx_expire_attempt(struct lock *lock) {
    const struct set_nx_px *self = lock->state;
    set_nx_px_new_owner(lock);
    enum outcome outcome = script_outcome(
        env_command(lock->env, 0, "SETNX %b %s", lock->options.resource, lock->options.resource_length, self->owner));
    if (outcome == OUTCOME_OK) {
        env_checkpoint(lock->env, "between-setnx-and-expire");
        /* The sources ignore the answer's value; a missing answer is unknown all the same. */
        const struct env_reply *reply = env_command(lock->env, 0, "PEXPIRE %b %lld", lock->options.resource,
                                                    lock->options.resource_length, (long long)lock->options.lease_ms);
        if (reply->kind != ENV_REPLY_INTEGER) outcome = OUTCOME_UNKNOWN;
    }
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

const struct lock_type LOCK_SETNX_EXPIRE = {
    .name = "setnx-expire",
    .summary = "SETNX, then PEXPIRE as a second command; GET, compare in the client, DEL",
    .explanation =
        "SETNX takes the lock, a second command sets its lease. The release reads the owner, compares it in the\n"
        "client, and deletes the key.\n"
        "Promises: one holder while no client outlasts its lease; a lease only if the second command arrives.\n"
        "Costs: 2 commands to acquire, 2 to release, a poll every 100 ms by each waiter.\n"
        "Breaks: a client that dies between the two commands leaves a lock that never expires; and between GET and\n"
        "DEL as set-nx-get-del.",
    .source =
        "first article, the \"problematic\" example; redis-py before 3.0 (#818); laravel/horizon#1738; ShedLock#65",
    SET_NX_PX_FIELDS,
    .poll_ms = 150,
    .pace = &(const struct poll_pace){.first_ms = 100, .most_ms = 100},
    .attempt = setnx_expire_attempt,
    .release = get_del_release,
};
