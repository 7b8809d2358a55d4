#include "harness/locks/zookeeper_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_DIGITS = 10, RETRY_MS = 50 };

/* The session is asked for longer than it lives without an answer: then it is lost, or whoever asks gives up. */
enum { PATIENCE_SESSIONS = 2 };

static struct zookeeper_queue *queue_of(const struct lock *lock) {
    return lock->state;
}

static char *joined(const char *before, const char *between, const char *after) {
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", before, between, after) < 0) abort();
    return text;
}

/* --- the session --- */

/* A holder that hears nothing of its servers cannot know whether the session lives, and stops believing until it does.
 */
static void session_changed(struct env *env, enum env_session_state state, void *argument) {
    struct zookeeper_queue *self = argument;
    if (!atomic_load(&self->holding)) return;
    env_tell_validity(env, state == ENV_SESSION_CONNECTED ? INT64_MAX : env_mono_ns(env));
}

static enum outcome session_begin(struct lock *lock) {
    return env_session_open(lock->env, lock->options.lease_ms, session_changed, lock->state);
}

static bool session_is_lost(struct lock *lock) {
    return env_session_state(lock->env) == ENV_SESSION_LOST;
}

/* --- the directory --- */

static bool directory_make(struct lock *lock, const char *path) {
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_CREATE, path);
    return reply->kind == ENV_REPLY_ARRAY || reply->kind == ENV_REPLY_ERROR; /* an error: it is there */
}

static const char ROOT[] = "/lockstorm";

static enum outcome directory_ensure(struct lock *lock) {
    bool made = directory_make(lock, ROOT) && directory_make(lock, queue_of(lock)->directory);
    return made ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

/* A name is any bytes; a path is not. */
static char *directory_of(const struct lock_options *options) {
    char *directory = malloc(sizeof ROOT + 2 * options->resource_length + 1);
    if (!directory) abort();
    char *end = directory + sprintf(directory, "%s/", ROOT);
    for (size_t each = 0; each < options->resource_length; each++)
        end += sprintf(end, "%02x", (unsigned)(unsigned char)options->resource[each]);
    return directory;
}

enum outcome zookeeper_queue_open(struct lock *lock) {
    queue_of(lock)->directory = directory_of(&lock->options);
    enum outcome outcome = session_begin(lock);
    return outcome == OUTCOME_OK ? directory_ensure(lock) : outcome;
}

void zookeeper_queue_close(struct lock *lock) {
    free(queue_of(lock)->node);
    free(queue_of(lock)->directory);
}

/* --- its own node --- */

static void node_forget(struct zookeeper_queue *self) {
    free(self->node);
    self->node = NULL;
    self->asked = false;
}

static void node_take(struct zookeeper_queue *self, char *path, int64_t czxid) {
    free(self->node);
    self->node = path;
    self->token = czxid;
}

/* How the last step came out; what is unknown is tried again. */
enum step { STEP_UNKNOWN = 0, STEP_DONE, STEP_WAIT, STEP_AGAIN };

/* Whether the answer to a create that never came was "yes": the guid says which node is ours. Requests of a session are
 * carried out in their order, so what is not there now never will be. */
static enum step node_find(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, self->directory);
    if (names->kind != ENV_REPLY_ARRAY) return names->kind == ENV_REPLY_UNKNOWN ? STEP_UNKNOWN : STEP_AGAIN;
    for (size_t each = 0; each < names->count; each++) {
        if (strncmp(names->items[each].text, self->guid, ZOOKEEPER_GUID_DIGITS) != 0) continue;
        char *path = joined(self->directory, "/", names->items[each].text);
        const struct env_reply *found = env_tree(lock->env, ENV_TREE_LOOK, path);
        if (found->kind == ENV_REPLY_INTEGER) return node_take(self, path, found->integer), STEP_DONE;
        free(path);
        return STEP_UNKNOWN;
    }
    self->asked = false;
    return STEP_AGAIN;
}

static enum step node_create(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    snprintf(self->guid, sizeof self->guid, "%016" PRIx64 "%016" PRIx64, env_random(lock->env), env_random(lock->env));
    char *name = joined(self->guid, self->kind, "-");
    char *path = joined(self->directory, "/", name);
    self->asked = true;
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_CREATE_MINE, path);
    free(path);
    free(name);
    if (reply->kind == ENV_REPLY_UNKNOWN) return STEP_UNKNOWN;
    if (reply->kind == ENV_REPLY_ARRAY)
        return node_take(self, strdup(reply->items[0].text), reply->items[1].integer), STEP_DONE;
    self->asked = false;
    return directory_ensure(lock) == OUTCOME_OK ? STEP_AGAIN : STEP_UNKNOWN; /* somebody has removed it */
}

/* Deletes it. NIL after an answer that never came: that one had done it, if the session lives, or the session's end. */
static enum outcome node_delete(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    int64_t until_ns = env_mono_ns(lock->env) + PATIENCE_SESSIONS * lock->options.lease_ms * ENV_NS_PER_MS;
    for (bool doubtful = false;; doubtful = true) {
        if (session_is_lost(lock)) return doubtful ? OUTCOME_UNKNOWN : OUTCOME_REFUSED;
        const struct env_reply *reply = env_tree(lock->env, ENV_TREE_DELETE, self->node);
        if (reply->kind == ENV_REPLY_STATUS) return OUTCOME_OK;
        if (reply->kind == ENV_REPLY_NIL) return doubtful ? OUTCOME_OK : OUTCOME_REFUSED;
        if (reply->kind == ENV_REPLY_ERROR) return OUTCOME_REFUSED;
        if (env_mono_ns(lock->env) >= until_ns) return OUTCOME_UNKNOWN;
        env_sleep(lock->env, RETRY_MS);
    }
}

/* --- its place in the queue --- */

/* A name is GUID, kind, "-", ten digits. */
static const char *number_in(const char *name) {
    size_t length = strlen(name);
    return length > ZOOKEEPER_GUID_DIGITS + NUMBER_DIGITS ? name + length - NUMBER_DIGITS : NULL;
}

static bool is_reader(const char *name) {
    return strncmp(name + ZOOKEEPER_GUID_DIGITS, "read-", strlen("read-")) == 0;
}

/* The one to wait for, in *before: NULL when there is none. Names are the reply's. */
static bool place_look(const struct zookeeper_queue *self, const struct env_reply *names, const char **before) {
    const char *own = strrchr(self->node, '/') + 1, *own_number = number_in(own);
    bool is_there = false;
    *before = NULL;
    for (size_t each = 0; each < names->count; each++) {
        const char *name = names->items[each].text, *number = number_in(name);
        is_there |= strcmp(name, own) == 0;
        if (!number || strcmp(number, own_number) >= 0 || (self->shared && is_reader(name))) continue;
        if (!*before || strcmp(number, number_in(*before)) > 0) *before = name;
    }
    return is_there;
}

static enum step place_await(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    const struct env_reply *names = env_tree(lock->env, ENV_TREE_CHILDREN, self->directory);
    const char *before;
    if (names->kind == ENV_REPLY_UNKNOWN) return STEP_UNKNOWN;
    if (names->kind != ENV_REPLY_ARRAY || !place_look(self, names, &before)) {
        node_forget(self); /* somebody has removed it */
        return STEP_AGAIN;
    }
    if (!before) return env_session_state(lock->env) == ENV_SESSION_CONNECTED ? STEP_DONE : STEP_UNKNOWN;
    char *path = joined(self->directory, "/", before);
    enum env_reply_kind seen = env_tree(lock->env, ENV_TREE_WATCH, path)->kind;
    free(path);
    if (seen == ENV_REPLY_UNKNOWN) return STEP_UNKNOWN;
    return seen == ENV_REPLY_INTEGER ? STEP_WAIT : STEP_AGAIN;
}

/* Whatever comes next: a session, a node, a place. */
static enum step advance(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    if (session_is_lost(lock)) {
        node_forget(self); /* the servers have deleted it, or will */
        return session_begin(lock) == OUTCOME_OK ? STEP_AGAIN : STEP_UNKNOWN;
    }
    if (self->node) return place_await(lock);
    enum step step = self->asked ? node_find(lock) : node_create(lock);
    return step == STEP_DONE ? STEP_AGAIN : step;
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

/* Nobody may wait for a node that nobody will take. What cannot be deleted now goes with the session. */
static struct lock_grant give_up(struct lock *lock, enum outcome outcome) {
    struct zookeeper_queue *self = queue_of(lock);
    if (!self->node && self->asked) node_find(lock);
    if (self->node && node_delete(lock) == OUTCOME_UNKNOWN) outcome = OUTCOME_UNKNOWN;
    node_forget(self);
    return (struct lock_grant){.outcome = outcome};
}

static struct lock_grant granted(struct zookeeper_queue *self) {
    atomic_store(&self->holding, true);
    return (struct lock_grant){.outcome = OUTCOME_OK, .token = self->token};
}

static struct lock_grant attempt(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    int64_t patience_ns = PATIENCE_SESSIONS * lock->options.lease_ms * ENV_NS_PER_MS;
    int64_t heard_ns = env_mono_ns(lock->env);
    node_forget(queue_of(lock));
    for (;;) {
        enum step step = advance(lock);
        if (step == STEP_DONE) return granted(queue_of(lock));
        if (step == STEP_WAIT && !news_await(lock, wait_ms, until_ns)) return give_up(lock, OUTCOME_REFUSED);
        if (step != STEP_UNKNOWN) heard_ns = env_mono_ns(lock->env);
        else if (env_mono_ns(lock->env) - heard_ns >= patience_ns) return give_up(lock, OUTCOME_UNKNOWN);
        else env_sleep(lock->env, RETRY_MS);
    }
}

struct lock_grant zookeeper_queue_acquire(struct lock *lock, int64_t wait_ms) {
    struct lock_grant grant = attempt(lock, wait_ms);
    env_checkpoint(lock->env, "after-acquire-reply");
    return grant;
}

enum outcome zookeeper_queue_release(struct lock *lock) {
    struct zookeeper_queue *self = queue_of(lock);
    atomic_store(&self->holding, false);
    env_checkpoint(lock->env, "before-release");
    if (!self->node) return OUTCOME_REFUSED;
    enum outcome outcome = node_delete(lock);
    node_forget(self);
    return outcome;
}

/* As for a renewal: whoever asks is heard, and that is all that a session needs. */
enum outcome zookeeper_queue_is_held(struct lock *lock) {
    const struct zookeeper_queue *self = queue_of(lock);
    if (!self->node || !atomic_load(&self->holding) || session_is_lost(lock)) return OUTCOME_REFUSED;
    const struct env_reply *reply = env_tree(lock->env, ENV_TREE_LOOK, self->node);
    if (reply->kind == ENV_REPLY_UNKNOWN) return OUTCOME_UNKNOWN;
    return reply->kind == ENV_REPLY_INTEGER ? OUTCOME_OK : OUTCOME_REFUSED;
}
