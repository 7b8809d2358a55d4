/* A key that is created only if it is absent, tied to a lease: etcd's transaction as a lock. */
#include <string.h>

#include "harness/locks/common/poll.h"
#include "harness/locks/etcd/etcd_session.h"

static const struct poll_pace PACE = {.first_ms = 50, .most_ms = 1000, .tries = 100};

static enum outcome etcd_open(struct lock *lock) {
    etcd_session_open(lock, lock->state);
    return OUTCOME_OK;
}

static json_t *etcd_name_of(const struct lock *lock) {
    return etcd_bytes(lock->options.resource, lock->options.resource_length);
}

/* The condition that this key exists and is ours. */
static bool is_mine(const struct etcd_session *self, const json_t *key) {
    json_t *owner = etcd_bytes(self->owner, strlen(self->owner));
    bool mine = key && json_equal(json_object_get(key, "value"), owner);
    json_decref(owner);
    return mine;
}

/* Reads whose the key is: OK ours, with *token; REFUSED another's, or absent (*is_free); UNKNOWN. */
static enum outcome look(struct lock *lock, int64_t *token, bool *is_free) {
    struct etcd_session *self = lock->state;
    struct etcd_answer answer =
        etcd_ask(lock->env, &self->node, "/v3/kv/range", json_pack("{s:o}", "key", etcd_name_of(lock)));
    const json_t *key = etcd_first_key(answer.body);
    bool mine = is_mine(self, key);
    *is_free = answer.outcome == OUTCOME_OK && !key;
    *token = mine ? etcd_number(key, "create_revision") : 0;
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !mine ? OUTCOME_REFUSED : answer.outcome;
}

/* Creates the key if it is absent, else reads whose it is: ours when the transaction was carried out before, without an
 * answer. */
static struct lock_grant create(struct lock *lock) {
    struct etcd_session *self = lock->state;
    json_t *question =
        json_pack("{s:[{s:o,s:s,s:s,s:s}],s:[{s:{s:o,s:o,s:o}}],s:[{s:{s:o}}]}", "compare", "key", etcd_name_of(lock),
                  "target", "CREATE", "result", "EQUAL", "create_revision", "0", "success", "request_put", "key",
                  etcd_name_of(lock), "value", etcd_bytes(self->owner, strlen(self->owner)), "lease",
                  etcd_decimal(self->lease), "failure", "request_range", "key", etcd_name_of(lock));
    struct etcd_answer answer = etcd_ask(lock->env, &self->node, "/v3/kv/txn", question);
    struct lock_grant grant = {.outcome = answer.outcome, .token = etcd_revision(answer.body)};
    if (answer.outcome == OUTCOME_OK && !json_is_true(json_object_get(answer.body, "succeeded"))) {
        const json_t *key = etcd_first_key(etcd_range_of(answer.body, 0));
        grant.outcome = is_mine(self, key) ? OUTCOME_OK : OUTCOME_REFUSED;
        grant.token = grant.outcome == OUTCOME_OK ? etcd_number(key, "create_revision") : 0;
    }
    json_decref(answer.body);
    self->is_pending = grant.outcome == OUTCOME_UNKNOWN;
    return grant;
}

/* A key that an acquire without an answer has left is ours if its lease can be given a full term. */
static struct lock_grant take_up(struct lock *lock, int64_t token) {
    struct etcd_session *self = lock->state;
    struct lock_grant grant = {.outcome = etcd_lease_keep(self, lock->env, &self->node), .token = token};
    self->is_pending = grant.outcome == OUTCOME_UNKNOWN;
    return grant;
}

static struct lock_grant etcd_attempt(struct lock *lock) {
    struct etcd_session *self = lock->state;
    struct lock_grant grant = {.outcome = OUTCOME_UNKNOWN};
    bool is_free, was_pending = self->is_pending;
    grant.outcome = look(lock, &grant.token, &is_free);
    if (is_free) {
        grant.outcome = etcd_lease_grant(lock, self);
        env_checkpoint(lock->env, "before-transaction");
        if (grant.outcome == OUTCOME_OK) grant = create(lock);
        if (grant.outcome == OUTCOME_REFUSED) etcd_lease_revoke(lock, self);
    }
    if (grant.outcome == OUTCOME_OK && (was_pending || !is_free)) grant = take_up(lock, grant.token);
    env_checkpoint(lock->env, "after-acquire-reply");
    return grant;
}

static enum outcome etcd_renew(struct lock *lock) {
    struct etcd_session *self = lock->state;
    return etcd_lease_keep(self, lock->env, &self->node);
}

static enum outcome etcd_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return etcd_lease_revoke(lock, lock->state);
}

static enum outcome etcd_is_held(struct lock *lock) {
    int64_t token;
    bool is_free;
    return look(lock, &token, &is_free);
}

const struct lock_type LOCK_ETCD = {
    .name = "etcd",
    .summary = "a key on etcd that is created only if it is absent, tied to a lease; its revision is the fencing token",
    .explanation =
        "A lease is granted for whole seconds, and a transaction creates the key, with its owner as value, if its\n"
        "create revision is 0. That revision is the fencing token: etcd counts every change, so a later grant has a\n"
        "higher one. A keepalive renews the lease; revoking it releases the lock and removes the key. A client that\n"
        "finds the key polls: 50 ms, doubling to 1 s. A transaction without an answer is sent again: the key's\n"
        "value says who owns it.\n"
        "Promises: one holder while no client outlasts its lease; tokens that rise over crashes, restarts and\n"
        "changes of leader; a lease that is at least as long as asked for: etcd checks twice a second, and after an\n"
        "election every lease has a full term again.\n"
        "Costs: 3 requests to acquire, 1 to release, and the waiters' polls; each is a write to the log of every\n"
        "node.\n"
        "Breaks: a holder that is paused past the lease acts beside the next holder, as with any lease, but a\n"
        "resource that checks the token refuses it. Without a majority of nodes no client gets the lock, and none\n"
        "can renew it.",
    .source = "etcd documentation, Interacting with etcd (leases, transactions); python-etcd3, Lock; Kleppmann 2016",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .poll_ms = 1500,
    .service = LOCK_SERVICE_ETCD,
    .state_size = sizeof(struct etcd_session),
    .open = etcd_open,
    .acquire = poll_acquire,
    .attempt = etcd_attempt,
    .pace = &PACE,
    .renew = etcd_renew,
    .release = etcd_release,
    .is_held = etcd_is_held,
};
