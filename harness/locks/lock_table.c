#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/lock.h"

/* One a line, so that two changes that each add one do not conflict. */
/* clang-format off */
#define LOCKS(EACH) \
    EACH(BLPOP) \
    EACH(BLPOP_DEFAULT) \
    EACH(BLPOP_RENEW) \
    EACH(ETCD) \
    EACH(ETCD_QUEUE) \
    EACH(ETCD_QUEUE_UNCHECKED) \
    EACH(FAIR) \
    EACH(FENCED) \
    EACH(MULTI) \
    EACH(NONE) \
    EACH(PERMIT_SEMAPHORE) \
    EACH(PG_ADVISORY) \
    EACH(PG_ADVISORY_XACT) \
    EACH(PG_FOR_UPDATE) \
    EACH(PG_LEASE) \
    EACH(PG_SKIP_LOCKED) \
    EACH(PUBSUB) \
    EACH(PUBSUB_NAIVE) \
    EACH(REDLOCK) \
    EACH(REDLOCK_NAIVE) \
    EACH(REDLOCK_RENEW) \
    EACH(REDLOCK_WALL) \
    EACH(REPLICA_WAIT) \
    EACH(SEMAPHORE) \
    EACH(SET_NX_BLIND_DEL) \
    EACH(SET_NX_GET_DEL) \
    EACH(SET_NX_PX) \
    EACH(SET_NX_PX_FENCED) \
    EACH(SET_NX_PX_RENEW) \
    EACH(SETNX) \
    EACH(SETNX_EXPIRE) \
    EACH(SHARDED_SPIN) \
    EACH(SINGLEFLIGHT) \
    EACH(SPIN) \
    EACH(ZOOKEEPER) \
    EACH(ZOOKEEPER_WRITE_LOCK)
/* clang-format on */

#define DECLARED(NAME) extern const struct lock_type LOCK_##NAME;
LOCKS(DECLARED)

#define LISTED(NAME) &LOCK_##NAME,
const struct lock_type *const LOCK_TABLE[] = {LOCKS(LISTED) NULL};

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
