/* Waiting as Redisson's spin lock does; lock->state begins with a struct redisson. */
#ifndef LOCKSTORM_LOCKS_SPIN_H
#define LOCKSTORM_LOCKS_SPIN_H

#include "harness/locks/redisson/redisson.h"

struct lock_grant spin_acquire(struct lock *lock, int64_t wait_ms);

#endif
