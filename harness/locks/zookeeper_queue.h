/* What the locks on ZooKeeper share: a queue of ephemeral nodes below one that stands for what is locked. Each is
 * called GUID, kind, number - "<guid>lock-0000000007" -, the number by the server; who has the lowest holds the lock,
 * and everybody else watches only the next one before. */
#ifndef LOCKSTORM_LOCKS_ZOOKEEPER_QUEUE_H
#define LOCKSTORM_LOCKS_ZOOKEEPER_QUEUE_H

#include <stdatomic.h>

#include "harness/locks/lock.h"

enum { ZOOKEEPER_GUID_DIGITS = 32 };

struct zookeeper_queue {
    const char *kind; /* of its own nodes: "lock", "write" */
    char *directory;
    char *node; /* its own, as far as it knows; NULL: none */
    char guid[ZOOKEEPER_GUID_DIGITS + 1];
    bool asked; /* a node with that guid may be there */
    int64_t token;
    _Atomic bool holding; /* the watchdog looks, too */
};

/* The functions of such a lock; its state begins with a struct zookeeper_queue whose kind is set. */
enum outcome zookeeper_queue_open(struct lock *lock);
struct lock_grant zookeeper_queue_acquire(struct lock *lock, int64_t wait_ms);
enum outcome zookeeper_queue_release(struct lock *lock);
enum outcome zookeeper_queue_is_held(struct lock *lock);
void zookeeper_queue_close(struct lock *lock);

#endif
