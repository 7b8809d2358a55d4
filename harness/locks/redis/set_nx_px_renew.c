/* set-nx-px whose holder renews the lease in the background, every third of it. */
#include "harness/locks/common/watchdog.h"
#include "harness/locks/redis/set_nx_px.h"

struct set_nx_px_renew {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    struct watchdog watchdog;
};

static struct lock_grant set_nx_px_renew_acquire(struct lock *lock, int64_t wait_ms) {
    struct set_nx_px_renew *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its owner is replaced now */
    struct lock_grant grant = poll_acquire(lock, wait_ms);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->watchdog.renew = set_nx_px_renew_in;
    self->watchdog.period_ms = lock->options.lease_ms / 3 > 0 ? lock->options.lease_ms / 3 : 1;
    watchdog_start(&self->watchdog, lock);
    return grant;
}

static enum outcome set_nx_px_renew_release(struct lock *lock) {
    struct set_nx_px_renew *self = lock->state;
    watchdog_stop(&self->watchdog);
    return set_nx_px_release(lock);
}

static void set_nx_px_renew_close(struct lock *lock) {
    struct set_nx_px_renew *self = lock->state;
    watchdog_stop(&self->watchdog);
}

const struct lock_type LOCK_SET_NX_PX_RENEW = {
    .name = "set-nx-px-renew",
    .summary = "set-nx-px with a watchdog that renews at a third of the lease",
    .explanation =
        "As set-nx-px; while the lock is held, a watchdog in the same process extends the lease every third of it,\n"
        "for its owner only. A renewal that is refused ends the watchdog; the holder does not learn of it.\n"
        "Promises: a hold may be longer than the lease, as long as the process runs and reaches the server.\n"
        "Costs: as set-nx-px, and 3 scripts per lease while it is held.\n"
        "Breaks: what stops the process stops the watchdog, too, so a pause past the lease does the same harm as\n"
        "without one; a worker that hangs while its watchdog runs keeps all other clients out for ever.",
    .source = "the watchdog of Redisson and of python-redis-lock's auto_renewal, on the lock of redis.io",
    SET_NX_PX_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .state_size = sizeof(struct set_nx_px_renew),
    .acquire = set_nx_px_renew_acquire,
    .release = set_nx_px_renew_release,
    .close = set_nx_px_renew_close,
};
