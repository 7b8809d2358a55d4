#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/lock.h"

/* One a line, so that two changes that each add one do not conflict. */
/* clang-format off */
extern const struct lock_type LOCK_BLPOP;
extern const struct lock_type LOCK_BLPOP_DEFAULT;
extern const struct lock_type LOCK_BLPOP_RENEW;
extern const struct lock_type LOCK_ETCD;
extern const struct lock_type LOCK_ETCD_QUEUE;
extern const struct lock_type LOCK_ETCD_QUEUE_UNCHECKED;
extern const struct lock_type LOCK_FAIR;
extern const struct lock_type LOCK_FENCED;
extern const struct lock_type LOCK_MULTI;
extern const struct lock_type LOCK_NONE;
extern const struct lock_type LOCK_PERMIT_SEMAPHORE;
extern const struct lock_type LOCK_PG_ADVISORY;
extern const struct lock_type LOCK_PG_ADVISORY_XACT;
extern const struct lock_type LOCK_PG_FOR_UPDATE;
extern const struct lock_type LOCK_PG_LEASE;
extern const struct lock_type LOCK_PG_SKIP_LOCKED;
extern const struct lock_type LOCK_PUBSUB;
extern const struct lock_type LOCK_PUBSUB_NAIVE;
extern const struct lock_type LOCK_REDLOCK;
extern const struct lock_type LOCK_REDLOCK_NAIVE;
extern const struct lock_type LOCK_REDLOCK_RENEW;
extern const struct lock_type LOCK_REDLOCK_WALL;
extern const struct lock_type LOCK_REPLICA_WAIT;
extern const struct lock_type LOCK_SEMAPHORE;
extern const struct lock_type LOCK_SET_NX_BLIND_DEL;
extern const struct lock_type LOCK_SET_NX_GET_DEL;
extern const struct lock_type LOCK_SET_NX_PX;
extern const struct lock_type LOCK_SET_NX_PX_FENCED;
extern const struct lock_type LOCK_SET_NX_PX_RENEW;
extern const struct lock_type LOCK_SETNX;
extern const struct lock_type LOCK_SETNX_EXPIRE;
extern const struct lock_type LOCK_SHARDED_SPIN;
extern const struct lock_type LOCK_SINGLEFLIGHT;
extern const struct lock_type LOCK_SPIN;
extern const struct lock_type LOCK_ZOOKEEPER;
extern const struct lock_type LOCK_ZOOKEEPER_WRITE_LOCK;

const struct lock_type *const LOCK_TABLE[] = {
    &LOCK_BLPOP,
    &LOCK_BLPOP_DEFAULT,
    &LOCK_BLPOP_RENEW,
    &LOCK_ETCD,
    &LOCK_ETCD_QUEUE,
    &LOCK_ETCD_QUEUE_UNCHECKED,
    &LOCK_FAIR,
    &LOCK_FENCED,
    &LOCK_MULTI,
    &LOCK_NONE,
    &LOCK_PERMIT_SEMAPHORE,
    &LOCK_PG_ADVISORY,
    &LOCK_PG_ADVISORY_XACT,
    &LOCK_PG_FOR_UPDATE,
    &LOCK_PG_LEASE,
    &LOCK_PG_SKIP_LOCKED,
    &LOCK_PUBSUB,
    &LOCK_PUBSUB_NAIVE,
    &LOCK_REDLOCK,
    &LOCK_REDLOCK_NAIVE,
    &LOCK_REDLOCK_RENEW,
    &LOCK_REDLOCK_WALL,
    &LOCK_REPLICA_WAIT,
    &LOCK_SEMAPHORE,
    &LOCK_SET_NX_BLIND_DEL,
    &LOCK_SET_NX_GET_DEL,
    &LOCK_SET_NX_PX,
    &LOCK_SET_NX_PX_FENCED,
    &LOCK_SET_NX_PX_RENEW,
    &LOCK_SETNX,
    &LOCK_SETNX_EXPIRE,
    &LOCK_SHARDED_SPIN,
    &LOCK_SINGLEFLIGHT,
    &LOCK_SPIN,
    &LOCK_ZOOKEEPER,
    &LOCK_ZOOKEEPER_WRITE_LOCK,
    NULL,
};
/* clang-format on */

static const struct lock_type *find_in(const struct lock_type *const *table, const char *name) {
    for (; *table; table++)
        if (strcmp((*table)->name, name) == 0) return *table;
    return NULL;
}

const struct lock_type *lock_find(const char *name) {
    const struct lock_type *found = find_in(LOCK_TABLE, name);
    return found ? found : find_in(LOCK_ZOO, name);
}

enum outcome lock_open(struct lock *lock, const struct lock_type *type, struct env *env,
                       const struct lock_options *options) {
    *lock = (struct lock){
        .type = type, .env = env, .options = *options, .traits = type->traits, .capacity = type->capacity};
    if (type->state_size) lock->state = calloc(1, type->state_size);
    if (type->state_size && !lock->state) abort();
    return type->open ? type->open(lock) : OUTCOME_OK;
}

struct lock_grant lock_acquire(struct lock *lock, int64_t wait_ms) {
    return lock->type->acquire(lock, wait_ms);
}

enum outcome lock_renew(struct lock *lock) {
    if (lock->type->renew) return lock->type->renew(lock);
    unsigned lease = lock->traits & (LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS);
    return lease == LOCK_TRAIT_LEASE ? OUTCOME_REFUSED : OUTCOME_OK;
}

enum outcome lock_release(struct lock *lock) {
    return lock->type->release ? lock->type->release(lock) : OUTCOME_OK;
}

enum outcome lock_is_held(struct lock *lock) {
    return lock->type->is_held ? lock->type->is_held(lock) : OUTCOME_UNKNOWN;
}

void lock_close(struct lock *lock) {
    if (lock->type->close) lock->type->close(lock);
    free(lock->state);
    lock->state = NULL;
}
