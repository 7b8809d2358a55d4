/* A place in a queue on etcd: a key under the queue's prefix, tied to its client's lease. Places are in the order of
 * their create revisions. */
#pragma once

#include "harness/locks/etcd/etcd_session.h"

struct etcd_place {
    struct etcd_session session;
    char *prefix;     /* of all places in the queue */
    int64_t revision; /* at which ours was made */
};

void etcd_place_open(struct lock *lock, struct etcd_place *self);
void etcd_place_close(struct etcd_place *self);

/* Makes the client's place, for a lease that was granted, unless it exists. *is_first: no place is before it. */
enum outcome etcd_place_take(struct lock *lock, struct etcd_place *self, bool *is_first);
/* Whether it still exists: OK, REFUSED when its lease has ended, UNKNOWN. */
enum outcome etcd_place_look(struct lock *lock, struct etcd_place *self);
/* Whether it is the first: OK, REFUSED, UNKNOWN. */
enum outcome etcd_place_is_first(struct lock *lock, struct etcd_place *self);
/* Returns OK when no place is before it (without checking that it still exists), REFUSED at until_ns, or UNKNOWN.
 * Checkpoints: "in-queue" before each wait, "one-before-gone" after one that a deletion has ended. */
enum outcome etcd_place_await(struct lock *lock, struct etcd_place *self, int64_t until_ns);
