/* A queue of keys, each tied to its client's lease, in the order of their revisions: the first one holds the lock. */
#include "harness/locks/etcd_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct lock_type LOCK_ETCD_QUEUE;

enum { LEASE_PARTS = 3, TRIES = 100 };

/* --- the places --- */

static enum outcome watchdog_renew(struct lock *lock, struct env *env) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->session, env, &self->watchdog_node);
}

/* The name in hexadecimal and a slash, so that no lock's prefix is the beginning of another's. */
enum outcome etcd_queue_open(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    size_t length = lock->options.resource_length;
    etcd_session_open(lock, &self->session);
    self->prefix = malloc(2 * length + sizeof "/");
    if (!self->prefix) abort();
    for (size_t each = 0; each < length; each++)
        sprintf(self->prefix + 2 * each, "%02x", (unsigned)(unsigned char)lock->options.resource[each]);
    strcpy(self->prefix + 2 * length, "/");
    self->watchdog.renew = watchdog_renew;
    self->watchdog.period_ms = lock->options.lease_ms / LEASE_PARTS > 0 ? lock->options.lease_ms / LEASE_PARTS : 1;
    return OUTCOME_OK;
}

void etcd_queue_close(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    free(self->prefix);
}

/* The key of our place. */
static json_t *place_key(const struct etcd_queue *self) {
    json_t *text = json_sprintf("%s%s", self->prefix, self->session.owner);
    json_t *key = etcd_bytes(json_string_value(text), json_string_length(text));
    json_decref(text);
    return key;
}

/* What every range over the places has: from the prefix to what comes after all that begin with it ('0' follows '/'),
 * only the first by this order. */
static json_t *places(const struct etcd_queue *self, const char *order) {
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

/* Makes our place, unless it is there already. *is_first: nobody is before us. */
static enum outcome line_up(struct lock *lock, bool *is_first) {
    struct etcd_queue *self = lock->state;
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
    self->place = is_new ? etcd_revision(answer.body) : etcd_number(mine, "create_revision");
    *is_first = first && etcd_number(first, "create_revision") == self->place;
    json_decref(answer.body);
    session->is_pending = answer.outcome == OUTCOME_UNKNOWN;
    return answer.outcome;
}

/* Whether our place is still there: OK, REFUSED when its lease has ended, UNKNOWN. */
static enum outcome look_for_place(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    json_t *question = json_pack("{s:o}", "key", place_key(self));
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", question);
    bool is_there = etcd_first_key(answer.body);
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !is_there ? OUTCOME_REFUSED : answer.outcome;
}

/* --- waiting for the one before --- */

struct predecessor {
    json_t *key;   /* NULL: there is none */
    int64_t since; /* the revision at which it was seen */
};

/* Who is next before us. The caller frees the key. */
static enum outcome look_before(struct lock *lock, struct predecessor *before) {
    struct etcd_queue *self = lock->state;
    json_t *question = places(self, "DESCEND");
    json_object_set_new(question, "max_create_revision", etcd_decimal(self->place - 1));
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", question);
    before->key = json_incref(json_object_get(etcd_first_key(answer.body), "key"));
    before->since = etcd_revision(answer.body);
    json_decref(answer.body);
    return answer.outcome;
}

/* Whether a line of a watch tells of a deletion. */
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

/* The next lines of a watch, until one tells of a deletion: true; or until_ns, or the end of it. */
static bool watch_until(struct env *env, int node, int64_t until_ns) {
    for (int64_t left_ns; (left_ns = until_ns - env_mono_ns(env)) > 0;) {
        const struct env_reply *line = env_stream_line(env, node, left_ns / ENV_NS_PER_MS + 1);
        if (line->kind != ENV_REPLY_STRING) return false;
        if (tells_deletion(line)) return true;
    }
    return false;
}

/* Watches its key from the revision on at which it was seen, so nothing that happens in between is missed: true when it
 * is deleted. A connection that ends, or says nothing for a lease's time, is no reason to wait on: the caller looks
 * again. */
static bool watch_deletion(struct lock *lock, const struct predecessor *before, int64_t until_ns) {
    struct env *env = lock->env;
    int node = ((struct etcd_queue *)lock->state)->session.node;
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

/* Until nobody is before us: OK; REFUSED when the wait is over. */
static enum outcome wait_for_turn(struct lock *lock, int64_t until_ns) {
    for (;;) {
        struct predecessor before;
        enum outcome outcome = look_before(lock, &before);
        bool is_first = !before.key, is_over = env_mono_ns(lock->env) >= until_ns, deleted = false;
        if (outcome == OUTCOME_OK && !is_first && !is_over) {
            env_checkpoint(lock->env, "in-queue");
            deleted = watch_deletion(lock, &before, until_ns);
        }
        json_decref(before.key);
        if (outcome != OUTCOME_OK || is_first) return outcome;
        if (is_over) return OUTCOME_REFUSED;
        if (deleted) env_checkpoint(lock->env, "one-before-gone");
    }
}

/* --- the lock --- */

/* One place, from lining up to its turn. REFUSED: the wait is over, or the place was lost. */
static enum outcome queue_once(struct lock *lock, int64_t until_ns) {
    struct etcd_queue *self = lock->state;
    bool is_first;
    watchdog_stop(&self->watchdog); /* of a grant that was never released: its lease is about to be forgotten */
    enum outcome outcome = etcd_lease_grant(lock, &self->session);
    if (outcome != OUTCOME_OK) return outcome;
    watchdog_start(&self->watchdog, lock);
    env_checkpoint(lock->env, "before-transaction");
    outcome = line_up(lock, &is_first);
    if (outcome != OUTCOME_OK || is_first) return outcome;
    outcome = wait_for_turn(lock, until_ns);
    return outcome != OUTCOME_OK || self->is_unchecked ? outcome : look_for_place(lock);
}

/* Whoever has lost its place lines up again, behind all others. */
struct lock_grant etcd_queue_acquire(struct lock *lock, int64_t wait_ms) {
    struct etcd_queue *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
    for (int try = 1;; try++) {
        enum outcome outcome = queue_once(lock, until_ns);
        env_checkpoint(lock->env, "after-acquire-reply");
        if (outcome == OUTCOME_OK) return (struct lock_grant){.outcome = outcome, .token = self->place};
        watchdog_stop(&self->watchdog);
        if (outcome == OUTCOME_REFUSED) etcd_lease_revoke(lock, &self->session);
        else self->session.is_pending = true;
        if (outcome != OUTCOME_REFUSED || try == TRIES || env_mono_ns(lock->env) >= until_ns)
            return (struct lock_grant){.outcome = outcome};
    }
}

enum outcome etcd_queue_renew(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    return etcd_lease_keep(&self->session, lock->env, &self->session.node);
}

enum outcome etcd_queue_release(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    watchdog_stop(&self->watchdog);
    env_checkpoint(lock->env, "before-release");
    return etcd_lease_revoke(lock, &self->session);
}

enum outcome etcd_queue_is_held(struct lock *lock) {
    struct etcd_queue *self = lock->state;
    struct etcd_answer answer = etcd_ask(lock->env, &self->session.node, "/v3/kv/range", places(self, "ASCEND"));
    json_t *mine = place_key(self);
    bool is_first = json_equal(json_object_get(etcd_first_key(answer.body), "key"), mine);
    json_decref(mine);
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !is_first ? OUTCOME_REFUSED : answer.outcome;
}

const struct lock_type LOCK_ETCD_QUEUE = {
    .name = "etcd-queue",
    .summary = "a queue of keys on etcd by their revisions; who is next watches the one before, and looks again",
    .explanation =
        "Every client has a lease that a watchdog in its process keeps alive, from its place in the queue on, and a key\n"
        "under the lock's prefix that is tied to it. Who has the lowest create revision holds the lock, and that revision\n"
        "is the fencing token. Everybody else watches the key right before its own until it is deleted, from the revision\n"
        "on at which it was seen: a watch misses nothing, unlike a message. When its turn comes a client looks whether\n"
        "its own place is still there (etcd-queue-unchecked does not); if not, it lines up again.\n"
        "Promises: one holder while nobody outlasts the lease; grants in the order of arrival; a release wakes one\n"
        "waiter; tokens that rise over crashes, restarts and changes of leader.\n"
        "Costs: 2 requests to acquire, 2 more and a watch to wait, 1 to release, a keepalive every third of the lease; the\n"
        "place of a dead waiter holds up the queue until its lease has ended.\n"
        "Breaks: whoever is paused past the lease acts beside the next holder - a resource that looks at the token\n"
        "refuses it. Without a majority of nodes nobody gets it, and nobody keeps it.",
    .source = "etcd clientv3, concurrency.Mutex and Session, as since etcd-io/etcd#11456; Jepsen: etcd 3.4.3, Locks",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN | LOCK_TRAIT_FAIR | LOCK_TRAIT_RENEWS,
    .capacity = 1,
    .waits = LOCK_WAITS_PUSH,
    .service = LOCK_SERVICE_ETCD,
    .state_size = sizeof(struct etcd_queue),
    .open = etcd_queue_open,
    .acquire = etcd_queue_acquire,
    .renew = etcd_queue_renew,
    .release = etcd_queue_release,
    .is_held = etcd_queue_is_held,
    .close = etcd_queue_close,
};
