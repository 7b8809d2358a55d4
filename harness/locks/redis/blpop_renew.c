/* python-redis-lock with `expire` and `auto_renewal`. */
#include "harness/locks/redis/python_redis_lock.h"

static struct lock_grant blpop_renew_acquire(struct lock *lock, int64_t wait_ms) {
    struct signal_list *self = lock->state;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its owner is replaced now */
    struct lock_grant grant = signal_list_acquire(lock, wait_ms, true, set_nx_px_attempt);
    if (grant.outcome != OUTCOME_OK) return grant;
    self->watchdog.renew = set_nx_px_renew_in;
    self->watchdog.period_ms = lock->options.lease_ms * 2 / 3 > 0 ? lock->options.lease_ms * 2 / 3 : 1;
    self->watchdog.trouble = WATCHDOG_ENDS_SILENTLY;
    watchdog_start(&self->watchdog, lock);
    return grant;
}

static enum outcome blpop_renew_release(struct lock *lock) {
    struct signal_list *self = lock->state;
    watchdog_stop(&self->watchdog);
    return signal_list_release(lock);
}

const struct lock_type LOCK_BLPOP_RENEW = {
    .name = "blpop-renew",
    .summary = "blpop whose holder renews at two thirds of the lease, until one renewal fails",
    .explanation =
        "As blpop, but the release leaves exactly one signal, which expires after 1 s, and a watchdog extends the\n"
        "lease every two thirds of it, for its owner only.\n"
        "Promises: a hold may be longer than the lease, as long as the process runs and every renewal is answered;\n"
        "a release wakes a waiter at once, and without a signal it tries again when its BLPOP of one lease is over.\n"
        "Costs: as blpop, and 1.5 scripts per lease while it is held.\n"
        "Breaks: the first renewal without an answer (a timeout, a lost connection, a busy server) ends the\n"
        "watchdog, and the holder does not learn of it: the lease runs out although everything works again. A\n"
        "renewal is due when a third of the lease is left, so a second try would come too late unless the first was\n"
        "carried out after all. What stops the process stops its watchdog, too.",
    .source = "python-redis-lock 4.0.1, Lock(expire=..., auto_renewal=True)",
    SIGNAL_LIST_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_RENEWS,
    .open = python_redis_lock_open,
    .acquire = blpop_renew_acquire,
    .renew = set_nx_px_renew,
    .release = blpop_renew_release,
};
