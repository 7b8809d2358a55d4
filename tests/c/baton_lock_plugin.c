/* A plug-in for tests: the lock is an element of a list. A release that has lost its connection is tried a second time.
 */
#include "lockstorm.h"

static enum outcome open(struct lock *lock) {
    if (env_command(lock->env, 0, "SETNX made 1")->integer) env_command(lock->env, 0, "RPUSH baton 1");
    return OUTCOME_OK;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    (void)wait_ms;
    const struct env_reply *reply = env_command_blocking(lock->env, 0, 3000, "BLPOP baton 3");
    enum outcome unasked = reply->kind == ENV_REPLY_NIL ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
    return (struct lock_grant){.outcome = reply->kind == ENV_REPLY_ARRAY ? OUTCOME_OK : unasked};
}

static enum outcome release(struct lock *lock) {
    const struct env_reply *reply = env_command(lock->env, 0, "RPUSH baton 1");
    if (reply->kind != ENV_REPLY_INTEGER) reply = env_command(lock->env, 0, "RPUSH baton 1");
    return reply->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "baton",
    .summary = "the element of a list",
    .capacity = 1,
    .waits = LOCK_WAITS_BLOCKING_POP,
    .open = open,
    .acquire = acquire,
    .release = release,
};
