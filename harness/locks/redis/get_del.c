#include "harness/locks/redis/get_del.h"

#include "harness/locks/redis/set_nx_px.h"

enum outcome get_del_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    enum outcome held = set_nx_px_is_held(lock);
    if (held != OUTCOME_OK) return held;
    env_checkpoint(lock->env, "between-get-and-del");
    return script_outcome(env_command(lock->env, 0, "DEL %b", lock->options.resource, lock->options.resource_length));
}
