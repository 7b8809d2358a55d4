#include "harness/locks/redis/get_del.h"

#include <string.h>

#include "harness/locks/redis/set_nx_px.h"

enum outcome get_del_release(struct lock *lock) {
    const struct set_nx_px *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    const struct env_reply *owner =
        env_command(lock->env, 0, "GET %b", lock->options.resource, lock->options.resource_length);
    if (owner->kind == ENV_REPLY_NIL) return OUTCOME_REFUSED;
    if (owner->kind != ENV_REPLY_STRING) return OUTCOME_UNKNOWN;
    if (owner->length != SET_NX_PX_OWNER || memcmp(owner->text, self->owner, SET_NX_PX_OWNER) != 0)
        return OUTCOME_REFUSED;
    env_checkpoint(lock->env, "between-get-and-del");
    return script_outcome(env_command(lock->env, 0, "DEL %b", lock->options.resource, lock->options.resource_length));
}
