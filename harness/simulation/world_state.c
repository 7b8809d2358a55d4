#include "harness/simulation/world.h"

#include <stdlib.h>
#include <string.h>

#include "harness/search/mix.h"

int64_t world_now_ns(const struct world *world) {
    return shared_page_mono_ns(world->page);
}

struct explored_task *world_task(struct world *world, int number) {
    struct explored_client *client = &world->clients[number / TASKS_PER_CLIENT];
    return number % TASKS_PER_CLIENT ? &client->watchdog : &client->worker;
}

const struct explored_task *world_task_const(const struct world *world, int number) {
    const struct explored_client *client = &world->clients[number / TASKS_PER_CLIENT];
    return number % TASKS_PER_CLIENT ? &client->watchdog : &client->worker;
}

struct node *world_node(struct world *world, int number) {
    struct explored_node *node = &world->nodes[number];
    return &node->servers[node->leads];
}

bool replica_follows(const struct world *world, int node, int server) {
    return node >= 0 && node < world->settings.nodes && server > 0 && server <= world->settings.replicas &&
           server != world->nodes[node].leads;
}

bool sent_contains(const struct sent_bytes *sent, const char *text, size_t length) {
    return length >= SENT_LEAST && memmem(sent->bytes, sent->length, text, length) != NULL;
}

void late_command_drop(struct late_command *late) {
    free(late->bytes);
    late->bytes = NULL;
}

int world_message_node(const struct world *world, int number) {
    const struct explored_task *task = world_task_const(world, number);
    for (int node = 0; node < world->settings.nodes; node++)
        if (task->listeners[node].pushes.count > 0) return node;
    return -1;
}

uint64_t world_state(const struct search_world *search) {
    const struct world *world = world_of(search);
    uint64_t state = (uint64_t)world->quiet << 8 | (uint64_t)world->late_count;
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++) {
        const struct explored_client *client = &world->clients[number / TASKS_PER_CLIENT];
        const struct explored_task *task = world_task_const(world, number);
        bool paused = client->paused_until_ns != 0;
        state = mix(state, (uint64_t)task->state << 16 | (uint64_t)task->arrived << 12 | (uint64_t)paused << 8 |
                               (uint64_t)client->gone << 4 | (task->raw ? (uint64_t)task->raw->type : 0));
        state = mix_name(state, world->checkpoints[task->checkpoint]);
    }
    for (int node = 0; node < world->settings.nodes; node++) state = mix(state, (uint64_t)world->nodes[node].leads);
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++)
        state = mix(state, (uint64_t)world->resource.version[object]);
    return mix(state, (uint64_t)world->resource.newest_token);
}
