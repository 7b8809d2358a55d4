/* The lock that etcd-queue and etcd-queue-unchecked are: the recipe of clientv3's concurrency.Mutex. */
#pragma once

#include "harness/locks/common/watchdog.h"
#include "harness/locks/etcd/etcd_place.h"

struct etcd_queue {
    struct etcd_place place;
    struct watchdog watchdog;
    int watchdog_node; /* which node it asks first */
};

struct etcd_queue_rule {
    bool is_unchecked; /* does not check that its own place still exists when its turn comes */
};

enum outcome etcd_queue_open(struct lock *lock);
struct lock_grant etcd_queue_acquire(struct lock *lock, int64_t wait_ms);
enum outcome etcd_queue_renew(struct lock *lock);
enum outcome etcd_queue_release(struct lock *lock);
enum outcome etcd_queue_is_held(struct lock *lock);
void etcd_queue_close(struct lock *lock);

/* A lock writes these fields and its `variant`, a struct etcd_queue_rule. */
#define ETCD_QUEUE_FIELDS                                                                                              \
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS, .capacity = 1,                \
    .waits = LOCK_WAITS_PUSH, .service = LOCK_SERVICE_ETCD, .state_size = sizeof(struct etcd_queue),                   \
    .open = etcd_queue_open, .acquire = etcd_queue_acquire, .renew = etcd_queue_renew, .release = etcd_queue_release,  \
    .is_held = etcd_queue_is_held, .close = etcd_queue_close
