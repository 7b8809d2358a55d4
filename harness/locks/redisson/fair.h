/* Redisson's fair lock, and where its variants differ. */
#ifndef LOCKSTORM_LOCKS_FAIR_H
#define LOCKSTORM_LOCKS_FAIR_H

#include "harness/locks/redisson/redisson.h"

struct fair {
    struct redisson base; /* first: the shared functions use it as the lock's state */
    struct key own;       /* the channel on which its turn is announced */
    struct script leave;
};

struct fair_rule {
    struct push_try (*attempt)(struct lock *lock, void *what); /* fair_attempt, or a wrapper of it */
    bool leaves;                                               /* removes itself from the queue when its wait is over */
};

extern const struct fair_rule FAIR_RULE; /* current Redisson's */

enum outcome fair_open(struct lock *lock);
/* One attempt; `what` is a bool, whether to queue up. */
struct push_try fair_attempt(struct lock *lock, void *what);
struct lock_grant fair_acquire_by(struct lock *lock, int64_t wait_ms, const struct fair_rule *rule);
enum outcome fair_release(struct lock *lock);
void fair_close(struct lock *lock);

#endif
