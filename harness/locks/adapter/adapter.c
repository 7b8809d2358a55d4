/* A lock library in another language, in a program that the client hosts: one line of JSON is a request, one the answer
 * (docs/adapters.md). */
#include <stdlib.h>
#include <string.h>

#include "harness/locks/adapter/adapter_talk.h"

/* How long an answer is waited for, in reply limits of a node: a program has to start, and may try again by itself, or
 * wait for the lock without a limit. */
enum { HELLO_LIMITS = 120, ANSWER_LIMITS = 15, PATIENCE_LIMITS = 60, PROTOCOL = 1 };
enum { AGAIN_LEASES = 2, AGAIN_MS = 100 };

static const struct {
    const char *key;
    enum lock_trait trait;
} TRAITS[] = {
    {"lease", LOCK_TRAIT_LEASE}, {"token", LOCK_TRAIT_TOKEN},   {"reentrant", LOCK_TRAIT_REENTRANT},
    {"fair", LOCK_TRAIT_FAIR},   {"renews", LOCK_TRAIT_RENEWS},
};

static enum outcome ask_plainly(struct lock *lock, const char *verb) {
    struct adapter_answer answer = adapter_ask_strictly(lock, verb, NULL, adapter_limit_ms(lock, ANSWER_LIMITS));
    json_decref(answer.body);
    return answer.outcome;
}

/* --- open --- */

static bool can(const json_t *hello, const char *verb) {
    const json_t *operations = json_object_get(hello, "operations");
    for (size_t each = 0; each < json_array_size(operations); each++)
        if (strcmp(json_string_value(json_array_get(operations, each)), verb) == 0) return true;
    return false;
}

/* The driver has checked it before (harness/lockstorm/locks/adapter.py). */
static void hello_take(struct lock *lock, const json_t *hello) {
    struct adapter *self = lock->state;
    lock->traits = 0;
    for (size_t each = 0; each < sizeof TRAITS / sizeof TRAITS[0]; each++)
        if (json_is_true(json_object_get(hello, TRAITS[each].key))) lock->traits |= TRAITS[each].trait;
    lock->capacity = json_is_true(json_object_get(hello, "semaphore")) ? LOCK_CAPACITY_ASKED : 1;
    self->renews = can(hello, "renew");
    self->answers_is_held = can(hello, "is_held");
}

static json_t *nodes_of(const struct lock *lock) {
    json_t *nodes = json_array();
    for (int node = 0; node < env_nodes(lock->env); node++) {
        const char *address = env_node_address(lock->env, node), *port = strrchr(address, ':');
        json_t *where = *address == '/' || !port ? json_pack("{s:s}", "unix", address)
                                                 : json_pack("{s:s%,s:i}", "host", address, (size_t)(port - address),
                                                             "port", atoi(port + 1));
        json_array_append_new(nodes, where);
    }
    return nodes;
}

static enum outcome adapter_open(struct lock *lock) {
    const struct lock_options *options = &lock->options;
    struct adapter_answer hello =
        adapter_ask(lock, "hello", json_pack("{s:i}", "protocol", PROTOCOL), adapter_limit_ms(lock, HELLO_LIMITS));
    if (!hello.body) adapter_give_up(lock, "did not answer", "hello");
    hello_take(lock, hello.body);
    json_decref(hello.body);
    json_t *name = json_stringn(options->resource, options->resource_length);
    if (!name) env_give_up(lock->env, "the name of the resource is not UTF-8, so no adapter can be told");
    json_t *more =
        json_pack("{s:o,s:I,s:I,s:b,s:o}", "resource", name, "lease_ms", (json_int_t)options->lease_ms, "permits",
                  (json_int_t)options->permits, "fixed_lease", options->fixed_lease, "nodes", nodes_of(lock));
    struct adapter_answer opened = adapter_ask_strictly(lock, "open", more, adapter_limit_ms(lock, HELLO_LIMITS));
    json_decref(opened.body);
    return opened.outcome;
}

/* --- the operations --- */

static int64_t token_of(struct lock *lock, const json_t *body) {
    const json_t *token = json_object_get(body, "token");
    bool given = json_is_integer(token) && json_integer_value(token) > 0;
    if (lock->traits & LOCK_TRAIT_TOKEN && !given)
        adapter_give_up(lock, "gives tokens, and gave none with this grant", "");
    return given ? json_integer_value(token) : 0;
}

/* The library states times by the monotonic clock that its program sees. */
static int64_t validity_ns_of(const struct lock *lock, const json_t *body) {
    const json_t *until_ms = json_object_get(body, "valid_until_ms");
    if (!json_is_number(until_ms)) return 0;
    return env_adapter_mono_ns(lock->env, (int64_t)(json_number_value(until_ms) * (double)ENV_NS_PER_MS));
}

static struct lock_grant acquire_once(struct lock *lock, int64_t wait_ms) {
    json_t *more = json_pack("{s:o}", "wait_ms", wait_ms < 0 ? json_null() : json_integer(wait_ms));
    int64_t limit_ms =
        wait_ms < 0 ? adapter_limit_ms(lock, PATIENCE_LIMITS) : wait_ms + adapter_limit_ms(lock, ANSWER_LIMITS);
    struct adapter_answer answer = adapter_ask_strictly(lock, "acquire", more, limit_ms);
    struct lock_grant grant = {.outcome = answer.outcome};
    if (grant.outcome == OUTCOME_OK) {
        grant.token = token_of(lock, answer.body);
        grant.valid_until_ns = validity_ns_of(lock, answer.body);
    }
    json_decref(answer.body);
    return grant;
}

/* A client that waits without a limit asks again when the library has waited for as long as it does by default. */
static struct lock_grant adapter_acquire(struct lock *lock, int64_t wait_ms) {
    int64_t until_ns = env_mono_ns(lock->env) + AGAIN_LEASES * lock->options.lease_ms * ENV_NS_PER_MS;
    struct lock_grant grant = acquire_once(lock, wait_ms);
    while (wait_ms < 0 && grant.outcome == OUTCOME_REFUSED && env_mono_ns(lock->env) < until_ns) {
        env_sleep(lock->env, AGAIN_MS);
        grant = acquire_once(lock, wait_ms);
    }
    return grant;
}

static enum outcome adapter_is_held(struct lock *lock) {
    const struct adapter *self = lock->state;
    return self->answers_is_held ? ask_plainly(lock, "is_held") : OUTCOME_UNKNOWN;
}

/* Of a library that renews by itself the holder can only ask whether that went well. */
static enum outcome adapter_renew(struct lock *lock) {
    const struct adapter *self = lock->state;
    if (self->renews) return ask_plainly(lock, "renew");
    bool expires = lock->traits & LOCK_TRAIT_LEASE && !(lock->traits & LOCK_TRAIT_RENEWS);
    return expires ? OUTCOME_REFUSED : adapter_is_held(lock);
}

static enum outcome adapter_release(struct lock *lock) {
    env_checkpoint(lock->env, "before-release");
    return ask_plainly(lock, "release");
}

const struct lock_type LOCK_ADAPTER = {
    .name = "adapter",
    .state_size = sizeof(struct adapter),
    .open = adapter_open,
    .acquire = adapter_acquire,
    .renew = adapter_renew,
    .release = adapter_release,
    .is_held = adapter_is_held,
};
