/* lock-adapter [LOCK]: a C lock of the table as an adapter (docs/adapters.md), so that what is asked of a library can
 * be asked of it. An adapter is started without arguments: then the lock is named by the name under which this program
 * was started, a link to it.
 *
 * Exit status: 0 when its input has ended; 2 there is no such lock, or it cannot be hosted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "harness/lock_adapter/call_thread.h"
#include "harness/locks/common/describe_lock.h"

enum { ADAPTER_THREADS = 4, NEWEST = 2, STATUS_BAD = 2 };

struct lock_program {
    struct lock_site site;
    bool opened;
    struct call_thread threads[ADAPTER_THREADS];
    bool running[ADAPTER_THREADS];
};

/* --- what the lock answers to `hello` (docs/adapters.md) --- */

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

/* Why the lock cannot be hosted, a sentence without its name; NULL: it can. */
static const char *adapter_excludes(const struct lock_type *type) {
    if (type->service != LOCK_SERVICE_REDIS) return "lives on another service than Redis, and only those are hosted";
    if (type->replicas > 0) return "needs replicas, which a search does not have";
    if (type->once) return "grants each item once, which is no lock that is released";
    return NULL;
}

static json_t *leases_of(const struct lock_type *type) {
    if (!(type->traits & LOCK_TRAIT_LEASE)) return json_pack("[s]", "endless");
    return type->traits & LOCK_TRAIT_RENEWS ? json_pack("[s,s]", "given", "renewed") : json_pack("[s]", "given");
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
    json_t *waits = json_pack("[s]", "none");
    words_add(waits, type->waits != LOCK_WAITS_NOT, "time");
    json_t *form = json_pack("{s:s,s:o,s:o}", "form", "acquire", "wait", waits, "lease", leases_of(type));
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

/* The traits of version 1, and what version 2 adds. */
static json_t *adapter_hello(const struct lock_type *type, int protocol) {
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

static json_t *hello(const struct lock_program *program, const json_t *question) {
    json_int_t asked = json_integer_value(json_object_get(question, "protocol"));
    json_t *answer = adapter_hello(program->site.type, asked < NEWEST ? 1 : NEWEST);
    json_object_set_new(answer, "outcome", json_string("ok"));
    return answer;
}

/* --- questions --- */

static json_t *lock_adapter_open(struct lock_program *program, const json_t *question) {
    struct lock_site *site = &program->site;
    const json_t *nodes = json_object_get(question, "nodes");
    const char *resource = json_string_value(json_object_get(question, "resource"));
    if (program->opened || !resource) return answer_make(OUTCOME_REFUSED, "it is open already, or names no resource");
    for (size_t each = 0; each < json_array_size(nodes) && each < ENV_LIVE_NODES; each++) {
        const char *path = json_string_value(json_object_get(json_array_get(nodes, each), "unix"));
        if (!path) return answer_make(OUTCOME_REFUSED, "a node has no unix socket");
        site->nodes[site->node_count++] = strdup(path);
    }
    site->resource = strdup(resource);
    site->lease_ms = json_integer_value(json_object_get(question, "lease_ms"));
    site->permits = json_integer_value(json_object_get(question, "permits"));
    site->fixed_lease = json_is_true(json_object_get(question, "fixed_lease"));
    program->opened = true;
    return answer_make(OUTCOME_OK, NULL);
}

/* A C thread cannot be ended with a call under way. */
static json_t *lock_adapter_forget(struct lock_program *program) {
    for (int each = 0; each < ADAPTER_THREADS; each++)
        if (program->running[each] && call_thread_is_busy(&program->threads[each]))
            return answer_make(OUTCOME_REFUSED, "a call is under way");
    for (int each = 0; each < ADAPTER_THREADS; each++) {
        if (program->running[each]) call_thread_end(&program->threads[each]);
        program->running[each] = false;
    }
    return answer_make(OUTCOME_OK, NULL);
}

/* The answer, or NULL: a thread will answer it. */
static json_t *give(struct lock_program *program, json_t *question) {
    const json_t *number = json_object_get(question, "thread");
    json_int_t thread = json_is_integer(number) ? json_integer_value(number) - 1 : 0;
    if (!program->opened) return answer_make(OUTCOME_REFUSED, "open comes first");
    if (thread < 0 || thread >= ADAPTER_THREADS) return answer_make(OUTCOME_REFUSED, "there is no such thread");
    struct call_thread *own = &program->threads[thread];
    if (!program->running[thread] && !call_thread_begin(own, &program->site))
        return answer_make(OUTCOME_REFUSED, "a thread cannot be started");
    program->running[thread] = true;
    json_incref(question);
    if (call_thread_give(own, question)) return NULL;
    json_decref(question);
    return answer_make(OUTCOME_REFUSED, "too many calls wait for this thread");
}

static void lock_adapter_hear(struct lock_program *program, json_t *question) {
    const char *verb = json_string_value(json_object_get(question, "op"));
    json_t *answer = NULL;
    if (!verb) answer = answer_make(OUTCOME_REFUSED, "the question has no op");
    else if (strcmp(verb, "hello") == 0) answer = hello(program, question);
    else if (strcmp(verb, "open") == 0) answer = lock_adapter_open(program, question);
    else if (strcmp(verb, "forget") == 0) answer = lock_adapter_forget(program);
    else if (strcmp(verb, "cancel") == 0) answer = answer_make(OUTCOME_REFUSED, "a call cannot be cancelled");
    else answer = give(program, question);
    if (answer) answer_write(question, answer);
}

static const struct lock_type *type_named(const char *name) {
    const struct lock_type *type = lock_find(name);
    const char *why = type ? adapter_excludes(type) : "is no lock of the table";
    if (why) fprintf(stderr, "lock-adapter: error: %s %s\n", name, why);
    return why ? NULL : type;
}

int main(int argc, char **argv) {
    static struct shared_page page = {.version = SHARED_PAGE_VERSION, .time = HISTORY_TIME_REAL};
    static struct lock_program program;
    const char *slash = strrchr(argv[0], '/');
    program.site.type = type_named(argc > 1 ? argv[1] : slash ? slash + 1 : argv[0]);
    program.site.page = &page;
    if (!program.site.type || getrandom(&page.seed, sizeof page.seed, 0) != sizeof page.seed) return STATUS_BAD;
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
        json_t *question = json_loadb(line, (size_t)length, 0, NULL);
        if (!json_is_object(question)) break;
        lock_adapter_hear(&program, question);
        json_decref(question);
    }
    free(line);
    return EXIT_SUCCESS; /* with its threads: a program may be ended at any moment */
}
