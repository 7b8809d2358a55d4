/* A lock whose holders share one value, so each takes any lock for its own. */
#include <stdio.h>

#include "harness/locks/redis/set_nx_px.h"

static struct lock_grant redis_py_416_attempt(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    snprintf(self->owner, sizeof self->owner, "%0*d", SET_NX_PX_OWNER, 0);
    return set_nx_px_attempt_as(lock);
}

const struct lock_type LOCK_REDIS_PY_416 = {
    .name = "redis-py-416",
    .summary = "set-nx-px with one value for all clients, as threads have it that share one lock object",
    .explanation =
        "As set-nx-px, but the value is stored where all clients store theirs, so the comparison in the release is\n"
        "true for any holder.\n"
        "Breaks: a client that outlasts its lease releases the next holder's lock.",
    .source = "redis-py issue 416; its thread_local is the answer to it",
    .fixed = "set-nx-px",
    SET_NX_PX_FIELDS,
    .attempt = redis_py_416_attempt,
};
