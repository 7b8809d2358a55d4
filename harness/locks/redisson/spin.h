/* Waiting as Redisson's spin lock does; lock->state begins with a struct redisson. */
#pragma once

#include "harness/locks/redisson/redisson.h"

struct lock_grant spin_acquire(struct lock *lock, int64_t wait_ms);

extern const struct redisson_rule SPIN_RULE;

/* A lock writes these fields, and then those in which it differs. */
#define SPIN_FIELDS                                                                                                    \
    REDISSON_FIELDS, .waits = LOCK_WAITS_POLLING, .poll_ms = 192, .acquire = spin_acquire, .variant = &SPIN_RULE
