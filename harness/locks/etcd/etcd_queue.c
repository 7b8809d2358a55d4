/* A queue of keys, each tied to its client's lease, in the order of their revisions: the first one holds the lock. */
#include "harness/locks/etcd/etcd_queue.h"

enum { LEASE_PARTS = 3, TRIES = 100 };

static enum outcome watchdog_renew(struct lock *lock, struct env *env) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->place.session, env, &self->watchdog_node);
}

enum outcome etcd_queue_open(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    etcd_place_open(lock, &self->place);
    self->watchdog.renew = watchdog_renew;
    self->watchdog.period_ms = lock->options.lease_ms / LEASE_PARTS > 0 ? lock->options.lease_ms / LEASE_PARTS : 1;
    return OUTCOME_OK;
}

void etcd_queue_close(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    etcd_place_close(&self->place);
}

/* One place, from queueing to its turn. REFUSED: the wait is over, or the place was lost. */
static enum outcome queue_once(struct lock *lock, int64_t until_ns) {
    struct etcd_queue *self = lock->state;
    const struct etcd_queue_rule *rule = lock->type->variant;
    bool is_first;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its lease is replaced now */
    enum outcome outcome = etcd_lease_grant(lock, &self->place.session);
    if (outcome != OUTCOME_OK) return outcome;
    watchdog_start(&self->watchdog, lock);
    env_checkpoint(lock->env, "before-transaction");
    outcome = etcd_place_take(lock, &self->place, &is_first);
    if (outcome != OUTCOME_OK || is_first) return outcome;
    outcome = etcd_place_await(lock, &self->place, until_ns);
    if (outcome != OUTCOME_OK || rule->is_unchecked) return outcome;
    /* The one before has gone, but so may this client's own place have, when it outlasted its lease while it waited. */
    return etcd_place_look(lock, &self->place);
}

/* A client that has lost its place queues again, behind all others. */
struct lock_grant etcd_queue_acquire(struct lock *lock, int64_t wait_ms) {
    struct etcd_queue *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (int try = 1;; try++) {
        enum outcome outcome = queue_once(lock, until_ns);
        env_checkpoint(lock->env, "after-acquire-reply");
        if (outcome == OUTCOME_OK) return (struct lock_grant){.outcome = outcome, .token = self->place.revision};
        watchdog_stop(&self->watchdog);
        if (outcome == OUTCOME_REFUSED) etcd_lease_revoke(lock, &self->place.session);
        else self->place.session.is_pending = true;
        if (outcome != OUTCOME_REFUSED || try == TRIES || env_mono_ns(lock->env) >= until_ns)
            return (struct lock_grant){.outcome = outcome};
    }
}

enum outcome etcd_queue_renew(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->place.session, lock->env, &self->place.session.node);
}

enum outcome etcd_queue_release(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    env_checkpoint(lock->env, "before-release");
    return etcd_lease_revoke(lock, &self->place.session);
}

enum outcome etcd_queue_is_held(struct lock *lock) {
    return etcd_place_is_first(lock, &((struct etcd_queue *)lock->state)->place);
}

const struct lock_type LOCK_ETCD_QUEUE = {
    .name = "etcd-queue",
    .summary = "a queue of keys on etcd by their revisions; the next one watches the one before, and checks again",
    .explanation =
        "Every client has a lease, which a watchdog in its process keeps alive from the moment it queues, and a key\n"
        "under the lock's prefix that is tied to it. The client with the lowest create revision holds the lock, and\n"
        "that revision is the fencing token. Every other client watches the key right before its own until it is\n"
        "deleted, beginning with the revision at which it saw that key: unlike a message, a watch misses nothing.\n"
        "When its turn comes a client checks that its own place still exists (etcd-queue-unchecked does not); if\n"
        "not, it queues again.\n"
        "Promises: one holder while no client outlasts its lease; grants in the order of arrival; a release wakes\n"
        "one waiter; tokens that rise over crashes, restarts and changes of leader.\n"
        "Costs: 2 requests to acquire, 2 more and a watch to wait, 1 to release, a keepalive every third of the\n"
        "lease; the place of a dead waiter blocks the queue until its lease has ended.\n"
        "Breaks: a holder that is paused past the lease acts beside the next holder; a resource that checks the\n"
        "token refuses it. Without a majority of nodes no client gets the lock, and none keeps it.",
    .source = "etcd clientv3, concurrency.Mutex and Session, as since etcd-io/etcd#11456; Jepsen: etcd 3.4.3, Locks",
    ETCD_QUEUE_FIELDS,
    .variant = &(const struct etcd_queue_rule){.is_unchecked = false},
};
