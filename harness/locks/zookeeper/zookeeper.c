/* ZooKeeper's recipe for locks: a queue of ephemeral nodes with numbers. */
#include "harness/locks/zookeeper/zookeeper_queue.h"

static enum outcome zookeeper_open(struct lock *lock) {
    return zookeeper_queue_open(lock, "lock");
}

const struct lock_type LOCK_ZOOKEEPER = {
    .name = "zookeeper",
    .summary = "ZooKeeper's recipe: an ephemeral node with a number, the lowest holds; the token is its czxid",
    .explanation =
        "A session with heartbeats; in a directory that stands for the resource, each client creates an ephemeral\n"
        "node whose number the server chooses. The lowest number holds the lock; every other client watches only\n"
        "the node before its own, so a release wakes one. The node's name begins with a guid: after a lost answer\n"
        "the client can find out whether the create was carried out.\n"
        "Promises: one holder while no client outlasts its session; first come, first served; the nodes of a dead\n"
        "client go with its session. The czxid of a node is a fencing token that rises over restarts, changes of\n"
        "leader and a directory that was made anew; the number in its name is not one: it begins again with the\n"
        "directory.\n"
        "Costs: 3 requests to acquire and release a free lock (create, list; delete to release), 2 more for a\n"
        "client that waits; a session's heartbeats; a majority of servers for each write.\n"
        "Breaks: a holder that is paused past its session acts beside the next holder, as with any lease. A holder\n"
        "that is only cut off learns of it (SUSPENDED) before the session ends, if it listens.",
    .source = "ZooKeeper 3.8 documentation, Recipes, Locks, and the recoverable errors and the GUID; Apache Curator's "
              "InterProcessMutex with protection",
    .open = zookeeper_open,
    ZOOKEEPER_QUEUE_FIELDS,
};
