#include "harness/locks/etcd/etcd_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 100, MS_PER_S = 1000, NUMBER_ROOM = 24, FIRST_SERVER_ERROR = '5' };

void etcd_session_open(struct lock *lock, struct etcd_session *self) {
    self->ttl_s = (lock->options.lease_ms + MS_PER_S - 1) / MS_PER_S;
}

/* --- requests --- */

/* UNKNOWN without an answer, or when the node could not decide (no leader, a time limit). */
static struct etcd_answer answer_of(const struct env_reply *reply) {
    struct etcd_answer answer = {.outcome = OUTCOME_UNKNOWN};
    if (reply->kind == ENV_REPLY_ERROR && reply->text[0] < FIRST_SERVER_ERROR) answer.outcome = OUTCOME_REFUSED;
    if (reply->kind != ENV_REPLY_STRING) return answer;
    answer.body = json_loadb(reply->text, reply->length, 0, NULL);
    if (answer.body) answer.outcome = OUTCOME_OK;
    return answer;
}

/* Asks at least twice, and again for as long as one answer would be waited for: a node that is restarted, or a cluster
 * that elects, answers soon. */
struct etcd_answer etcd_ask(struct env *env, int *node, const char *path, json_t *question) {
    int nodes = env_nodes(env);
    int64_t limit_ms = env_reply_limit_ms(env), until_ns = env_mono_ns(env) + limit_ms * ENV_NS_PER_MS;
    struct etcd_answer answer = {.outcome = OUTCOME_UNKNOWN};
    char *body = json_dumps(question, JSON_COMPACT);
    json_decref(question);
    if (!body) abort();
    for (int try = 0; try < 2 * nodes || env_mono_ns(env) < until_ns; try++) {
        if (try > 0) *node = (*node + 1) % nodes;
        if (try > 0 && try % nodes == 0) env_sleep(env, PAUSE_MS);
        answer = answer_of(env_post(env, *node, limit_ms / nodes, path, body));
        answer.asked_again = try > 0;
        if (answer.outcome != OUTCOME_UNKNOWN) break;
    }
    free(body);
    return answer;
}

/* --- JSON of the gateway --- */

json_t *etcd_bytes(const char *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((length + 2) / 3 * 4 + 1), *end = text;
    if (!text) abort();
    for (size_t at = 0; at < length; at += 3) {
        uint32_t group = 0;
        for (size_t each = 0; each < 3; each++)
            group = group << 8 | (at + each < length ? (unsigned char)bytes[at + each] : 0);
        for (int shift = 18; shift >= 0; shift -= 6) *end++ = digits[group >> shift & 63];
        if (at + 2 >= length) end[-1] = '=';
        if (at + 1 >= length) end[-2] = '=';
    }
    json_t *value = json_stringn(text, (size_t)(end - text));
    free(text);
    return value;
}

json_t *etcd_decimal(int64_t number) {
    char text[NUMBER_ROOM];
    snprintf(text, sizeof text, "%" PRId64, number);
    return json_string(text);
}

int64_t etcd_number(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? strtoll(text, NULL, 10) : 0;
}

int64_t etcd_revision(const json_t *body) {
    return etcd_number(json_object_get(body, "header"), "revision");
}

const json_t *etcd_first_key(const json_t *range) {
    return json_array_get(json_object_get(range, "kvs"), 0);
}

const json_t *etcd_range_of(const json_t *transaction, size_t index) {
    const json_t *responses = json_object_get(transaction, "responses");
    return json_object_get(json_array_get(responses, index), "response_range");
}

/* --- leases --- */

/* A number from 1 to 2^63 - 1. Leases have no names: all clients of a server share their numbers, also those of another
 * run with the same seed. The lock's name tells them apart, so it goes into the number (FNV-1a, 64 bits). */
static int64_t new_lease(struct lock *lock) {
    uint64_t number = env_random(lock->env);
    for (size_t at = 0; at < lock->options.resource_length; at++)
        number = (number ^ (unsigned char)lock->options.resource[at]) * 0x100000001b3u;
    return (int64_t)(number >> 1) | 1;
}

/* The answer that the lease exists already means that an earlier request was carried out. */
enum outcome etcd_lease_grant(struct lock *lock, struct etcd_session *self) {
    if (!self->is_pending) self->lease = new_lease(lock);
    snprintf(self->owner, sizeof self->owner, "%016" PRIx64, (uint64_t)self->lease);
    json_t *question = json_pack("{s:o,s:o}", "ID", etcd_decimal(self->lease), "TTL", etcd_decimal(self->ttl_s));
    struct etcd_answer answer = etcd_ask(lock->env, &self->node, "/v3/lease/grant", question);
    json_decref(answer.body);
    bool has_it = answer.outcome == OUTCOME_REFUSED && (answer.asked_again || self->is_pending);
    return has_it ? OUTCOME_OK : answer.outcome;
}

/* For a lease that has ended etcd answers OK, without a time to live. */
enum outcome etcd_lease_keep(const struct etcd_session *self, struct env *env, int *node) {
    json_t *question = json_pack("{s:o}", "ID", etcd_decimal(self->lease));
    struct etcd_answer answer = etcd_ask(env, node, "/v3/lease/keepalive", question);
    bool lives = etcd_number(json_object_get(answer.body, "result"), "TTL") > 0;
    json_decref(answer.body);
    return answer.outcome == OUTCOME_OK && !lives ? OUTCOME_REFUSED : answer.outcome;
}

enum outcome etcd_lease_revoke(struct lock *lock, struct etcd_session *self) {
    json_t *question = json_pack("{s:o}", "ID", etcd_decimal(self->lease));
    struct etcd_answer answer = etcd_ask(lock->env, &self->node, "/v3/lease/revoke", question);
    json_decref(answer.body);
    self->is_pending = false;
    return answer.outcome == OUTCOME_REFUSED && answer.asked_again ? OUTCOME_UNKNOWN : answer.outcome;
}
