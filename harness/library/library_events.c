#include "harness/library/library_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"
#include "harness/scheduler/grown.h"

uint32_t library_event_add(struct library_world *world, struct call_event event) {
    world->events = grown(world->events, world->event_count + 1, &world->event_room, sizeof *world->events);
    event.at_ns = shared_page_mono_ns(world->page) - world->began_ns;
    world->events[world->event_count] = event;
    return (uint32_t)world->event_count++;
}

const struct planned_call *library_next_call(const struct library_world *world, int client, int thread) {
    const struct workload_thread *calls = &world->workload.threads[workload_thread_number(client, thread)];
    int next = world->clients[client].threads[thread].next;
    return next < calls->count ? &calls->calls[next] : NULL;
}

/* The line of a thread's next call in the workload, from 1. The first line may be that of the settings. */
static int call_place(const struct library_world *world, int client, int thread) {
    const struct workload *workload = &world->workload;
    int place = (workload->settings[0] != '\0') + world->clients[client].threads[thread].next + 1;
    for (int each = 0; each < workload_thread_number(client, thread); each++) place += workload->threads[each].count;
    return place;
}

void library_ask_note(struct library_world *world, int client, int thread, const struct call *call) {
    struct library_thread *state = &world->clients[client].threads[thread];
    state->asked = true;
    state->messages = 0;
    state->ask = library_event_add(
        world, (struct call_event){
                   .kind = EVENT_ASK, .asked = *call, .place = call_place(world, client, thread), .client = client});
    state->asked_late_ns = hosted_late_ns(&world->clients[client].program);
}

const char *library_resource_name(int resource, char name[OFFER_NAME]) {
    if (resource == 0) snprintf(name, OFFER_NAME, "account");
    else snprintf(name, OFFER_NAME, "account-%d", resource + 1);
    return name;
}

int library_resource_number(const char *name) {
    char each[OFFER_NAME];
    for (int resource = 0; resource < LIBRARY_RESOURCES; resource++)
        if (strcmp(name, library_resource_name(resource, each)) == 0) return resource;
    return -1;
}

/* The template's {resource} becomes the resource's name. */
static void key_write(const char *template, int resource, char key[2 * OFFER_NAME]) {
    static const char PLACE[] = "{resource}";
    char name[OFFER_NAME];
    const char *at = strstr(template, PLACE);
    library_resource_name(resource, name);
    if (!at) {
        snprintf(key, 2 * OFFER_NAME, "%s", template);
        return;
    }
    snprintf(key, 2 * OFFER_NAME, "%.*s%s%s", (int)(at - template), template, name, at + sizeof PLACE - 1);
}

/* The number of resources that calls name. */
static int resources_of(const struct workload *workload) {
    int resources = 1;
    for (int thread = 0; thread < WORKLOAD_THREADS_ALL; thread++)
        for (int each = 0; each < workload->threads[thread].count; each++) {
            int resource = workload->threads[thread].calls[each].call.resource;
            if (resource >= resources) resources = resource + 1;
        }
    return resources;
}

void library_leases_note(struct library_world *world) {
    char key[2 * OFFER_NAME];
    if (!world->offer.lease_key[0]) return;
    for (int resource = 0; resource < resources_of(&world->workload); resource++) {
        key_write(world->offer.lease_key, resource, key);
        for (int node = 0; node < world->settings.nodes; node++) {
            struct library_server *server = &world->servers[node];
            if (world->down[node]) continue;
            int64_t left_ms = server->kind->left_ms ? server->kind->left_ms(server, key) : KEY_ELSEWHERE;
            if (left_ms == KEY_ELSEWHERE) continue;
            library_event_add(world, (struct call_event){.kind = EVENT_LEASE,
                                                         .resource = resource,
                                                         .remaining_ms = left_ms,
                                                         .client = ANY_SERVER,
                                                         .node = library_place(world, node)});
        }
    }
}

/* When the key ends, in whole ms, as servers reckon. */
static int64_t key_end_ns(const struct library_world *world, struct library_server *server, int resource) {
    char key[2 * OFFER_NAME];
    key_write(world->offer.lease_key, resource, key);
    int64_t left_ms = server->kind->left_ms(server, key);
    if (left_ms == LEASE_WITHOUT_END) return INT64_MAX;
    if (left_ms <= 0) return left_ms == KEY_ELSEWHERE ? KEY_ELSEWHERE : 0;
    return (shared_page_mono_ns(world->page) / CLOCK_NS_PER_MS + left_ms) * CLOCK_NS_PER_MS;
}

void library_longer_note(struct library_world *world, struct library_server *server) {
    struct call_event *executed = &world->events[world->event_count - 1];
    const struct library_facts *facts = &world->offer.facts;
    int64_t now_ns = shared_page_mono_ns(world->page);
    if (!world->offer.lease_key[0] || facts->nodes > 1 || facts->parts || !server->kind->left_ms) return;
    for (int resource = resources_of(&world->workload) - 1; resource >= 0; resource--) {
        int64_t was_ns = world->key_ends_ns[resource], is_ns = key_end_ns(world, server, resource);
        if (is_ns == KEY_ELSEWHERE) continue;
        world->key_ends_ns[resource] = is_ns;
        if (was_ns <= now_ns) was_ns = 0;
        if (is_ns <= was_ns) continue;
        executed->resource = resource;
        executed->makes = was_ns == 0;
        int64_t from_ns = was_ns ? was_ns : now_ns;
        executed->longer_ms = is_ns == INT64_MAX ? LEASE_WITHOUT_END : (is_ns - from_ns) / CLOCK_NS_PER_MS;
    }
}

/* The resource whose name occurs in this name; the first resource's occurs in all others. */
static int resource_in(const char *name) {
    char resource[OFFER_NAME];
    for (int each = LIBRARY_RESOURCES - 1; each > 0; each--)
        if (strstr(name, library_resource_name(each, resource))) return each;
    return 0;
}

static bool is_kept(const struct library_world *world, const char *name) {
    char key[2 * OFFER_NAME];
    for (int each = 0; each < world->offer.keep_count; each++)
        for (int resource = 0; resource < LIBRARY_RESOURCES; resource++) {
            key_write(world->offer.keeps[each], resource, key);
            size_t length = strlen(key);
            if (length > 0 && key[length - 1] == '*' ? strncmp(name, key, length - 1) == 0 : strcmp(name, key) == 0)
                return true;
        }
    return false;
}

static void left_note(void *hearer, const char *what, const char *name, int64_t remaining_ms) {
    struct library_world *world = hearer;
    struct call_event event = {.kind = EVENT_LEFT, .remaining_ms = remaining_ms, .client = -1};
    if (is_kept(world, name)) return;
    event.resource = resource_in(name);
    snprintf(event.name, sizeof event.name, "%s %s", what, name);
    library_event_add(world, event);
}

void library_residue_note(struct library_world *world) {
    for (int node = 0; node < world->settings.nodes; node++)
        if (!world->down[node]) world->servers[node].kind->residue(&world->servers[node], left_note, world);
}
