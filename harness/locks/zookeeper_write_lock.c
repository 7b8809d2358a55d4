/* The writer of ZooKeeper's recipe for shared locks. */
#include "harness/locks/zookeeper_queue.h"

extern const struct lock_type LOCK_ZOOKEEPER_WRITE_LOCK;

static enum outcome open(struct lock *lock) {
    ((struct zookeeper_queue *)lock->state)->kind = "write";
    return zookeeper_queue_open(lock);
}

const struct lock_type LOCK_ZOOKEEPER_WRITE_LOCK = {
    .name = "zookeeper-write-lock",
    .summary = "the writer of ZooKeeper's recipe for shared locks: it waits for readers and writers before it",
    .explanation =
        "As zookeeper, in the queue of the shared lock: nodes are called read- or write-, a writer waits for the next one\n"
        "before it, whatever that is, and a reader for the next writer before it.\n"
        "Promises: a writer is alone, and nobody is overtaken. (There is no reader here: it is no lock for one holder.)\n"
        "Costs: as zookeeper. A reader that leaves wakes only who watches it.\n"
        "Breaks: as zookeeper.",
    .source = "ZooKeeper 3.8 documentation, Recipes, Shared Locks; Apache Curator's InterProcessReadWriteLock",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .service = LOCK_SERVICE_ZOOKEEPER,
    .state_size = sizeof(struct zookeeper_queue),
    .open = open,
    .acquire = zookeeper_queue_acquire,
    .renew = zookeeper_queue_is_held,
    .release = zookeeper_queue_release,
    .is_held = zookeeper_queue_is_held,
    .close = zookeeper_queue_close,
};
