#include "harness/locks/zookeeper/zookeeper_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/key.h"

static struct zookeeper_node *node_of(const struct lock *lock) {
    return lock->state;
}

char *zookeeper_path(const char *before, const char *between, const char *after) {
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", before, between, after) < 0) abort();
    return text;
}

bool zookeeper_session_is_lost(struct lock *lock) {
    return env_session_state(lock->env) == ENV_SESSION_LOST;
}

/* --- the directory --- */

static bool directory_make(struct lock *lock, const char *path) {
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_CREATE, path);
    return reply->kind == ENV_REPLY_ARRAY || reply->kind == ENV_REPLY_ERROR; /* an error: it is there */
}

enum outcome zookeeper_directory_ensure(struct lock *lock) {
    bool made = directory_make(lock, "/lockstorm") && directory_make(lock, node_of(lock)->directory);
    return made ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

/* A resource's name may hold any byte, a path may not. */
char *zookeeper_directory(const struct lock_options *options) {
    return key_hexadecimal("/lockstorm/", options->resource, options->resource_length, "");
}

/* --- the node --- */

void zookeeper_node_forget(struct zookeeper_node *self) {
    free(self->path);
    self->path = NULL;
    self->requested = false;
}

static void node_take(struct zookeeper_node *self, char *path, int64_t czxid) {
    free(self->path);
    self->path = path;
    self->token = czxid;
}

/* Finds out whether a create whose answer never came was carried out: the guid says which node is ours. A session's
 * requests are carried out in their order, so a node that does not exist now never will. */
enum zookeeper_step zookeeper_node_find(struct lock *lock) {
    struct zookeeper_node *self = node_of(lock);
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, self->directory);
    if (names->kind != ENV_REPLY_ARRAY) return names->kind == ENV_REPLY_UNKNOWN ? ZOOKEEPER_UNKNOWN : ZOOKEEPER_AGAIN;
    for (size_t each = 0; each < names->count; each++) {
        if (strncmp(names->items[each].text, self->guid, ZOOKEEPER_GUID_DIGITS) != 0) continue;
        char *path = zookeeper_path(self->directory, "/", names->items[each].text);
        const struct env_reply *found = env_tree(lock->env, ENV_TREE_LOOK, path);
        if (found->kind == ENV_REPLY_INTEGER) {
            node_take(self, path, found->integer);
            return ZOOKEEPER_DONE;
        }
        free(path);
        return ZOOKEEPER_UNKNOWN;
    }
    self->requested = false;
    return ZOOKEEPER_AGAIN;
}

enum zookeeper_step zookeeper_node_create(struct lock *lock) {
    struct zookeeper_node *self = node_of(lock);
    key_draw(lock->env, self->guid);
    char *name = zookeeper_path(self->guid, self->kind, "-");
    char *path = zookeeper_path(self->directory, "/", name);
    self->requested = true;
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_CREATE_MINE, path);
    free(path);
    free(name);
    if (reply->kind == ENV_REPLY_UNKNOWN) return ZOOKEEPER_UNKNOWN;
    if (reply->kind == ENV_REPLY_ARRAY) {
        node_take(self, strdup(reply->items[0].text), reply->items[1].integer);
        return ZOOKEEPER_DONE;
    }
    self->requested = false;
    return zookeeper_directory_ensure(lock) == OUTCOME_OK ? ZOOKEEPER_AGAIN
                                                          : ZOOKEEPER_UNKNOWN; /* something else has removed it */
}

/* NIL after an answer that never came: the first request has deleted the node, or the end of the session has. */
enum outcome zookeeper_node_delete(struct lock *lock) {
    struct zookeeper_node *self = node_of(lock);
    int64_t until_ns = env_mono_ns(lock->env) + ZOOKEEPER_PATIENCE_SESSIONS * lock->options.lease_ms * ENV_NS_PER_MS;
    for (bool doubtful = false;; doubtful = true) {
        if (zookeeper_session_is_lost(lock)) return doubtful ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
        const struct env_reply *reply = env_tree(lock->env, ENV_TREE_DELETE, self->path);
        if (reply->kind == ENV_REPLY_STATUS) return OUTCOME_OK;
        if (reply->kind == ENV_REPLY_NIL) return doubtful ? OUTCOME_OK : OUTCOME_REFUSED;
        if (reply->kind == ENV_REPLY_ERROR) return OUTCOME_REFUSED;
        if (env_mono_ns(lock->env) >= until_ns) return OUTCOME_UNKNOWN;
        env_sleep(lock->env, ZOOKEEPER_RETRY_MS);
    }
}
