#include "harness/lock_adapter/adapter_hello.h"

#include <stdlib.h>
#include <string.h>

#include "harness/locks/common/describe_lock.h"

/* By the beginning of the lock's name, the first line that fits: */
static const struct {
    const char *name;
    const char *lease_key; /* where the remaining time of a lease is found; NULL: no key of one lock has the lease */
    const char *keeps[2];  /* what a right lock leaves at the server */
    int watchdog_divisor;  /* 0: the usual one */
    bool unstated;         /* it needs several nodes, and its grants do not say until when they are valid */
    bool parts;            /* a waiter may hold some of what it is made of */
} KEYS[] = {
    {.name = "blpop-", .lease_key = "lock:{resource}", .watchdog_divisor = 1},
    {.name = "blpop", .lease_key = "{resource}", .keeps = {"signal:{resource}"}},
    {.name = "fenced", .lease_key = "{resource}", .keeps = {"redisson_lock_token:{{resource}}"}},
    {.name = "multi", .lease_key = "{{resource}}:1", .parts = true},
    {.name = "permit-semaphore", .keeps = {"{resource}", "{{resource}}:*"}},
    {.name = "redlock-naive", .lease_key = "{resource}", .unstated = true},
    {.name = "semaphore", .keeps = {"{resource}"}},
    {.name = "set-nx-px-fenced", .lease_key = "{resource}", .keeps = {"{resource}:token"}},
    {.name = "sharded-spin"},
    {.name = "", .lease_key = "{resource}"},
};

const char *adapter_excludes(const struct lock_type *type) {
    if (type->service != LOCK_SERVICE_REDIS) return "lives on another service than Redis, and only those are hosted";
    if (type->replicas > 0) return "needs replicas, which a search does not have";
    if (type->once) return "grants each item once, which is no lock that is released";
    return NULL;
}

static json_t *leases_of(const struct lock_type *type) {
    if (!(type->traits & LOCK_TRAIT_LEASE)) return json_pack("[s]", "endless");
    return type->traits & LOCK_TRAIT_RENEWS ? json_pack("[s,s]", "given", "renewed") : json_pack("[s]", "given");
}

static json_t *waits_of(const struct lock_type *type) {
    return type->waits == LOCK_WAITS_NOT ? json_pack("[s]", "none") : json_pack("[s,s]", "none", "time");
}

static void words_add(json_t *list, bool applies, const char *word) {
    if (applies) json_array_append_new(list, json_string(word));
}

static json_t *operations_of(const struct lock_type *type, int protocol) {
    json_t *operations = json_array();
    words_add(operations, type->renew != NULL, "renew");
    words_add(operations, type->is_held != NULL, "is_held");
    words_add(operations, type->traits & LOCK_TRAIT_TOKEN && protocol > 1, "token");
    return operations;
}

static json_t *hello_of_calls(const struct lock_type *type) {
    size_t place = 0;
    while (strncmp(KEYS[place].name, type->name, strlen(KEYS[place].name)) != 0) place++;
    json_t *keeps = json_array(), *reenters = json_array();
    for (size_t each = 0; each < 2; each++) words_add(keeps, KEYS[place].keeps[each] != NULL, KEYS[place].keeps[each]);
    words_add(reenters, type->traits & LOCK_TRAIT_REENTRANT, "same");
    json_t *form = json_pack("{s:s,s:o,s:o}", "form", "acquire", "wait", waits_of(type), "lease", leases_of(type));
    json_t *more =
        json_pack("{s:i,s:s,s:[o],s:[s],s:[s],s:o,s:o}", "threads", ADAPTER_THREADS, "owner", "thread-object", "forms",
                  form, "modes", type->capacity == LOCK_CAPACITY_ASKED ? "permits" : "exclusive", "of_object",
                  "lease_ms", "keeps", keeps, "reenters", reenters);
    json_object_set_new(more, "validity", json_boolean(type->nodes > 1 && !KEYS[place].unstated));
    json_object_set_new(more, "parts", json_boolean(KEYS[place].parts));
    bool has_key = KEYS[place].lease_key && type->traits & LOCK_TRAIT_LEASE;
    if (has_key) json_object_set_new(more, "lease_key", json_string(KEYS[place].lease_key));
    if (KEYS[place].watchdog_divisor)
        json_object_set_new(more, "watchdog_divisor", json_integer(KEYS[place].watchdog_divisor));
    return more;
}

json_t *adapter_hello(const struct lock_type *type, int protocol) {
    static const char *const SAME[] = {"lease", "token", "reentrant", "fair", "renews", "waits", "nodes", "source"};
    json_t *hello = json_pack("{s:i,s:s,s:b,s:o}", "protocol", protocol, "name", type->name, "semaphore",
                              type->capacity == LOCK_CAPACITY_ASKED, "operations", operations_of(type, protocol));
    json_t *described = describe_lock(type);
    if (!described) abort();
    for (size_t each = 0; each < sizeof SAME / sizeof SAME[0]; each++)
        json_object_set(hello, SAME[each], json_object_get(described, SAME[each]));
    json_decref(described);
    if (protocol > 1) {
        json_t *more = hello_of_calls(type);
        json_object_update(hello, more);
        json_decref(more);
    }
    return hello;
}
