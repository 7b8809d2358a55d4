/* Waiting for a message: try, subscribe, try again, wait until something is published, and so on. The try after the
 * subscription prevents lost wake-ups. */
#pragma once

#include "harness/locks/common/key.h"
#include "harness/locks/common/lock.h"

struct push_try {
    struct lock_grant grant;
    int64_t again_ms; /* when refused: try again after this time even without a message; -1: only after a message */
};

struct push_waiter {
    struct push_try (*attempt)(struct lock *lock, void *what);
    void *what;
    const struct key *channel;
};

/* Calls attempt until it grants, its outcome is unknown, or wait_ms is over: REFUSED (0: one attempt, -1: no limit).
 * A subscription that is lost with its connection is made anew; if that fails, UNKNOWN. A wait of 0 ms lasts 1 ms: the
 * last millisecond of a key's life. */
struct lock_grant push_until_granted(struct lock *lock, int64_t wait_ms, const struct push_waiter *waiter);

/* The same with another way to wait than push_await. */
typedef bool push_waiting(struct env *env, const struct key *channel, int64_t limit_ms);
struct lock_grant push_until_granted_by(struct lock *lock, int64_t wait_ms, const struct push_waiter *waiter,
                                        push_waiting *await);

/* Waits for the next message on a channel to which this task is subscribed, at most limit_ms (-1: for ever). True:
 * it came, or the time is over. False: the connection is lost and could not be made anew. */
bool push_await(struct env *env, const struct key *channel, int64_t limit_ms);
