/* A renewal that takes the lock again when it is gone. */
#include "harness/locks/redis/set_nx_px.h"
#include "harness/locks/zoo/revive.h"

extern const struct lock_type LOCK_REDIS_SEMAPHORE_175;

static enum outcome redis_semaphore_175_open(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    self->renew.source = REVIVE;
    return set_nx_px_open(lock);
}

static struct lock_grant redis_semaphore_175_acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, &SET_NX_PX_PACE, set_nx_px_attempt);
}

const struct lock_type LOCK_REDIS_SEMAPHORE_175 = {
    .name = "redis-semaphore-175",
    .summary = "set-nx-px whose renewal sets the key when it is gone",
    .explanation =
        "As set-nx-px, but a renewal that finds no key takes the lock again and reports that it was renewed.\n"
        "Breaks: other clients have held the lock since the lease ran out, and the holder works on as if they had\n"
        "not.",
    .source = "swarthy/redis-semaphore issue 175; redsync pull request 149 offers it as SetNXOnExtend",
    .fixed = "set-nx-px",
    .traits = LOCK_TRAIT_LEASE,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 1500,
    .state_size = sizeof(struct set_nx_px),
    .open = redis_semaphore_175_open,
    .acquire = redis_semaphore_175_acquire,
    .renew = set_nx_px_renew,
    .is_held = set_nx_px_is_held,
    .release = set_nx_px_release,
};
