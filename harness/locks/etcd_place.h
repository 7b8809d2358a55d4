/* A place in a queue on etcd: a key under the queue's prefix, tied to the lease of who stands there. Places are in the
 * order of their create revisions. */
#ifndef LOCKSTORM_LOCKS_ETCD_PLACE_H
#define LOCKSTORM_LOCKS_ETCD_PLACE_H

#include "harness/locks/etcd_session.h"

struct etcd_place {
    struct etcd_session session;
    char *prefix;     /* of all places in the queue */
    int64_t revision; /* at which ours was made */
};

void etcd_place_open(struct lock *lock, struct etcd_place *self);
void etcd_place_close(struct etcd_place *self);

/* Makes our place, for a lease that was granted, unless it is there already. *is_first: nobody is before us. */
enum outcome etcd_place_take(struct lock *lock, struct etcd_place *self, bool *is_first);
/* Whether it is still there: OK, REFUSED when its lease has ended, UNKNOWN. */
enum outcome etcd_place_look(struct lock *lock, struct etcd_place *self);
/* Whether it is the first of all: OK, REFUSED, UNKNOWN. */
enum outcome etcd_place_is_first(struct lock *lock, struct etcd_place *self);
/* Returns when nobody is before it, OK - whether it is still there is not asked; or at until_ns, REFUSED; or UNKNOWN.
 * Checkpoints: "in-queue" before each wait, "one-before-gone" after one that a deletion has ended. */
enum outcome etcd_place_await(struct lock *lock, struct etcd_place *self, int64_t until_ns);

#endif
