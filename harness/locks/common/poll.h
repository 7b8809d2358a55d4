/* Waiting by polling: try, sleep, try again, with exponential backoff and jitter. */
#pragma once

#include "harness/locks/common/lock.h"

struct poll_pace {
    int64_t first_ms; /* the first sleep; doubles up to most_ms */
    int64_t most_ms;
    int64_t spread_ms; /* at most this is added to each sleep at random; 0: half of the sleep */
    int tries;         /* at most, when the caller does not limit the wait; 0: no limit */
};

/* Calls attempt until it grants, its outcome is unknown, or the wait is over: REFUSED. Each sleep is b + U(0, b/2)
 * or b + U(0, spread), cut at the wait's end, after which one last attempt is made. */
struct lock_grant poll_until_granted(struct lock *lock, int64_t wait_ms, const struct poll_pace *pace,
                                     struct lock_grant (*attempt)(struct lock *lock));

/* The acquire of a lock that polls: its type's attempts, at its type's pace. */
struct lock_grant poll_acquire(struct lock *lock, int64_t wait_ms);
