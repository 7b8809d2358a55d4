/* The lock that etcd-queue and etcd-queue-unchecked are: the recipe of clientv3's concurrency.Mutex. */
#ifndef LOCKSTORM_LOCKS_ETCD_QUEUE_H
#define LOCKSTORM_LOCKS_ETCD_QUEUE_H

#include "harness/locks/common/watchdog.h"
#include "harness/locks/etcd/etcd_place.h"

struct etcd_queue {
    struct etcd_place place;
    struct watchdog watchdog;
    int watchdog_node; /* which node it asks first */
    bool is_unchecked; /* does not check that its own place still exists when its turn comes */
};

enum outcome etcd_queue_open(struct lock *lock);
struct lock_grant etcd_queue_acquire(struct lock *lock, int64_t wait_ms);
enum outcome etcd_queue_renew(struct lock *lock);
enum outcome etcd_queue_release(struct lock *lock);
enum outcome etcd_queue_is_held(struct lock *lock);
void etcd_queue_close(struct lock *lock);

#endif
