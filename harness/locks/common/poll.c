#include "harness/locks/common/poll.h"

/* How long to sleep now: b plus a random part, but not past the end of the wait. */
static int64_t sleep_ms(struct lock *lock, const struct poll_pace *pace, int64_t backoff_ms, int64_t wait_ms,
                        int64_t until_ns) {
    int64_t spread_ms = pace->spread_ms ? pace->spread_ms : backoff_ms / 2;
    int64_t sleep = backoff_ms + (int64_t)env_random_below(lock->env, (uint64_t)spread_ms + 1);
    if (wait_ms < 0) return sleep;
    int64_t left = (until_ns - env_mono_ns(lock->env) + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
    return sleep < left ? sleep : left;
}

struct lock_grant poll_until_granted(struct lock *lock, int64_t wait_ms, const struct poll_pace *pace,
                                     struct lock_grant (*attempt)(struct lock *lock)) {
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    int64_t backoff_ms = pace->first_ms;
    for (int try = 1;; try++) {
        struct lock_grant grant = attempt(lock);
        if (grant.outcome != OUTCOME_REFUSED) return grant;
        if (env_mono_ns(lock->env) >= until_ns) return grant;
        if (wait_ms < 0 && pace->tries && try >= pace->tries) return grant;
        env_sleep(lock->env, sleep_ms(lock, pace, backoff_ms, wait_ms, until_ns));
        backoff_ms = backoff_ms * 2 < pace->most_ms ? backoff_ms * 2 : pace->most_ms;
    }
}

struct lock_grant poll_acquire(struct lock *lock, int64_t wait_ms) {
    return poll_until_granted(lock, wait_ms, lock->type->pace, lock->type->attempt);
}
