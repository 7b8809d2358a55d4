/* A plug-in for tests: a key on etcd that is created if it is absent, tied to a lease of this life, and its mistake:
 *   FINDS_OLD  a client is named after its host, so it takes the key of its earlier life for its own: that key is tied
 * to the lease of the earlier life, which nobody keeps alive */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_name.h"
#include "lockstorm.h"

enum { POLL_MS = 50, MS_PER_S = 1000, QUESTION_ROOM = 512 };

#define KEY "cGxhbnRlZA==" /* "planted", in base64 as the gateway wants it */

struct etcd_lock {
    int64_t lease;
    char owner[17]; /* also valid base64 */
};

static const struct env_reply *ask(struct lock *lock, const char *path, const char *question) {
    return env_post(lock->env, 0, env_reply_limit_ms(lock->env), path, question);
}

/* The number after a name in an answer; 0: it is not there. */
static int64_t number_after(const struct env_reply *answer, const char *name) {
    const char *at = strstr(answer->text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static enum outcome lease_grant(struct lock *lock) {
    struct etcd_lock *self = lock->state;
    char question[QUESTION_ROOM];
    self->lease = (int64_t)(env_random(lock->env) >> 1) | 1;
    snprintf(question, sizeof question, "{\"ID\":\"%" PRId64 "\",\"TTL\":\"%" PRId64 "\"}", self->lease,
             (lock->options.lease_ms + MS_PER_S - 1) / MS_PER_S);
    return ask(lock, "/v3/lease/grant", question)->kind == ENV_REPLY_STRING ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static enum outcome lease_revoke(struct lock *lock) {
    const struct etcd_lock *self = lock->state;
    char question[QUESTION_ROOM];
    snprintf(question, sizeof question, "{\"ID\":\"%" PRId64 "\"}", self->lease);
    const struct env_reply *answer = ask(lock, "/v3/lease/revoke", question);
    if (answer->kind == ENV_REPLY_STRING) return OUTCOME_OK;
    return answer->kind == ENV_REPLY_ERROR ? OUTCOME_REFUSED : OUTCOME_UNKNOWN;
}

/* Creates the key, or finds that it is this owner's already. */
static struct lock_grant attempt(struct lock *lock) {
    const struct etcd_lock *self = lock->state;
    char question[QUESTION_ROOM], mine[32];
    snprintf(question, sizeof question,
             "{\"compare\":[{\"key\":\"" KEY
             "\",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
             "\"success\":[{\"request_put\":{\"key\":\"" KEY "\",\"value\":\"%s\",\"lease\":\"%" PRId64 "\"}}],"
             "\"failure\":[{\"request_range\":{\"key\":\"" KEY "\"}}]}",
             self->owner, self->lease);
    snprintf(mine, sizeof mine, "\"value\":\"%s\"", self->owner);
    const struct env_reply *answer = ask(lock, "/v3/kv/txn", question);
    if (answer->kind != ENV_REPLY_STRING) return (struct lock_grant){.outcome = OUTCOME_UNKNOWN};
    if (strstr(answer->text, "\"succeeded\":true"))
        return (struct lock_grant){.outcome = OUTCOME_OK, .token = number_after(answer, "\"revision\":\"")};
    if (!strstr(answer->text, mine)) return (struct lock_grant){.outcome = OUTCOME_REFUSED};
    return (struct lock_grant){.outcome = OUTCOME_OK, .token = number_after(answer, "\"create_revision\":\"")};
}

static struct lock_grant acquire(struct lock *lock, int64_t wait_ms) {
    struct etcd_lock *self = lock->state;
    int64_t until_ns = wait_ms < 0 ? INT64_MAX : env_mono_ns(lock->env) + wait_ms * ENV_NS_PER_MS;
#ifdef FINDS_OLD
    unsigned long long who = host_name();
#else
    unsigned long long who = env_random(lock->env);
#endif
    snprintf(self->owner, sizeof self->owner, "%016llx", who);
    for (;;) {
        struct lock_grant grant = {.outcome = lease_grant(lock)};
        if (grant.outcome == OUTCOME_OK) grant = attempt(lock);
        if (grant.outcome != OUTCOME_REFUSED) return grant;
        (void)lease_revoke(lock); /* without an answer it ends by itself, with nothing tied to it */
        if (env_mono_ns(lock->env) >= until_ns) return grant;
        env_sleep(lock->env, POLL_MS);
    }
}

const unsigned lockstorm_lock_abi = LOCKSTORM_LOCK_ABI;
const struct lock_type lockstorm_lock = {
    .name = "planted-etcd",
    .summary = "a key on etcd, tied to a lease",
    .traits = LOCK_TRAIT_LEASE | LOCK_TRAIT_TOKEN,
    .capacity = 1,
    .waits = LOCK_WAITS_POLLING,
    .service = LOCK_SERVICE_ETCD,
    .poll_ms = POLL_MS,
    .state_size = sizeof(struct etcd_lock),
    .acquire = acquire,
    .release = lease_revoke,
};
