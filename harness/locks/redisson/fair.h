/* Redisson's fair lock, and where its variants differ. */
#pragma once

#include "harness/locks/redisson/redisson.h"

struct fair {
    struct redisson base; /* first: the shared functions use it as the lock's state */
    struct key own;       /* the channel on which its turn is announced */
    struct script leave;
};

/* A lock's `variant`. */
struct fair_rule {
    struct redisson_rule base; /* FAIR_BASE, with an attempt of its own: fair_attempt, or a wrapper of it */
    bool stays;                /* in the queue when its wait is over (a published bug) */
};

extern const char FAIR_ACQUIRE[], FAIR_RELEASE[]; /* scripts */
redisson_unlock fair_unlock;
#define FAIR_BASE .acquire = FAIR_ACQUIRE, .release = FAIR_RELEASE, .unlock = fair_unlock, .publishes_nothing = true

enum outcome fair_open(struct lock *lock);
/* One attempt; `what` is a bool, whether to queue up. */
struct push_try fair_attempt(struct lock *lock, void *what);
struct lock_grant fair_acquire(struct lock *lock, int64_t wait_ms);
void fair_close(struct lock *lock);

/* A variant writes these fields, its `variant`, and those in which it differs. */
#define FAIR_FIELDS                                                                                                    \
    REDISSON_FIELDS, .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,          \
                     .state_size = sizeof(struct fair), .open = fair_open, .acquire = fair_acquire,                    \
                     .close = fair_close
