/* A lock whose value is the time at which it ends, and whose release checks only whether that is the later one. */
#include <stdio.h>

#include "harness/locks/redis/set_nx_px.h"

/* Texts of equally many digits compare like their numbers. */
static const char RELEASE[] = "local until_ms = redis.call('get', KEYS[1]) "
                              "if until_ms and until_ms >= ARGV[1] then return redis.call('del', KEYS[1]) end "
                              "return 0";

static enum outcome redis_py_415_open(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    self->release.source = RELEASE;
    return set_nx_px_open(lock);
}

static struct lock_grant redis_py_415_attempt(struct lock *lock) {
    struct set_nx_px *self = lock->state;
    long long until_ms = env_wall_ns(lock->env) / ENV_NS_PER_MS + lock->options.lease_ms;
    snprintf(self->owner, sizeof self->owner, "%0*lld", SET_NX_PX_OWNER, until_ms);
    return set_nx_px_attempt_as(lock);
}

const struct lock_type LOCK_REDIS_PY_415 = {
    .name = "redis-py-415",
    .summary = "set-nx-px whose value is a time, deleted by any client that has the same or an earlier one",
    .explanation =
        "As set-nx-px, but the value says when the lease ends, and the release deletes a key whose lease ends no\n"
        "sooner than the client's own.\n"
        "Breaks: the next holder's lease always ends later, so a client that outlasts its own deletes the next\n"
        "one's lock.",
    .source = "redis-py issue 415, of its lock before 2.10",
    .fixed = "set-nx-px",
    SET_NX_PX_FIELDS,
    .open = redis_py_415_open,
    .attempt = redis_py_415_attempt,
    .renew = NULL,
    .is_held = NULL,
};
