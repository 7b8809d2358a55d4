#include "checkers/promises/promise_pass.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool promise_pass_open(struct promise_pass *pass, const struct library_facts *facts, const struct call_event *events,
                       size_t count) {
    size_t room = count ? count : 1;
    *pass = (struct promise_pass){.facts = facts, .events = events, .count = count};
    pass->calls = calloc(room, sizeof *pass->calls);
    pass->clients = calloc(room, sizeof *pass->clients);
    pass->owners = calloc(room, sizeof *pass->owners);
    pass->resources = calloc(room, sizeof *pass->resources);
    pass->disturbances = calloc(room, sizeof *pass->disturbances);
    return pass->calls && pass->clients && pass->owners && pass->resources && pass->disturbances;
}

void promise_pass_close(struct promise_pass *pass) {
    free(pass->calls);
    free(pass->clients);
    free(pass->owners);
    free(pass->resources);
    free(pass->disturbances);
}

struct promise_client *client_of(struct promise_pass *pass, int number) {
    for (uint32_t at = 0; at < pass->client_count; at++)
        if (pass->clients[at].client == number) return &pass->clients[at];
    assert(pass->client_count < pass->count);
    struct promise_client *client = &pass->clients[pass->client_count++];
    *client = (struct promise_client){.client = number,
                                      .ended_ns = PROMISE_ALWAYS,
                                      .lost_message = pass->servers_lost,
                                      .late_release_ns = INT64_MIN,
                                      .late_command_ns = pass->servers_lost ? PROMISE_ALWAYS : INT64_MIN};
    for (int node = 0; node < PROMISE_NODES_MOST; node++) client->executed_ns[node] = INT64_MIN;
    return client;
}

struct promise_resource *resource_of(struct promise_pass *pass, int number) {
    for (uint32_t at = 0; at < pass->resource_count; at++)
        if (pass->resources[at].resource == number) return &pass->resources[at];
    assert(pass->resource_count < pass->count);
    struct promise_resource *resource = &pass->resources[pass->resource_count++];
    *resource = (struct promise_resource){
        .resource = number, .absent_ns = INT64_MIN, .woken_ns = INT64_MIN, .idle_ns = PROMISE_ALWAYS};
    return resource;
}

struct promise_owner *owner_of(struct promise_pass *pass, const struct call *call) {
    struct promise_client *client = client_of(pass, call->client);
    int thread = pass->facts->owner == OWNER_OBJECT ? 0 : call->thread;
    int lock = pass->facts->owner == OWNER_THREAD ? 0 : call->lock;
    for (struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        if (each->client == client && each->thread == thread && each->lock == lock && each->resource == call->resource)
            return each;
    }
    assert(pass->owner_count < pass->count);
    struct promise_owner *owner = &pass->owners[pass->owner_count++];
    *owner = (struct promise_owner){
        .thread = thread, .lock = lock, .resource = call->resource, .client = client, .touched_ns = INT64_MIN};
    return owner;
}

void promise_break(struct promise_pass *pass, enum promise promise, uint32_t other, int64_t expected_ms,
                   int64_t found_ms, const char *format, ...) {
    if (pass->findings->broken_count == PROMISES_SHOWN) return;
    struct broken_promise *broken = &pass->findings->broken[pass->findings->broken_count++];
    *broken = (struct broken_promise){
        .promise = promise, .event = pass->now, .other = other, .expected_ms = expected_ms, .found_ms = found_ms};
    va_list values;
    va_start(values, format);
    vsnprintf(broken->sentence, sizeof broken->sentence, format, values);
    va_end(values);
}

void promise_excuse(struct promise_pass *pass, uint32_t other, const char *format, ...) {
    if (pass->findings->excused_count == PROMISES_SHOWN) return;
    struct broken_promise *excused = &pass->findings->excused[pass->findings->excused_count++];
    *excused = (struct broken_promise){.promise = PROMISE_MUTUAL_EXCLUSION, .event = pass->now, .other = other};
    va_list values;
    va_start(values, format);
    vsnprintf(excused->sentence, sizeof excused->sentence, format, values);
    va_end(values);
}

struct caller_name caller_name_of(const struct call *call) {
    struct caller_name name;
    snprintf(name.text, sizeof name.text, "client-%d (thread-%d, lock-%d)", call->client + 1, call->thread + 1,
             call->lock + 1);
    return name;
}

const char *mode_text(enum call_mode mode) {
    static const char *const NAMES[CALL_MODES] = {"exclusive", "read", "write", "permit"};
    return NAMES[mode];
}
