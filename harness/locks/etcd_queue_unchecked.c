/* etcd-queue as it was: whoever sees that nobody is before it any more holds the lock, without a look at its own place.
 */
#include "harness/locks/etcd_queue.h"

extern const struct lock_type LOCK_ETCD_QUEUE_UNCHECKED;

static enum outcome open(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    self->is_unchecked = true;
    return etcd_queue_open(lock);
}

const struct lock_type LOCK_ETCD_QUEUE_UNCHECKED = {
    .name = "etcd-queue-unchecked",
    .summary = "etcd-queue as it was: whose turn it seems to be does not look whether its own place is still there",
    .explanation =
        "As etcd-queue, but a waiter takes the end of the one before it for its own turn. If its lease has ended while it\n"
        "waited - it was paused, or cut off - its place is gone, and those behind it have moved up.\n"
        "Promises: as etcd-queue as long as no lease ends while its client waits.\n"
        "Costs: one request less than etcd-queue when it has waited.\n"
        "Breaks: a waiter that outlasts its lease is granted the lock beside whoever holds it, with the token of the place\n"
        "that it had: lower than the holder's, so a resource that looks at tokens refuses it.",
    .source = "etcd-io/etcd#11456: clientv3/concurrency, Mutex.Lock, before the fix; Jepsen: etcd 3.4.3, Locks",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .service = LOCK_SERVICE_ETCD,
    .state_size = sizeof(struct etcd_queue),
    .open = open,
    .acquire = etcd_queue_acquire,
    .renew = etcd_queue_renew,
    .release = etcd_queue_release,
    .is_held = etcd_queue_is_held,
    .close = etcd_queue_close,
};
