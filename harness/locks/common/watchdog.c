#include "harness/locks/common/watchdog.h"

static void watchdog_loop(struct env *env, void *argument) {
    const struct watchdog *watchdog = argument;
    for (;;) {
        env_sleep(env, watchdog->period_ms);
        if (env_watchdog_stopping(env)) return;
        enum outcome outcome = watchdog->renew(watchdog->lock, env);
        env_tell_answers(env, ENV_ASKED_EXTENSION, 0, outcome);
        env_checkpoint(env, "after-renew");
        if (outcome == OUTCOME_REFUSED) return;
        if (outcome == OUTCOME_UNKNOWN && watchdog->trouble == WATCHDOG_ENDS_SILENTLY) return;
    }
}

void watchdog_start(struct watchdog *watchdog, struct lock *lock) {
    if (lock->options.fixed_lease) return;
    if (watchdog->lock != lock) watchdog->lock = lock;            /* one that is running reads it */
    (void)env_watchdog_start(lock->env, watchdog_loop, watchdog); /* false: it runs already */
}

void watchdog_stop(struct watchdog *watchdog) {
    if (watchdog->lock) env_watchdog_stop(watchdog->lock->env);
}
