/* A plug-in for tests: a queue of ephemeral nodes on ZooKeeper, which its waiters poll, and its mistake:
 *   FINDS_OLD  a client takes a node with the name of its host for its own, also one of an earlier session */
#include <stdio.h>
#include <string.h>

#include "host_name.h"
#include "lockstorm.h"

enum { NUMBER_DIGITS = 10, POLL_MS = 50 };

static const char DIRECTORY[] = "/planted";

struct tree_lock {
    char path[256];
    int64_t token;
};

static void session_changed(struct env *env, enum env_session_state state, void *argument) {
    (void)env, (void)state, (void)argument;
}

static enum outcome open(struct lock *lock) {
    enum outcome outcome = env_session_open(lock->env, lock->options.lease_ms, session_changed, NULL);
    if (outcome == OUTCOME_OK) (void)env_tree(lock->env, ENV_TREE_CREATE, DIRECTORY); /* an error: it is there */
    return outcome;
}

static const char *number_in(const char *name) {
    size_t length = strlen(name);
    return length > NUMBER_DIGITS ? name + length - NUMBER_DIGITS : name;
}

/* Takes a node of this name that is there, if FINDS_OLD; otherwise makes one. */
static enum outcome node_make(struct lock *lock, const char *name) {
    struct tree_lock *self = lock->state;
    char path[sizeof self->path / 2];
#ifdef FINDS_OLD
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, DIRECTORY);
    for (size_t each = 0; names->kind == ENV_REPLY_ARRAY && each < names->count; each++) {
        if (strncmp(names->items[each].text, name, strlen(name)) != 0) continue;
        snprintf(self->path, sizeof self->path, "%s/%s", DIRECTORY, names->items[each].text);
        const struct env_reply *seen = env_tree(lock->env, ENV_TREE_LOOK, self->path);
        self->token = seen->integer;
        return seen->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_UNKNOWN;
    }
#endif
    snprintf(path, sizeof path, "%s/%s-", DIRECTORY, name);
    const struct env_reply *made = env_tree(lock->env, ENV_TREE_CREATE_MINE, path);
    if (made->kind != ENV_REPLY_ARRAY) return OUTCOME_UNKNOWN;
    snprintf(self->path, sizeof self->path, "%s", made->items[0].text);
    self->token = made->items[1].integer;
    return OUTCOME_OK;
}

static enum outcome is_first(struct lock *lock) {
    const struct tree_lock *self = lock->state;
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, DIRECTORY);
    if (names->kind != ENV_REPLY_ARRAY) return OUTCOME_UNKNOWN;
    for (size_t each = 0; each < names->count; each++)
        if (strcmp(number_in(names->items[each].text), number_in(self->path)) < 0) return OUTCOME_REFUSED;
    return OUTCOME_OK;
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct tree_lock *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    char name[17];
#ifdef FINDS_OLD
    unsigned long long who = host_name();
#else
    unsigned long long who = env_random(lock->env);
#endif
    snprintf(name, sizeof name, "%016llx", who);
    enum outcome outcome = node_make(lock, name);
    if (outcome == OUTCOME_OK) outcome = is_first(lock);
    while (outcome == OUTCOME_REFUSED && env_mono_ns(lock->env) < until_ns) {
        env_sleep(lock->env, POLL_MS);
        outcome = is_first(lock);
    }
    if (outcome == OUTCOME_REFUSED) (void)env_tree(lock->env, ENV_TREE_DELETE, self->path);
    return (struct lock_grant){.outcome = outcome, .token = outcome == OUTCOME_OK ? self->token : 0};
}

static enum outcome release(struct lock *lock) {
    const struct tree_lock *self = lock->state;
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_DELETE, self->path);
    if (reply->kind == ENV_REPLY_STATUS) return OUTCOME_OK;
    return reply->kind == ENV_REPLY_NIL ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-tree",
    .summary = "a queue of ephemeral nodes on ZooKeeper",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .service = LOCK_SERVICE_ZOOKEEPER,
    .poll_ms = POLL_MS,
    .state_size = sizeof(struct tree_lock),
    .open = open,
    .acquire = acquire,
    .release = release,
};
