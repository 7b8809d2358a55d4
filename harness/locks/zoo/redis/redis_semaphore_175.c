/* A renewal that takes the lock again when it is gone. */
#include "harness/locks/redis/set_nx_px.h"
#include "harness/locks/zoo/revive.h"

static enum outcome redis_semaphore_175_open(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    self->renew.source = REVIVE;
    return set_nx_px_open(lock);
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
    SET_NX_PX_FIELDS,
    .open = redis_semaphore_175_open,
};
