/* lock-adapter [LOCK]: a C lock of the table as an adapter (docs/adapters.md), so that what is asked of a library can
 * be asked of it. An adapter is started without arguments: then the lock is named by the name under which this program
 * was started, a link to it.
 *
 * Exit status: 0 when its input has ended; 2 there is no such lock, or it cannot be hosted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "harness/lock_adapter/adapter_hello.h"
#include "harness/lock_adapter/call_thread.h"

enum { NEWEST = 2, STATUS_BAD = 2 };

struct lock_program {
    struct lock_site site;
    bool opened;
    struct call_thread threads[ADAPTER_THREADS];
    bool running[ADAPTER_THREADS];
};

static json_t *hello(const struct lock_program *program, const json_t *question) {
    json_int_t asked = json_integer_value(json_object_get(question, "protocol"));
    json_t *answer = adapter_hello(program->site.type, asked < NEWEST ? 1 : NEWEST);
    json_object_set_new(answer, "outcome", json_string("ok"));
    return answer;
}

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
