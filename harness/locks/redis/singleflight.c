/* Request coalescing: the calls of one client share one grant; between clients it is a lock. */
#include "harness/locks/redis/set_nx_px.h"

struct singleflight {
    struct set_nx_px base; /* first: the shared functions use it as the lock's state */
    int64_t calls;         /* that share the grant */
};

static struct lock_grant singleflight_acquire(struct lock *lock, int64_t wait_ms) {
    struct singleflight *self = lock->state;
    struct lock_grant grant = {.outcome = OUTCOME_OK};
    if (self->calls == 0) grant = poll_acquire(lock, wait_ms);
    if (grant.outcome == OUTCOME_OK) self->calls++;
    return grant;
}

/* The release of the last call releases the lock; so does that of a grant whose outcome was unknown. */
static enum outcome singleflight_release(struct lock *lock) {
    struct singleflight *self = lock->state;
    if (self->calls > 1) {
        self->calls--;
        return OUTCOME_OK;
    }
    self->calls = 0;
    return set_nx_px_release(lock);
}

const struct lock_type LOCK_SINGLEFLIGHT = {
    .name = "singleflight",
    .summary = "calls of one client share one grant of set-nx-px",
    .explanation =
        "A client that holds the lock lets its other calls for the same key in without asking the server, and\n"
        "counts them; the last one to leave releases. Across clients it is set-nx-px.\n"
        "Promises: one client at a time while no client outlasts its lease; any number of its calls.\n"
        "Costs: as set-nx-px for the first call, nothing for those that join it.\n"
        "Breaks: as set-nx-px. A call that joins late shares the lease of the first: it may begin when little of it\n"
        "is left, or nothing, and does not learn of that. Calls that keep joining keep other clients out only until\n"
        "the lease ends.",
    .source = "golang.org/x/sync/singleflight; its use in front of a lock against cache stampedes",
    SET_NX_PX_FIELDS,
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_REENTRANT,
    .state_size = sizeof(struct singleflight),
    .acquire = singleflight_acquire,
    .is_held = NULL,
    .release = singleflight_release,
};
