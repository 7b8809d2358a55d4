#include "harness/locks/redis/signal_list.h"

#include <stdlib.h>
#include <string.h>

enum { FOR_EVER = -1, MS_PER_S = 1000 };

static char *prefixed(const char *prefix, const struct lock_options *options, size_t *length) {
    size_t prefix_length = strlen(prefix);
    *length = prefix_length + options->resource_length;
    char *name = malloc(*length + 1);
    if (!name) abort();
    memcpy(name, prefix, prefix_length);
    memcpy(name + prefix_length, options->resource, options->resource_length);
    return name;
}

enum outcome signal_list_open(struct lock *lock, const struct signal_list_way *way) {
    struct signal_list *self = lock->state;
    size_t length;
    self->list = prefixed(way->list_prefix, &lock->options, &self->list_length);
    self->lock = prefixed(way->lock_prefix, &lock->options, &length);
    lock->options.resource = self->lock;
    lock->options.resource_length = length;
    self->release.source = way->release;
    enum outcome opened = set_nx_px_open(lock);
    return opened == OUTCOME_OK ? script_load(lock->env, 0, &self->release) : opened;
}

void signal_list_close(struct lock *lock) {
    struct signal_list *self = lock->state;
    watchdog_stop(&self->watchdog);
    free(self->lock);
    free(self->list);
}

/* How long BLPOP may wait. The server gives up when more than its limit has passed: a millisecond later. */
static int64_t pop_limit_ms(int64_t lease_ms, bool expires, int64_t left_ms) {
    int64_t whole_ms = expires ? (lease_ms + MS_PER_S - 1) / MS_PER_S * MS_PER_S : FOR_EVER;
    if (left_ms == FOR_EVER) return whole_ms;
    return whole_ms == FOR_EVER || left_ms <= whole_ms ? left_ms - 1 : whole_ms;
}

/* False: no answer. Any signal, old or new, is a reason to try again. */
static bool await_signal(struct lock *lock, bool expires, int64_t left_ms) {
    const struct signal_list *self = lock->state;
    int64_t limit_ms = pop_limit_ms(lock->options.lease_ms, expires, left_ms);
    if (limit_ms == 0) {
        env_sleep(lock->env, left_ms);
        return true; /* BLPOP takes 0 for "no limit" */
    }
    const struct env_reply *reply =
        limit_ms == FOR_EVER
            ? env_command_blocking(lock->env, 0, FOR_EVER, "BLPOP %b 0", self->list, self->list_length)
            : env_command_blocking(lock->env, 0, limit_ms, "BLPOP %b %lld.%03lld", self->list, self->list_length,
                                   (long long)limit_ms / MS_PER_S, (long long)limit_ms % MS_PER_S);
    return reply->kind == ENV_REPLY_ARRAY || reply->kind == ENV_REPLY_NIL;
}

struct lock_grant signal_list_acquire(struct lock *lock, int64_t wait_ms, bool expires,
                                      struct lock_grant (*attempt)(struct lock *lock)) {
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (;;) {
        struct lock_grant grant = attempt(lock);
        if (grant.outcome != OUTCOME_REFUSED) return grant;
        int64_t left_ns = until_ns - env_mono_ns(lock->env);
        if (left_ns <= 0) return grant;
        env_checkpoint(lock->env, "between-refusal-and-blpop");
        int64_t left_ms = wait_ms < 0 ? FOR_EVER : (left_ns + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
        if (!await_signal(lock, expires, left_ms)) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    }
}

enum outcome signal_list_release(struct lock *lock) {
    struct signal_list *self = lock->state;
    env_checkpoint(lock->env, "before-release");
    return script_outcome(script_run(lock->env, 0, &self->release, "2 %b %b %s", lock->options.resource,
                                     lock->options.resource_length, self->list, self->list_length, self->base.owner));
}
