/* etcd-queue as it was: a client holds the lock when no place is before its own, without a check that its own place
 * still exists. */
#include "harness/locks/etcd/etcd_queue.h"

const struct lock_type LOCK_ETCD_QUEUE_UNCHECKED = {
    .name = "etcd-queue-unchecked",
    .summary = "etcd-queue as it was: a client whose turn comes does not check that its own place still exists",
    .explanation =
        "As etcd-queue, but a waiter takes the end of the one before it for its own turn. If its lease has ended\n"
        "while it waited, because it was paused or cut off, its place is gone, and those behind it have moved up.\n"
        "Promises: as etcd-queue as long as no lease ends while its client waits.\n"
        "Costs: one request less than etcd-queue when it has waited.\n"
        "Breaks: a waiter that outlasts its lease is granted the lock beside its holder, with the token of the\n"
        "place that it had: lower than the holder's, so a resource that checks tokens refuses it.",
    .source = "etcd-io/etcd#11456: clientv3/concurrency, Mutex.Lock, before the fix; Jepsen: etcd 3.4.3, Locks",
    ETCD_QUEUE_FIELDS,
    .variant = &(const struct etcd_queue_rule){.is_unchecked = true},
};
