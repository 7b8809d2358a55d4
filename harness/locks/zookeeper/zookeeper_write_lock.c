/* The writer of ZooKeeper's recipe for shared locks. */
#include "harness/locks/zookeeper/zookeeper_queue.h"

static enum outcome zookeeper_write_lock_open(struct lock *lock) {
    return zookeeper_queue_open(lock, "write");
}

const struct lock_type LOCK_ZOOKEEPER_WRITE_LOCK = {
    .name = "zookeeper-write-lock",
    .summary = "the writer of ZooKeeper's recipe for shared locks: it waits for readers and writers before it",
    .explanation =
        "As zookeeper, in the queue of the shared lock: nodes are called read- or write-, a writer waits for the\n"
        "node before its own, of either kind, and a reader for the next writer before it.\n"
        "Promises: a writer is alone, and no client is overtaken. There is no lock for readers here: the checkers\n"
        "judge one holder, or a number of permits, and any number of readers may hold it. Their nodes are part of\n"
        "this lock's tests.\n"
        "Costs: as zookeeper. A reader that leaves wakes only the client that watches it.\n"
        "Breaks: as zookeeper.",
    .source = "ZooKeeper 3.8 documentation, Recipes, Shared Locks; Apache Curator's InterProcessReadWriteLock",
    .open = zookeeper_write_lock_open,
    ZOOKEEPER_QUEUE_FIELDS,
};
