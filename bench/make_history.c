/* make_history PATH RECORDS: writes a history of a correct lock with fencing tokens under load, in which every checker
 * has work and finds no violation. Eight clients take turns in a random order; each reads a counter
 * under the lock, writes the sum and releases; all the others have their acquire in flight meanwhile.
 *
 * Exit status: 0; 2 bad usage or no room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history.h"
#include "harness/scheduler/clock.h"
#include "harness/scheduler/random.h"

enum { CLIENTS = 8, LEASE_MS = 30000, TRAIT_LEASE_AND_TOKEN = 3, STEP_NS = 20000 };

struct scribe {
    struct history *history;
    struct random random;
    uint64_t left; /* records still to be written */
    int64_t mono_ns;
    uint32_t store, resource, clients[CLIENTS];
    uint32_t op[CLIENTS];
    int64_t token, value;
};

/* Appends unless all are written; returns the index. */
static uint32_t append(struct scribe *scribe, struct history_record record) {
    if (scribe->left == 0) return 0;
    scribe->left--;
    scribe->mono_ns += 1 + (int64_t)random_below(&scribe->random, STEP_NS);
    record.mono_ns = scribe->mono_ns;
    record.wall_ns = CLOCK_EPOCH_NS + scribe->mono_ns;
    return (uint32_t)history_append(scribe->history, &record);
}

static uint32_t name(struct scribe *scribe, const char *text) {
    scribe->left -= 2; /* a text's head and one chunk */
    return history_text(scribe->history, text, strlen(text), scribe->mono_ns, CLOCK_EPOCH_NS);
}

static void ask(struct scribe *scribe, int client) {
    append(scribe, (struct history_record){.kind = HISTORY_ACQUIRE_INVOKE,
                                           .actor = scribe->clients[client],
                                           .name = scribe->resource,
                                           .op = ++scribe->op[client],
                                           .value = -1});
}

static void open_lock(struct scribe *scribe) {
    char text[32];
    append(scribe, (struct history_record){.kind = HISTORY_NOTE}); /* index 0 is never a name */
    scribe->store = name(scribe, "store");
    scribe->resource = name(scribe, "account");
    for (int client = 0; client < CLIENTS; client++) {
        snprintf(text, sizeof text, "client-%d", client + 1);
        scribe->clients[client] = name(scribe, text);
        append(scribe, (struct history_record){.kind = HISTORY_LOCK_OPEN,
                                               .outcome = OUTCOME_OK,
                                               .actor = scribe->clients[client],
                                               .name = scribe->resource,
                                               .value = LEASE_MS,
                                               .extra = TRAIT_LEASE_AND_TOKEN,
                                               .token = 1});
    }
    for (int client = 0; client < CLIENTS; client++) ask(scribe, client);
}

/* One access to the counter: the client's invocation, the store's record, the client's return. */
static void use_store(struct scribe *scribe, int client, uint32_t grant, bool write) {
    int64_t version = scribe->token - 1, after = write ? version + 1 : version;
    struct history_record record = {.kind = write ? HISTORY_WRITE_INVOKE : HISTORY_READ_INVOKE,
                                    .object = HISTORY_OBJECT_COUNTER,
                                    .actor = scribe->clients[client],
                                    .op = ++scribe->op[client],
                                    .grant = grant,
                                    .token = scribe->token,
                                    .value = write ? scribe->value + 1 : 0,
                                    .extra = write ? version : 0};
    append(scribe, record);
    scribe->value += write;
    record.outcome = OUTCOME_OK;
    record.value = scribe->value;
    record.extra = version;
    struct history_record stored = record;
    stored.kind = write ? HISTORY_STORE_WRITE : HISTORY_STORE_READ;
    stored.actor = scribe->store;
    stored.name = scribe->clients[client];
    append(scribe, stored);
    record.kind = write ? HISTORY_WRITE_RETURN : HISTORY_READ_RETURN;
    record.extra = after;
    append(scribe, record);
}

static void take_turn(struct scribe *scribe, int client) {
    struct history_record record = {.kind = HISTORY_ACQUIRE_RETURN,
                                    .outcome = OUTCOME_OK,
                                    .actor = scribe->clients[client],
                                    .name = scribe->resource,
                                    .op = scribe->op[client],
                                    .token = ++scribe->token};
    uint32_t grant = append(scribe, record);
    use_store(scribe, client, grant, false);
    use_store(scribe, client, grant, true);
    record.kind = HISTORY_RELEASE_INVOKE;
    record.outcome = OUTCOME_UNKNOWN;
    record.op = ++scribe->op[client];
    record.grant = grant;
    append(scribe, record);
    record.kind = HISTORY_RELEASE_RETURN;
    record.outcome = OUTCOME_OK;
    append(scribe, record);
    ask(scribe, client);
}

int main(int argc, char **argv) {
    uint64_t records = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (records < 100 || records > UINT32_MAX)
        return fprintf(stderr, "usage: make_history PATH RECORDS (at least 100)\n"), 2;
    struct history_error error;
    struct history_settings settings = {.time = HISTORY_TIME_VIRTUAL, .seed = 1, .capacity = records};
    struct scribe scribe = {.random = {.state = settings.seed}, .left = records};
    bool made = history_create(argv[1], &settings, &error);
    scribe.history = made ? history_open(argv[1], &error) : NULL;
    if (!scribe.history) return fprintf(stderr, "make_history: %s\n", error.text), 2;
    open_lock(&scribe);
    while (scribe.left > 0) take_turn(&scribe, (int)random_below(&scribe.random, CLIENTS));
    history_end(scribe.history);
    history_close(scribe.history);
    return 0;
}
