/* A plug-in for tests: SET NX PX on a majority of five nodes, and its mistake:
 *   FORGETS_SILENT  a failed attempt is taken back only on the nodes that have said yes */
#include "lockstorm.h"

enum { NODES = 5, NODE_LIMIT_MS = 50 };

struct majority_lock {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    bool granted[NODES];
};

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 50, .spread_ms = 200};

static enum outcome load(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    (void)env, (void)limit_ms;
    return set_nx_px_load_on(lock, node);
}

static enum outcome open(struct lock *lock) {
    struct tally tally = majority_ask(lock, lock->env, 0, load);
    return majority_outcome(&tally);
}

static enum outcome take(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
    struct majority_lock *self = lock->state;
    enum outcome outcome = set_nx_px_set_on(lock, env, node, limit_ms);
    self->granted[node] = outcome == OUTCOME_OK;
    return outcome;
}

static enum outcome give_back(struct lock *lock, struct env *env, int node, int64_t limit_ms) {
#ifdef FORGETS_SILENT
    if (!((struct majority_lock *)lock->state)->granted[node]) return OUTCOME_REFUSED;
#endif
    return set_nx_px_release_on(lock, env, node, limit_ms);
}

static struct lock_grant attempt(struct lock *lock) {
    set_nx_px_new_owner(lock);
    int64_t lease_ns = (lock->options.lease_ms - lock->options.lease_ms / 100 - 2) * ENV_NS_PER_MS;
    int64_t valid_until_ns = env_mono_ns(lock->env) + lease_ns;
    struct tally tally = majority_ask_for(ENV_ASKED_GRANT, lock, lock->env, NODE_LIMIT_MS, take);
    if (majority_outcome(&tally) == OUTCOME_OK && env_mono_ns(lock->env) < valid_until_ns)
        return (struct lock_grant){.outcome = OUTCOME_OK, .valid_until_ns = valid_until_ns};
    majority_ask(lock, lock->env, NODE_LIMIT_MS, give_back);
    return (struct lock_grant){.outcome = OUTCOME_REFUSED};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &PACE, attempt);
}

static enum outcome release(struct lock *lock) {
    struct tally tally = majority_ask(lock, lock->env, NODE_LIMIT_MS, set_nx_px_release_on);
    return majority_outcome(&tally);
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-majority",
    .summary = "SET NX PX on a majority of five nodes",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .nodes = NODES,
    .poll_ms = 250,
    .state_size = sizeof(struct majority_lock),
    .open = open,
    .acquire = acquire,
    .release = release,
};
