/* A queue of keys, each tied to its client's lease, in the order of their revisions: the first one holds the lock. */
#include "harness/locks/etcd/etcd_queue.h"

#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/key.h"

enum { LEASE_PARTS = 3, TRIES = 100 };

/* --- a place in the queue --- */

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

/* Makes the client's place, for a lease that was granted, unless it exists. *is_first: no place is before it. */
static enum outcome etcd_place_take(struct lock *lock, struct etcd_place *self, bool *is_first) {
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

/* Whether it still exists: OK, REFUSED when its lease has ended, UNKNOWN. */
static enum outcome etcd_place_look(struct lock *lock, struct etcd_place *self) {
    json_t *question = json_pack("{s:o}", "key", place_key(self));
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", question);
    bool is_there = etcd_first_key(answer.body);
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !is_there ? OUTCOME_REFUSED : answer.outcome;
}

/* Whether it is the first: OK, REFUSED, UNKNOWN. */
static enum outcome etcd_place_is_first(struct lock *lock, struct etcd_place *self) {
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

/* Returns OK when no place is before it (without checking that it still exists), REFUSED at until_ns, or UNKNOWN.
 * Checkpoints: "in-queue" before each wait, "one-before-gone" after one that a deletion has ended. */
static enum outcome etcd_place_await(struct lock *lock, struct etcd_place *self, int64_t until_ns) {
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

/* --- the lock --- */

static enum outcome watchdog_renew(struct lock *lock, struct env *env) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->place.session, env, &self->watchdog_node);
}

enum outcome etcd_queue_open(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    etcd_session_open(lock, &self->place.session);
    /* A slash ends the prefix, so that no lock's prefix is a prefix of another's. */
    self->place.prefix = key_hexadecimal("", lock->options.resource, lock->options.resource_length, "/");
    self->watchdog.renew = watchdog_renew;
    self->watchdog.period_ms = lock->options.lease_ms / LEASE_PARTS > 0 ? lock->options.lease_ms / LEASE_PARTS : 1;
    return OUTCOME_OK;
}

void etcd_queue_close(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    free(self->place.prefix);
}

/* One place, from queueing to its turn. REFUSED: the wait is over, or the place was lost. */
static enum outcome queue_once(struct lock *lock, int64_t until_ns) {
    struct etcd_queue *self = lock->state;
    const struct etcd_queue_rule *rule = lock->type->variant;
    bool is_first;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its lease is replaced now */
    enum outcome outcome = etcd_lease_grant(lock, &self->place.session);
    if (outcome != OUTCOME_OK) return outcome;
    watchdog_start(&self->watchdog, lock);
    env_checkpoint(lock->env, "before-transaction");
    outcome = etcd_place_take(lock, &self->place, &is_first);
    if (outcome != OUTCOME_OK || is_first) return outcome;
    outcome = etcd_place_await(lock, &self->place, until_ns);
    if (outcome != OUTCOME_OK || rule->is_unchecked) return outcome;
    /* The one before has gone, but so may this client's own place have, when it outlasted its lease while it waited. */
    return etcd_place_look(lock, &self->place);
}

/* A client that has lost its place queues again, behind all others. */
struct lock_grant etcd_queue_acquire(struct lock *lock, int64_t wait_ms) {
    struct etcd_queue *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (int try = 1;; try++) {
        enum outcome outcome = queue_once(lock, until_ns);
        env_checkpoint(lock->env, "after-acquire-reply");
        if (outcome == OUTCOME_OK) return (struct lock_grant){.outcome = outcome, .token = self->place.revision};
        watchdog_stop(&self->watchdog);
        if (outcome == OUTCOME_REFUSED) etcd_lease_revoke(lock, &self->place.session);
        else self->place.session.is_pending = true;
        if (outcome != OUTCOME_REFUSED || try == TRIES || env_mono_ns(lock->env) >= until_ns)
            return (struct lock_grant){.outcome = outcome};
    }
}

enum outcome etcd_queue_renew(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->place.session, lock->env, &self->place.session.node);
}

enum outcome etcd_queue_release(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    env_checkpoint(lock->env, "before-release");
    return etcd_lease_revoke(lock, &self->place.session);
}

enum outcome etcd_queue_is_held(struct lock *lock) {
    return etcd_place_is_first(lock, &((struct etcd_queue *)lock->state)->place);
}

const struct lock_type LOCK_ETCD_QUEUE = {
    .name = "etcd-queue",
    .summary = "a queue of keys on etcd by their revisions; the next one watches the one before, and checks again",
    .explanation =
        "Every client has a lease, which a watchdog in its process keeps alive from the moment it queues, and a key\n"
        "under the lock's prefix that is tied to it. The client with the lowest create revision holds the lock, and\n"
        "that revision is the fencing token. Every other client watches the key right before its own until it is\n"
        "deleted, beginning with the revision at which it saw that key: unlike a message, a watch misses nothing.\n"
        "When its turn comes a client checks that its own place still exists (etcd-queue-unchecked does not); if\n"
        "not, it queues again.\n"
        "Promises: one holder while no client outlasts its lease; grants in the order of arrival; a release wakes\n"
        "one waiter; tokens that rise over crashes, restarts and changes of leader.\n"
        "Costs: 2 requests to acquire, 2 more and a watch to wait, 1 to release, a keepalive every third of the\n"
        "lease; the place of a dead waiter blocks the queue until its lease has ended.\n"
        "Breaks: a holder that is paused past the lease acts beside the next holder; a resource that checks the\n"
        "token refuses it. Without a majority of nodes no client gets the lock, and none keeps it.",
    .source = "etcd clientv3, concurrency.Mutex and Session, as since etcd-io/etcd#11456; Jepsen: etcd 3.4.3, Locks",
    ETCD_QUEUE_FIELDS,
    .variant = &(const struct etcd_queue_rule){.is_unchecked = false},
};
