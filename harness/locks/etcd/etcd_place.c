#include "harness/locks/etcd/etcd_place.h"

#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/key.h"

/* A slash ends the prefix, so that no lock's prefix is a prefix of another's. */
void etcd_place_open(struct lock *lock, struct etcd_place *self) {
    etcd_session_open(lock, &self->session);
    self->prefix = key_hexadecimal("", lock->options.resource, lock->options.resource_length, "/");
}

void etcd_place_close(struct etcd_place *self) {
    free(self->prefix);
}

/* The key of the client's own place. */
static json_t *place_key(const struct etcd_place *self) {
    json_t *text = json_sprintf("%s%s", self->prefix, self->session.owner);
    json_t *key = etcd_bytes(json_string_value(text), json_string_length(text));
    json_decref(text);
    return key;
}

/* A range over all places, from the prefix to the first key after all that begin with it ('0' follows '/'); answers
 * only the first by this order. */
static json_t *places(const struct etcd_place *self, const char *order) {
    size_t length = strlen(self->prefix);
    json_t *begin = etcd_bytes(self->prefix, length), *end = NULL;
    char *after = strdup(self->prefix);
    if (!after) abort();
    after[length - 1]++;
    end = etcd_bytes(after, length);
    free(after);
    return json_pack("{s:o,s:o,s:s,s:s,s:s}", "key", begin, "range_end", end, "sort_target", "CREATE", "sort_order",
                     order, "limit", "1");
}

enum outcome etcd_place_take(struct lock *lock, struct etcd_place *self, bool *is_first) {
    struct etcd_session *session = &self->session;
    json_t *question = json_pack("{s:[{s:o,s:s,s:s,s:s}],s:[{s:{s:o,s:o}},{s:o}],s:[{s:{s:o}},{s:o}]}", "compare",
                                 "key", place_key(self), "target", "CREATE", "result", "EQUAL", "create_revision", "0",
                                 "success", "request_put", "key", place_key(self), "lease",
                                 etcd_decimal(session->lease), "request_range", places(self, "ASCEND"), "failure",
                                 "request_range", "key", place_key(self), "request_range", places(self, "ASCEND"));
    struct etcd_answer answer = etcd_ask(lock->env, &session->node, "/v3/kv/txn", question);
    bool is_new = json_is_true(json_object_get(answer.body, "succeeded"));
    const json_t *mine = etcd_first_key(etcd_range_of(answer.body, 0));
    const json_t *first = etcd_first_key(etcd_range_of(answer.body, 1));
    self->revision = is_new ? etcd_revision(answer.body) : etcd_number(mine, "create_revision");
    *is_first = first && etcd_number(first, "create_revision") == self->revision;
    json_decref(answer.body);
    session->is_pending = answer.outcome == OUTCOME_UNKNOWN;
    return answer.outcome;
}

enum outcome etcd_place_look(struct lock *lock, struct etcd_place *self) {
    json_t *question = json_pack("{s:o}", "key", place_key(self));
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", question);
    bool is_there = etcd_first_key(answer.body);
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !is_there ? OUTCOME_REFUSED : answer.outcome;
}

enum outcome etcd_place_is_first(struct lock *lock, struct etcd_place *self) {
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", places(self, "ASCEND"));
    json_t *mine = place_key(self);
    bool is_first = json_equal(json_object_get(etcd_first_key(answer.body), "key"), mine);
    json_decref(mine);
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !is_first ? OUTCOME_REFUSED : answer.outcome;
}

/* --- waiting for the one before --- */

struct predecessor {
    json_t *key;   /* or NULL */
    int64_t since; /* the revision at which it was seen */
};

/* The place right before the client's own. The caller frees the key. */
static enum outcome look_before(struct lock *lock, struct etcd_place *self, struct predecessor *before) {
    json_t *question = places(self, "DESCEND");
    json_object_set_new(question, "max_create_revision", etcd_decimal(self->revision - 1));
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", question);
    before->key = json_incref(json_object_get(etcd_first_key(answer.body), "key"));
    before->since = etcd_revision(answer.body);
    json_decref(answer.body);
    return answer.outcome;
}

/* Whether a line of a watch reports a deletion. */
static bool tells_deletion(const struct env_reply *line) {
    json_t *said = json_loadb(line->text, line->length, 0, NULL);
    const json_t *events = json_object_get(json_object_get(said, "result"), "events"), *event;
    bool deleted = false;
    size_t each;
    json_array_foreach(events, each, event) {
        const char *type = json_string_value(json_object_get(event, "type"));
        deleted |= type && strcmp(type, "DELETE") == 0;
    }
    json_decref(said);
    return deleted;
}

/* Reads lines of a watch. True: one reports a deletion; false: until_ns has passed, or the watch has ended. */
static bool watch_until(struct env *env, int node, int64_t until_ns) {
    for (int64_t left_ns; (left_ns = until_ns - env_mono_ns(env)) > 0;) {
        const struct env_reply *line = env_stream_line(env, node, left_ns / ENV_NS_PER_MS + 1);
        if (line->kind != ENV_REPLY_STRING) return false;
        if (tells_deletion(line)) return true;
    }
    return false;
}

/* Watches the key from the revision at which it was seen, so no change is missed: true when it is deleted. False when
 * the connection ends, or is silent for a lease's time: the caller checks again. */
static bool watch_deletion(struct lock *lock, int node, const struct predecessor *before, int64_t until_ns) {
    struct env *env = lock->env;
    int64_t silent_ns = env_mono_ns(env) + lock->options.lease_ms * ENV_NS_PER_MS;
    json_t *question = json_pack("{s:{s:O,s:o,s:[s]}}", "create_request", "key", before->key, "start_revision",
                                 etcd_decimal(before->since + 1), "filters", "NOPUT");
    char *body = json_dumps(question, JSON_COMPACT);
    json_decref(question);
    if (!body) abort();
    bool deleted = env_stream(env, node, "/v3/watch", body) == OUTCOME_OK &&
                   watch_until(env, node, silent_ns < until_ns ? silent_ns : until_ns);
    env_stream_end(env, node);
    free(body);
    return deleted;
}

enum outcome etcd_place_await(struct lock *lock, struct etcd_place *self, int64_t until_ns) {
    for (;;) {
        struct predecessor before;
        enum outcome outcome = look_before(lock, self, &before);
        bool is_first = !before.key, is_over = env_mono_ns(lock->env) >= until_ns, deleted = false;
        if (outcome == OUTCOME_OK && !is_first && !is_over) {
            env_checkpoint(lock->env, "in-queue");
            deleted = watch_deletion(lock, self->session.node, &before, until_ns);
        }
        json_decref(before.key);
        if (outcome != OUTCOME_OK || is_first) return outcome;
        if (is_over) return OUTCOME_REFUSED;
        if (deleted) env_checkpoint(lock->env, "one-before-gone");
    }
}
