#include "harness/locks/zookeeper/zookeeper_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_DIGITS = 10 };

static struct zookeeper_queue *queue_of(const struct lock *lock) {
    return lock->state;
}

/* --- the session --- */

/* A holder that no server answers cannot know whether its session lives, and stops believing until it does. */
static void session_changed(struct env *env, enum env_session_state state, void *argument) {
    struct zookeeper_queue *self = argument;
    if (!atomic_load(&self->holding)) return;
    env_tell_validity(env, state == ENV_SESSION_CONNECTED ? INT64_MAX : env_mono_ns(env));
}

static enum outcome zookeeper_queue_session_begin(struct lock *lock) {
    return env_session_open(lock->env, lock->options.lease_ms, session_changed, lock->state);
}

enum outcome zookeeper_queue_open(struct lock *lock, const char *kind) {
    queue_of(lock)->node.kind = kind;
    queue_of(lock)->node.directory = zookeeper_directory(&lock->options);
    enum outcome outcome = zookeeper_queue_session_begin(lock);
    return outcome == OUTCOME_OK ? zookeeper_directory_ensure(lock) : outcome;
}

void zookeeper_queue_close(struct lock *lock) {
    free(queue_of(lock)->node.path);
    free(queue_of(lock)->node.directory);
}

/* --- its place in the queue --- */

/* A name is GUID, kind, "-", ten digits. */
static const char *number_in(const char *name) {
    size_t length = strlen(name);
    return length > ZOOKEEPER_GUID_DIGITS + NUMBER_DIGITS ? name + length - NUMBER_DIGITS : NULL;
}

/* The one to wait for, in *before, or NULL. Names are the reply's. */
static bool place_look(const struct zookeeper_queue *self, const struct env_reply *names, const char **before) {
    const char *own = strrchr(self->node.path, '/') + 1, *own_number = number_in(own);
    bool is_there = false;
    *before = NULL;
    for (size_t each = 0; each < names->count; each++) {
        const char *name = names->items[each].text, *number = number_in(name);
        is_there |= strcmp(name, own) == 0;
        if (!number || strcmp(number, own_number) >= 0) continue;
        if (!*before || strcmp(number, number_in(*before)) > 0) *before = name;
    }
    return is_there;
}

static enum zookeeper_step place_await(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, self->node.directory);
    const char *before;
    if (names->kind == ENV_REPLY_UNKNOWN) return ZOOKEEPER_UNKNOWN;
    if (names->kind != ENV_REPLY_ARRAY || !place_look(self, names, &before)) {
        zookeeper_node_forget(&self->node); /* something else has removed it */
        return ZOOKEEPER_AGAIN;
    }
    if (!before) return env_session_state(lock->env) == ENV_SESSION_CONNECTED ? ZOOKEEPER_DONE : ZOOKEEPER_UNKNOWN;
    char *path = zookeeper_path(self->node.directory, "/", before);
    enum env_reply_kind seen = env_tree(lock->env, ENV_TREE_WATCH, path)->kind;
    free(path);
    if (seen == ENV_REPLY_UNKNOWN) return ZOOKEEPER_UNKNOWN;
    return seen == ENV_REPLY_INTEGER ? ZOOKEEPER_WAIT : ZOOKEEPER_AGAIN;
}

/* Whatever comes next: a session, a node, a place. */
static enum zookeeper_step advance(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    if (zookeeper_session_is_lost(lock)) {
        zookeeper_node_forget(&self->node); /* the servers have deleted it, or will */
        return zookeeper_queue_session_begin(lock) == OUTCOME_OK ? ZOOKEEPER_AGAIN : ZOOKEEPER_UNKNOWN;
    }
    if (self->node.path) return place_await(lock);
    enum zookeeper_step step = self->node.requested ? zookeeper_node_find(lock) : zookeeper_node_create(lock);
    return step == ZOOKEEPER_DONE ? ZOOKEEPER_AGAIN : step;
}

/* --- acquire and release --- */

static int64_t left_ms(struct lock *lock, int64_t until_ns) {
    return (until_ns - env_mono_ns(lock->env) + ENV_NS_PER_MS - 1) / ENV_NS_PER_MS;
}

/* Waits for news of the one before; false: the wait is over. */
static bool news_await(struct lock *lock, int64_t wait_ms, int64_t until_ns) {
    if (wait_ms < 0) return env_tree_news(lock->env, -1);
    return env_mono_ns(lock->env) < until_ns && env_tree_news(lock->env, left_ms(lock, until_ns));
}

/* No node may stay that its client has given up, or others would wait for it: one that cannot be deleted now, or may
 * still be created, goes with the session. */
static struct lock_grant zookeeper_queue_give_up(struct lock *lock, enum outcome outcome) {
    struct zookeeper_queue *self = queue_of(lock);
    if (!self->node.path && self->node.requested) zookeeper_node_find(lock);
    bool is_left = self->node.path ? zookeeper_node_delete(lock) == OUTCOME_UNKNOWN : self->node.requested;
    if (is_left) env_session_end(lock->env);
    zookeeper_node_forget(&self->node);
    return (struct lock_grant){.outcome = is_left ? OUTCOME_UNKNOWN : outcome};
}

static struct lock_grant zookeeper_queue_granted(struct zookeeper_queue *self) {
    atomic_store(&self->holding, true);
    return (struct lock_grant){.outcome = OUTCOME_OK, .token = self->node.token};
}

static struct lock_grant zookeeper_queue_attempt(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    int64_t patience_ns = ZOOKEEPER_PATIENCE_SESSIONS * lock->options.lease_ms * ENV_NS_PER_MS;
    int64_t answered_ns = env_mono_ns(lock->env);
    zookeeper_node_forget(&queue_of(lock)->node);
    for (;;) {
        enum zookeeper_step step = advance(lock);
        if (step == ZOOKEEPER_DONE) return zookeeper_queue_granted(queue_of(lock));
        if (step == ZOOKEEPER_WAIT && !news_await(lock, wait_ms, until_ns))
            return zookeeper_queue_give_up(lock, OUTCOME_REFUSED);
        if (step != ZOOKEEPER_UNKNOWN) answered_ns = env_mono_ns(lock->env);
        else if (env_mono_ns(lock->env) - answered_ns >= patience_ns)
            return zookeeper_queue_give_up(lock, OUTCOME_UNKNOWN);
        else env_sleep(lock->env, ZOOKEEPER_RETRY_MS);
    }
}

struct lock_grant zookeeper_queue_acquire(struct lock *lock, int64_t wait_ms) {
    struct lock_grant grant = zookeeper_queue_attempt(lock, wait_ms);
    env_checkpoint(lock->env, "after-acquire-reply");
    return grant;
}

enum outcome zookeeper_queue_release(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    atomic_store(&self->holding, false);
    env_checkpoint(lock->env, "before-release");
    if (!self->node.path) return OUTCOME_REFUSED;
    enum outcome outcome = zookeeper_node_delete(lock);
    if (outcome == OUTCOME_UNKNOWN) env_session_end(lock->env);
    zookeeper_node_forget(&self->node);
    return outcome;
}

/* Also the renewal: any request that reaches a server keeps the session alive. */
enum outcome zookeeper_queue_is_held(struct lock *lock) {
    const struct zookeeper_queue *self = queue_of(lock);
    if (!self->node.path || !atomic_load(&self->holding) || zookeeper_session_is_lost(lock)) return OUTCOME_REFUSED;
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_LOOK, self->node.path);
    if (reply->kind == ENV_REPLY_UNKNOWN) return OUTCOME_UNKNOWN;
    return reply->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_REFUSED;
}
