/* A plug-in for tests: a list in which clients queue; the first one has the lock. Its mistakes:
 *   PLACE_KEPT       a client that gives up keeps its place in the queue
 *   SCRIPTS_REMOVED  the same, and each acquire removes all scripts of the server, those of others too */
#include <string.h>

#include "drawn_owner.h"
#include "lockstorm.h"

static enum outcome leave(struct lock *lock) {
    struct state *self = lock->state;
    const struct env_reply *reply = env_command(lock->env, 0, "LREM %b 0 %s", RESOURCE, self->me);
    if (reply->kind != ENV_REPLY_INTEGER) return OUTCOME_UNKNOWN;
    return reply->integer == 1 ? OUTCOME_OK : OUTCOME_REFUSED;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct state *self = lock->state;
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    draw(lock);
#ifdef SCRIPTS_REMOVED
    (void)env_command(lock->env, 0, "SCRIPT FLUSH");
#endif
    const struct env_reply *reply = env_command(lock->env, 0, "RPUSH %b %s", RESOURCE, self->me);
    if (reply->kind != ENV_REPLY_INTEGER) {
        (void)leave(lock);
        return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    }
    for (;;) {
        reply = env_command(lock->env, 0, "LINDEX %b 0", RESOURCE);
        if (reply->kind == ENV_REPLY_STRING && strcmp(reply->text, self->me) == 0)
            return (struct lock_grant){.outcome = OUTCOME_OK};
        if (env_mono_ns(lock->env) >= until_ns) break;
        env_sleep(lock->env, 50);
    }
#if !defined PLACE_KEPT && !defined SCRIPTS_REMOVED
    (void)leave(lock);
#endif
    return (struct lock_grant){.outcome = OUTCOME_REFUSED};
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "queue",
    .summary = "a list",
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .state_size = sizeof(struct state),
    .acquire = acquire,
    .release = leave,
};
