#include "harness/simulation/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"

enum { HISTORY_RECORDS = 1 << 16 };

/* --- from the opening of the world to its closing --- */

static struct history *history_new(const char *path, uint64_t capacity, uint64_t seed, struct history_error *error) {
    const struct history_settings settings = {.time = HISTORY_TIME_VIRTUAL, .seed = seed, .capacity = capacity};
    return history_create(path, &settings, error) ? history_open(path, error) : NULL;
}

static void nodes_open(struct world *world, int number) {
    const struct world_settings *settings = &world->settings;
    struct explored_node *node = &world->nodes[number];
    for (int server = 0; server <= settings->replicas; server++) {
        int place = server * settings->nodes + number;
        node_open(&node->servers[server], settings->sockets[place], settings->clocks[place]);
        node_scripts_forget(&node->servers[server]); /* which an earlier program has left there */
    }
    for (int from = 0; from <= settings->replicas; from++)
        for (int to = 1; to <= settings->replicas; to++)
            if (from != to) stream_open(&node->streams[from][to], &node->servers[from], &node->servers[to]);
}

bool world_open(struct world *world, const struct world_settings *settings, struct history_error *error) {
    *world = (struct world){.settings = *settings};
    world_search_make(world, settings);
    world->page = aligned_alloc(_Alignof(struct shared_page), sizeof *world->page);
    if (!world->page) abort();
    memset(world->page, 0, sizeof *world->page);
    world->page->time = HISTORY_TIME_VIRTUAL;
    world->page->wall_epoch_ns = CLOCK_EPOCH_NS;
    world->history = history_new(settings->history, HISTORY_RECORDS, settings->seed, error);
    world->sink = world->history ? history_new(settings->sink, 0, settings->seed, error) : NULL;
    if (!world->sink) return false;
    world->driver = (struct actor){.history = world->history, .page = world->page};
    world->requests = redisReaderCreate();
    world->replies = redisReaderCreate();
    world_prefix_write(world);
    world->resource.mode = settings->store;
    world->resource.actor = world->driver;
    world->resource.actor.id = world->names.store;
    world->resource.stranger = world->names.stranger;
    for (int node = 0; node < settings->nodes; node++) nodes_open(world, node);
    world->reader = history_reader_open(settings->history, error);
    return world->reader != NULL;
}

void world_close(struct world *world) {
    for (int each = 0; each < world->settings.clients; each++) {
        explored_env_close(&world->clients[each].worker);
        explored_env_close(&world->clients[each].watchdog);
        free(world->clients[each].sent.bytes);
        free(world->clients[each].sent_first.bytes);
    }
    for (int number = 0; number < world->settings.nodes; number++) {
        struct explored_node *node = &world->nodes[number];
        for (int from = 0; from < WORLD_SERVERS; from++)
            for (int to = 0; to < WORLD_SERVERS; to++) stream_close(&node->streams[from][to]);
        for (int server = 0; server < WORLD_SERVERS; server++) node_close(&node->servers[server]);
    }
    if (world->requests) redisReaderFree(world->requests);
    if (world->replies) redisReaderFree(world->replies);
    commands_json_free(world->heard);
    history_reader_close(world->reader);
    free(world->answers.bytes);
    free(world->resource.members);
    history_close(world->history);
    history_close(world->sink);
    free(world->page);
}

/* --- the beginning of a schedule --- */

static void client_main(void *argument) {
    struct explored_client *client = argument;
    struct world *world = client->worker.world;
    const struct world_settings *settings = &world->settings;
    const struct lock_options options = {WORLD_LOCK_NAME, sizeof WORLD_LOCK_NAME - 1, settings->lease_ms,
                                         settings->permits, settings->fixed_lease};
    client->opened = client_open(&client->work, settings->lock, &options) == OUTCOME_OK;
    client->worker.state = EXPLORED_TASK_READY;
    coroutine_leave(&client->worker.coroutine);
    if (client->opened) client_course_run(client);
    lock_close(&client->work.lock);
    client->done = true;
}

static void client_begin(struct world *world, int number, uint64_t seed) {
    struct explored_client *client = &world->clients[number];
    struct task_slot *place = &world->page->tasks[number * TASKS_PER_CLIENT];
    memset(place, 0, sizeof *place);
    client->work = (struct client){.actor = {world->history, world->page, client->name, place},
                                   .env = &client->worker.env,
                                   .place = place,
                                   .extends = world->settings.extends,
                                   .checks_validity = world->settings.checks_validity,
                                   .resource = {explored_resource_exchange, &client->worker},
                                   .lock_name = world->names.resource};
    client->gone = client->done = client->opened = false;
    client->paused_until_ns = 0;
    client->sent.length = 0;
    client->excused = client->settled = 0;
    explored_env_open(&client->worker, world, number * TASKS_PER_CLIENT, seed);
    explored_env_open(&client->watchdog, world, number * TASKS_PER_CLIENT + 1, seed);
    client_course_begin(client, seed);
    coroutine_begin(&client->worker.coroutine, client_main, client);
    coroutine_resume(&client->worker.coroutine);
}

static void nodes_wall_set(struct world *world, struct explored_node *node) {
    for (int server = 0; server <= world->settings.replicas; server++)
        node_wall_set(&node->servers[server], shared_page_wall_ns(world->page));
}

static void nodes_begin(struct world *world, struct explored_node *node) {
    int servers = world->settings.replicas + 1;
    if (node->life) node_scripts_forget(&node->servers[node->leads]); /* it may have loaded others since */
    node->leads = node->life = 0;
    node->down = CHOICE_NONE;
    memset(node->stalled_until_ns, 0, sizeof node->stalled_until_ns);
    /* the streams of replicas are read byte by byte, so none may begin with a FLUSHALL */
    for (int server = 0; server < servers; server++) node_reset(&node->servers[server], servers == 1);
    for (int from = 0; from < servers; from++)
        for (int to = 1; to < servers; to++)
            if (from != to) stream_forget(&node->streams[from][to]);
    nodes_wall_set(world, node);
}

bool world_begin(struct world *world, int clients, uint64_t seed, uint64_t schedule) {
    assert(clients <= world->settings.clients);
    atomic_store_explicit(&world->page->mono_ns, 0, memory_order_release);
    world->client_count = clients;
    history_rewind(world->history, world->prefix);
    world->resource.newest_token = world->resource.owner = 0;
    memset(world->resource.value, 0, sizeof world->resource.value);
    memset(world->resource.version, 0, sizeof world->resource.version);
    world->resource.member_count = 0;
    world->late_count = 0;
    for (int node = 0; node < world->settings.nodes; node++) nodes_begin(world, &world->nodes[node]);
    world_record(world, (struct history_record){
                            .kind = HISTORY_PARAMETER, .name = world->names.schedule, .value = (int64_t)schedule});
    bool opened = true;
    world->quiet = world->struck = false;
    world->opening = true;
    for (int each = 0; each < clients; each++) {
        client_begin(world, each, seed);
        opened &= world->clients[each].opened;
    }
    world->opening = false;
    if (!opened) world_end(world);
    return opened;
}

/* --- steps --- */

static void clock_advance(struct world *world) {
    int64_t until_ns = world_next_deadline_ns(world);
    atomic_store_explicit(&world->page->mono_ns, until_ns, memory_order_release);
    for (int node = 0; node < world->settings.nodes; node++) {
        nodes_wall_set(world, &world->nodes[node]);
        world_collect_in_time(world, node);
    }
    world_pauses_end(world);
}

static void late_arrive(struct world *world, struct late_command *late) {
    const struct sent_command *command = &late->command;
    bool arrives = command->node == WORLD_RESOURCE || !world->nodes[command->node].down;
    commands_json_tell(world, command, arrives ? HEARD_LATE : HEARD_LOST, NULL);
    if (!arrives) {
        late_command_drop(late);
        return;
    }
    if (command->node == WORLD_RESOURCE) {
        freeReplyObject(world_store_exchange(world, command->bytes, command->length));
    } else {
        redisReply *before = server_renewal_before(world, command);
        late->connection.node = world_node(world, command->node);
        node_connection_send(&late->connection, command->bytes, command->length);
        node_settle(late->connection.node);
        node_connection_close(&late->connection);
        server_renewal_record(world, command, before, true);
    }
    late_command_drop(late);
    world_collect(world, command->node);
}

static void stream_step(struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    struct explored_node *at = &world->nodes[node];
    stream_arrive(&at->streams[at->leads][server]);
    world_collect(world, node);
}

static void explored_task_step(struct world *world, struct explored_task *task) {
    if (task->state == EXPLORED_TASK_SENDING && task->held_until_ns <= world_now_ns(world))
        explored_task_deliver(task, false);
    else explored_task_resume(task);
    client_traces_look(world, &world->clients[task->number / TASKS_PER_CLIENT]);
}

bool world_apply(struct search_world *search, struct choice choice) {
    struct world *world = (struct world *)search;
    assert(world_allows(search, choice));
    commands_json_order(world);
    search->steps++;
    switch (choice.kind) {
    case CHOICE_TASK: explored_task_step(world, world_task(world, choice.who)); break;
    case CHOICE_LATE: late_arrive(world, &world->late[choice.who]); break;
    case CHOICE_STREAM: stream_step(world, choice.who); break;
    case CHOICE_CLOCK: clock_advance(world); break;
    case CHOICE_QUIET:
        world->quiet = true;
        if (world->settings.calm_bound_ms && !world->struck)
            world_record(world, (struct history_record){.kind = HISTORY_PARAMETER,
                                                        .name = world->names.bound,
                                                        .value = world->settings.calm_bound_ms});
        world_record(world, (struct history_record){.kind = HISTORY_PHASE, .name = world->names.quiet});
        break;
    default:
        world->struck = true;
        world_fault_apply(world, choice);
        break;
    }
    return true;
}

void world_end(struct world *world) {
    history_end(world->history);
    client_traces_compare_with(world);
    for (int each = 0; each < world->client_count; each++) explored_client_abandon(&world->clients[each]);
    for (int each = 0; each < world->late_count; each++) late_command_drop(&world->late[each]);
    world->late_count = 0;
}
