/* set-nx-px that is granted only when a replica has acknowledged it. */
#include "harness/locks/redis/set_nx_px.h"

enum { REPLICAS = 1, WAIT_MOST_MS = 1000 };

/* At most a quarter of the lease: the rest is for the work. */
static int64_t wait_limit_ms(const struct lock *lock) {
    int64_t share_ms = lock->options.lease_ms / 4 > 0 ? lock->options.lease_ms / 4 : 1;
    return share_ms < WAIT_MOST_MS ? share_ms : WAIT_MOST_MS;
}

static bool acknowledged(struct lock *lock) {
    int64_t limit_ms = wait_limit_ms(lock);
    const struct env_reply *reply =
        env_command_blocking(lock->env, 0, limit_ms, "WAIT %d %lld", REPLICAS, (long long)limit_ms);
    return reply->kind == ENV_REPLY_INTEGER && reply->integer >= REPLICAS;
}

/* Without an acknowledgement the lock is released again: REFUSED when that is known to have worked, else UNKNOWN. */
static struct lock_grant replica_wait_attempt(struct lock *lock) {
    set_nx_px_new_owner(lock);
    enum outcome outcome = set_nx_px_set_on(lock, lock->env, 0, env_reply_limit_ms(lock->env));
    if (outcome == OUTCOME_OK) {
        env_checkpoint(lock->env, "between-set-and-wait");
        if (!acknowledged(lock))
            outcome = set_nx_px_release(lock) == OUTCOME_UNKNOWN ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
    }
    env_checkpoint(lock->env, "after-acquire-reply");
    return (struct lock_grant){.outcome = outcome};
}

const struct lock_type LOCK_REPLICA_WAIT = {
    .name = "replica-wait",
    .summary = "set-nx-px that is granted only when WAIT says that a replica has it",
    .explanation =
        "As set-nx-px; after the SET, WAIT on the same connection waits until one replica has acknowledged it, for\n"
        "at most a quarter of the lease and at most 1 s. If none does, the key is deleted again and the lock\n"
        "refused.\n"
        "Promises: as set-nx-px; a failover to a replica that has acknowledged keeps the lock.\n"
        "Costs: 2 commands and one acknowledgement to acquire, 1 script to release; without a replica there is no\n"
        "lock.\n"
        "Breaks: as set-nx-px. WAIT is no consensus: of two replicas the one that did not acknowledge may be\n"
        "promoted, and releases and renewals are not waited for.",
    .source = "Redis documentation of WAIT; Redisson's check of synced slaves after each lock script",
    SET_NX_PX_FIELDS,
    .replicas = REPLICAS,
    .attempt = replica_wait_attempt,
    .is_held = NULL,
};
