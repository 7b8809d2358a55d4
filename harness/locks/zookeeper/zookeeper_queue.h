/* What the locks on ZooKeeper share: a queue of ephemeral nodes in a directory that stands for the resource. A node's
 * name is GUID, kind, number ("<guid>lock-0000000007"); the server gives the number. The client with the lowest number
 * holds the lock, and every other client watches only the node before its own. */
#pragma once

#include <stdatomic.h>

#include "harness/locks/zookeeper/zookeeper_node.h"

struct zookeeper_queue {
    struct zookeeper_node node; /* first: the functions of zookeeper_node.h use it as the lock's state */
    _Atomic bool holding;       /* read by the watchdog, too */
};

/* The functions of such a lock; its state begins with a struct zookeeper_queue. `kind` is part of the
 * names of its nodes: "lock", "write". */
enum outcome zookeeper_queue_open(struct lock *lock, const char *kind);
struct lock_grant zookeeper_queue_acquire(struct lock *lock, int64_t wait_ms);
enum outcome zookeeper_queue_release(struct lock *lock);
enum outcome zookeeper_queue_is_held(struct lock *lock);
void zookeeper_queue_close(struct lock *lock);

/* The fields that every lock on this queue shares, in its struct lock_type; its name, texts and `open` are its own. */
#define ZOOKEEPER_QUEUE_FIELDS                                                                                         \
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS, .capacity = 1,                \
    .waits = LOCK_WAITS_PUSH, .service = LOCK_SERVICE_ZOOKEEPER, .state_size = sizeof(struct zookeeper_queue),         \
    .acquire = zookeeper_queue_acquire, .renew = zookeeper_queue_is_held, .release = zookeeper_queue_release,          \
    .is_held = zookeeper_queue_is_held, .close = zookeeper_queue_close
