/* ZooKeeper's recipe for locks: a queue of ephemeral nodes with numbers. */
#include "harness/locks/zookeeper_queue.h"

extern const struct lock_type LOCK_ZOOKEEPER;

static enum outcome open(struct lock *lock) {
    ((struct zookeeper_queue *)lock->state)->kind = "lock";
    return zookeeper_queue_open(lock);
}

const struct lock_type LOCK_ZOOKEEPER = {
    .name = "zookeeper",
    .summary = "ZooKeeper's recipe: an ephemeral node with a number, the lowest holds; the token is its czxid",
    .explanation =
        "A session with heartbeats; below a node for what is locked, each client creates an ephemeral node whose number the\n"
        "server chooses. The lowest holds; everybody else watches only the next one before, so a release wakes one. The\n"
        "node's name begins with a guid: whether a create was carried out whose answer was lost can be asked afterwards.\n"
        "Promises: one holder while nobody outlasts its session; first come, first served; what a dead client had goes with\n"
        "its session. The czxid of a node is a fencing token that rises over restarts, other leaders and a directory that\n"
        "was made anew; the number in its name is not: that begins again with the directory.\n"
        "Costs: 3 requests to acquire a free lock (create, list; delete to release), 2 more for whoever waits; a session's\n"
        "heartbeats; a majority of servers for each write.\n"
        "Breaks: whoever is paused past its session acts beside the next holder, as with any lease. Whoever is only cut off\n"
        "is told (SUSPENDED) before the session ends, if it listens.",
    .source = "ZooKeeper 3.8 documentation, Recipes, Locks, and the recoverable errors and the GUID; Apache Curator's "
              "InterProcessMutex with protection",
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
