/* Renewing a lease in the background while the lock is held. It runs in the client's own process: what stops the client
 * stops its renewals. */
#pragma once

#include "harness/locks/common/lock.h"

/* What to do after a renewal whose outcome is unknown (no answer, an error). */
enum watchdog_trouble {
    WATCHDOG_GOES_ON,      /* tries again at the next period */
    WATCHDOG_ENDS_SILENTLY /* like a thread that ends with an exception */
};

/* Part of a lock's state. `renew` uses the environment that it is given, never lock->env: it runs beside the worker. */
struct watchdog {
    enum outcome (*renew)(struct lock *lock, struct env *env);
    int64_t period_ms;
    enum watchdog_trouble trouble;
    struct lock *lock; /* set by watchdog_start */
};

/* Starts renewing every period_ms, unless the lease is fixed; one that is running goes on. A renewal that is refused
 * (another client has the lock) ends it without notice to the holder, as in the originals. */
void watchdog_start(struct watchdog *watchdog, struct lock *lock);

/* Returns when it has stopped. Harmless when none runs. */
void watchdog_stop(struct watchdog *watchdog);
