#include "harness/explorer/world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/explorer/mix.h"

enum { HISTORY_RECORDS = 1 << 16, STREAMS = 2, KILLED = 9, LINGER_BOUNDS = 2 };

static const int64_t EPOCH_NS = 1767225600 * (int64_t)CLOCK_NS_PER_S; /* 2026-01-01 00:00:00 UTC */
static const char RESOURCE[] = "account";

/* As the faults of scenarios are called. */
static const char *const FAULT_NAMES[CHOICE_KINDS] = {
    [CHOICE_PAUSE] = "pause-client",   [CHOICE_CRASH] = "kill-client",   [CHOICE_JUMP] = "clock-jump",
    [CHOICE_PROMOTE] = "failover",     [CHOICE_STALL] = "partition",     [CHOICE_LOSE] = "lose-reply",
    [CHOICE_MUTE] = "drop-message",    [CHOICE_DROP] = "drop-message",   [CHOICE_HOLD] = "delay-message",
    [CHOICE_RESTART] = "crash-server", [CHOICE_FORGET] = "crash-server", [CHOICE_TWICE] = "duplicate-request",
    [CHOICE_REFUSE] = "error-reply",   [CHOICE_STEP] = "clock-jump",     [CHOICE_HALT] = "pause-client",
};

struct task *world_task(struct world *world, int number) {
    struct explored_client *client = &world->clients[number / STREAMS];
    return number % STREAMS ? &client->watchdog : &client->worker;
}

struct node *world_node(struct world *world, int number) {
    struct explored_node *node = &world->nodes[number];
    return &node->servers[node->leads];
}

static const struct task *task_at(const struct world *world, int number) {
    const struct explored_client *client = &world->clients[number / STREAMS];
    return number % STREAMS ? &client->watchdog : &client->worker;
}

static int64_t now_ns(const struct world *world) {
    return stage_mono_ns(world->stage);
}

/* --- the beginning of every history --- */

/* A name that is written twice would be two names. */
static uint32_t text(struct world *world, const char *words) {
    struct world_names *names = &world->names;
    for (int each = 0; each < names->text_count; each++)
        if (strcmp(names->texts[each].words, words) == 0) return names->texts[each].index;
    assert(names->text_count < WORLD_TEXTS && strlen(words) < WORLD_TEXT);
    struct world_text *new = &names->texts[names->text_count++];
    strcpy(new->words, words);
    new->index = history_text(world->history, words, strlen(words), now_ns(world), stage_wall_ns(world->stage));
    return new->index;
}

static uint64_t record(struct world *world, struct history_record record) {
    return actor_append(&world->driver, record);
}

static void parameter(struct world *world, const char *name, int64_t value) {
    uint32_t key = text(world, name);
    record(world, (struct history_record){.kind = HISTORY_PARAMETER, .name = key, .value = value});
}

static void parameter_text(struct world *world, const char *name, const char *words) {
    uint32_t key = text(world, name), value = text(world, words);
    record(world,
           (struct history_record){.kind = HISTORY_PARAMETER, .name = key, .value = value, .flags = HISTORY_FLAG_TEXT});
}

static void names_write(struct world *world) {
    struct world_names *names = &world->names;
    char name[32];
    names->store = text(world, "store");
    names->stranger = text(world, "stranger");
    names->resource = text(world, RESOURCE);
    names->schedule = text(world, "schedule");
    names->quiet = text(world, "quiet");
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        names->fault[kind] = text(world, FAULT_NAMES[kind]);
    for (int node = 0; node < world->settings.nodes; node++) {
        snprintf(name, sizeof name, "redis-%d", node + 1);
        names->servers[node][0] = text(world, name);
        for (int server = 1; server <= world->settings.replicas; server++) {
            snprintf(name, sizeof name, "redis-%d-replica-%d", node + 1, server);
            names->servers[node][server] = text(world, name);
        }
    }
    for (int each = 0; each < world->settings.clients; each++) {
        snprintf(name, sizeof name, "client-%d", each + 1);
        world->clients[each].name = text(world, name);
    }
}

static void prefix_write(struct world *world) {
    const struct world_settings *settings = &world->settings;
    record(world, (struct history_record){.kind = HISTORY_CLOCK, .value = now_ns(world)});
    world->driver.id = text(world, "driver");
    parameter_text(world, "scenario", "explore");
    parameter_text(world, "lock", settings->lock->name);
    parameter_text(world, "store", resource_mode_name(settings->store));
    parameter_text(world, "time", "virtual");
    parameter(world, "seed", (int64_t)settings->seed);
    parameter(world, "control", 0);
    parameter(world, "lease_ms", settings->lease_ms);
    if (settings->bound_ms) parameter(world, "bound_ms", settings->bound_ms);
    names_write(world);
    world->prefix = history_count(world->history);
}

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
    }
    for (int from = 0; from <= settings->replicas; from++)
        for (int to = 1; to <= settings->replicas; to++)
            if (from != to) stream_open(&node->streams[from][to], &node->servers[from], &node->servers[to]);
}

bool world_open(struct world *world, const struct world_settings *settings, struct history_error *error) {
    *world = (struct world){.settings = *settings};
    world->stage = aligned_alloc(_Alignof(struct stage), sizeof *world->stage);
    if (!world->stage) abort();
    memset(world->stage, 0, sizeof *world->stage);
    world->stage->time = HISTORY_TIME_VIRTUAL;
    world->stage->wall_epoch_ns = EPOCH_NS;
    world->history = history_new(settings->history, HISTORY_RECORDS, settings->seed, error);
    world->sink = world->history ? history_new(settings->sink, 0, settings->seed, error) : NULL;
    if (!world->sink) return false;
    world->driver = (struct actor){.history = world->history, .stage = world->stage};
    world->requests = redisReaderCreate();
    world->replies = redisReaderCreate();
    prefix_write(world);
    world->resource.mode = settings->store;
    world->resource.actor = world->driver;
    world->resource.actor.id = world->names.store;
    world->resource.stranger = world->names.stranger;
    for (int node = 0; node < settings->nodes; node++) nodes_open(world, node);
    return true;
}

static void nodes_close(struct explored_node *node) {
    for (int from = 0; from < WORLD_SERVERS; from++)
        for (int to = 0; to < WORLD_SERVERS; to++) stream_close(&node->streams[from][to]);
    for (int server = 0; server < WORLD_SERVERS; server++) node_close(&node->servers[server]);
}

void world_close(struct world *world) {
    for (int each = 0; each < world->settings.clients; each++) {
        explored_env_close(&world->clients[each].worker);
        explored_env_close(&world->clients[each].watchdog);
    }
    for (int node = 0; node < world->settings.nodes; node++) nodes_close(&world->nodes[node]);
    if (world->requests) redisReaderFree(world->requests);
    if (world->replies) redisReaderFree(world->replies);
    free(world->answers.bytes);
    free(world->resource.members);
    history_close(world->history);
    history_close(world->sink);
    free(world->stage);
}

/* --- the beginning of a schedule --- */

static void client_main(void *argument) {
    struct explored_client *client = argument;
    struct world *world = client->worker.world;
    const struct world_settings *settings = &world->settings;
    const struct lock_options options = {RESOURCE, sizeof RESOURCE - 1, settings->lease_ms, settings->permits,
                                         settings->fixed_lease};
    client->opened = client_open(&client->work, settings->lock, &options) == OUTCOME_OK;
    client->worker.state = TASK_READY;
    coroutine_leave(&client->worker.coroutine);
    if (client->opened) {
        /* Work takes time, in which everybody else comes to rest; without, others are still on their way. */
        bool works = env_random_below(&client->worker.env, 2) > 0;
        const struct step step = {.kind = STEP_WORKLOAD,
                                  .object = HISTORY_OBJECT_COUNTER,
                                  .wait_ms = settings->wait_ms,
                                  .value = 1,
                                  .work_ms = works ? settings->work_ms : 0,
                                  .turns = settings->turns};
        struct step_result result = {.outcome = OUTCOME_UNKNOWN};
        client_step(&client->work, &step, &result);
        /* A process outlives its work, and so does what it has left running: others may wait for that in vain. */
        if (settings->bound_ms) env_sleep(&client->worker.env, LINGER_BOUNDS * settings->bound_ms);
    }
    lock_close(&client->work.lock);
    client->done = true;
}

static void client_begin(struct world *world, int number, uint64_t seed) {
    struct explored_client *client = &world->clients[number];
    struct strand_place *place = &world->stage->strands[number * STREAMS];
    memset(place, 0, sizeof *place);
    client->work = (struct client){.actor = {world->history, world->stage, client->name, place},
                                   .env = &client->worker.env,
                                   .place = place,
                                   .extends = world->settings.extends,
                                   .store = world->settings.nodes,
                                   .resource = world->names.resource};
    client->gone = client->done = client->opened = false;
    client->paused_until_ns = 0;
    explored_env_open(&client->worker, world, number * STREAMS, seed);
    explored_env_open(&client->watchdog, world, number * STREAMS + 1, seed);
    coroutine_begin(&client->worker.coroutine, client_main, client);
    coroutine_resume(&client->worker.coroutine);
}

static void resource_reset(struct resource *resource) {
    resource->newest_token = resource->owner = 0;
    memset(resource->value, 0, sizeof resource->value);
    memset(resource->version, 0, sizeof resource->version);
    resource->member_count = 0;
}

static void nodes_wall_set(struct world *world, struct explored_node *node) {
    for (int server = 0; server <= world->settings.replicas; server++)
        node_wall_set(&node->servers[server], stage_wall_ns(world->stage));
}

static void nodes_begin(struct world *world, struct explored_node *node) {
    int servers = world->settings.replicas + 1;
    if (node->life) node_scripts_forget(&node->servers[node->leads]); /* it may have learned others since */
    node->leads = node->life = 0;
    memset(node->stalled_until_ns, 0, sizeof node->stalled_until_ns);
    memset(node->stream_steps, 0, sizeof node->stream_steps);
    for (int server = 0; server < servers; server++) node_reset(&node->servers[server]);
    for (int from = 0; from < servers; from++)
        for (int to = 1; to < servers; to++)
            if (from != to) stream_forget(&node->streams[from][to]);
    nodes_wall_set(world, node);
}

bool world_begin(struct world *world, int clients, uint64_t seed, uint64_t schedule) {
    assert(clients <= world->settings.clients);
    atomic_store_explicit(&world->stage->mono_ns, 0, memory_order_release);
    world->client_count = clients;
    history_rewind(world->history, world->prefix);
    resource_reset(&world->resource);
    world->late_count = 0;
    world->current = -1;
    world->clock_steps = world->steps = 0;
    for (int node = 0; node < world->settings.nodes; node++) nodes_begin(world, &world->nodes[node]);
    record(world, (struct history_record){
                      .kind = HISTORY_PARAMETER, .name = world->names.schedule, .value = (int64_t)schedule});
    bool opened = true;
    world->quiet = false;
    world->opening = true;
    for (int each = 0; each < clients; each++) {
        client_begin(world, each, seed);
        opened &= world->clients[each].opened;
    }
    world->opening = false;
    if (!opened) world_end(world);
    return opened;
}

/* --- what can happen --- */

static bool task_enabled(const struct world *world, int number) {
    const struct explored_client *client = &world->clients[number / STREAMS];
    const struct task *task = task_at(world, number);
    if (client->gone || task->state == TASK_ABSENT) return false;
    if (task->state == TASK_ASKING && task->held_until_ns <= now_ns(world)) return true;
    return !client->paused_until_ns && task_can_go_on(task, now_ns(world));
}

static bool late_enabled(const struct world *world, int number) {
    const struct late *late = &world->late[number];
    return late->command && late->held_until_ns <= now_ns(world);
}

bool replica_follows(const struct world *world, int node, int server) {
    return node >= 0 && node < world->settings.nodes && server > 0 && server <= world->settings.replicas &&
           server != world->nodes[node].leads;
}

static bool stream_waits(const struct world *world, int node, int server) {
    const struct explored_node *at = &world->nodes[node];
    return replica_follows(world, node, server) && at->streams[at->leads][server].length > 0;
}

static bool stream_enabled(const struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    return stream_waits(world, node, server) && world->nodes[node].stalled_until_ns[server] <= now_ns(world);
}

static int64_t sooner(int64_t one_ns, int64_t other_ns, int64_t now) {
    return other_ns > now && other_ns < one_ns ? other_ns : one_ns;
}

static int64_t task_deadline_ns(const struct task *task, bool paused, int64_t now) {
    int64_t until_ns = INT64_MAX;
    if (task->state == TASK_ABSENT) return until_ns;
    if (task->state == TASK_ASKING) until_ns = sooner(until_ns, task->held_until_ns, now);
    if (task->state == TASK_AWAITING) until_ns = sooner(until_ns, task->look_ns, now);
    return paused ? until_ns : sooner(until_ns, task->deadline_ns, now);
}

/* The next moment at which anything can change; INT64_MAX: there is none. */
static int64_t next_deadline_ns(const struct world *world) {
    int64_t now = now_ns(world), until_ns = INT64_MAX;
    for (int each = 0; each < world->client_count; each++) {
        const struct explored_client *client = &world->clients[each];
        if (client->gone) continue;
        bool paused = client->paused_until_ns != 0;
        if (paused) until_ns = sooner(until_ns, client->paused_until_ns, now);
        until_ns = sooner(until_ns, task_deadline_ns(&client->worker, paused, now), now);
        until_ns = sooner(until_ns, task_deadline_ns(&client->watchdog, paused, now), now);
    }
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 1; server <= world->settings.replicas; server++)
            if (stream_waits(world, node, server))
                until_ns = sooner(until_ns, world->nodes[node].stalled_until_ns[server], now);
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].command) until_ns = sooner(until_ns, world->late[each].held_until_ns, now);
    return until_ns;
}

static int struck_task(const struct world *world, struct choice fault) {
    if (choice_strikes_client(fault.kind)) return fault.who * STREAMS;
    if (choice_strikes_node(fault.kind) || choice_strikes_replica(fault.kind)) return world->current;
    return fault.who;
}

int world_checkpoint(const struct world *world, struct choice fault) {
    int number = struck_task(world, fault);
    return number < 0 ? 0 : task_at(world, number)->checkpoint;
}

/* By its name: processes of one search pass checkpoints in different orders. */
static uint64_t name_mixed(uint64_t state, const char *name) {
    for (; name && *name; name++) state = mix(state, (unsigned char)*name);
    return state;
}

uint64_t world_state(const struct world *world) {
    uint64_t state = (uint64_t)world->quiet << 8 | (uint64_t)world->late_count;
    for (int number = 0; number < STREAMS * world->client_count; number++) {
        const struct explored_client *client = &world->clients[number / STREAMS];
        const struct task *task = task_at(world, number);
        bool stands = client->paused_until_ns != 0;
        state = mix(state, (uint64_t)task->state << 16 | (uint64_t)task->arrived << 12 | (uint64_t)stands << 8 |
                               (uint64_t)client->gone << 4 | (task->raw ? (uint64_t)task->raw->type : 0));
        state = name_mixed(state, world->checkpoints[task->checkpoint]);
    }
    for (int node = 0; node < world->settings.nodes; node++) state = mix(state, (uint64_t)world->nodes[node].leads);
    for (int object = 0; object < HISTORY_OBJECT_COUNT; object++)
        state = mix(state, (uint64_t)world->resource.version[object]);
    return mix(state, (uint64_t)world->resource.newest_token);
}

int world_choices(const struct world *world, struct choice *choices) {
    int count = 0;
    for (int number = 0; number < STREAMS * world->client_count; number++)
        if (task_enabled(world, number)) choices[count++] = (struct choice){CHOICE_TASK, number, 0};
    for (int number = 0; number < world->late_count; number++)
        if (late_enabled(world, number)) choices[count++] = (struct choice){CHOICE_LATE, number, 0};
    for (int server = 1; server <= world->settings.replicas; server++)
        for (int node = 0; node < world->settings.nodes; node++)
            if (stream_enabled(world, replica_number(node, server)))
                choices[count++] = (struct choice){CHOICE_STREAM, replica_number(node, server), 0};
    if (count == 0 && next_deadline_ns(world) != INT64_MAX) choices[count++] = (struct choice){.kind = CHOICE_CLOCK};
    return count;
}

struct choice world_usual(const struct world *world, const struct choice *choices, int count) {
    for (int each = 0; each < count; each++)
        if (choices[each].kind == CHOICE_TASK && choices[each].who == world->current) return choices[each];
    return choices[0];
}

uint64_t world_steps_of(const struct world *world, struct choice choice) {
    if (choice.kind == CHOICE_TASK) return task_at(world, choice.who)->steps;
    if (choice.kind == CHOICE_STREAM)
        return world->nodes[replica_node(choice.who)].stream_steps[replica_server(choice.who)];
    return choice.kind == CHOICE_LATE ? world->late[choice.who].steps : world->clock_steps;
}

static bool is_on_its_way(const struct world *world, int number) {
    if (number < 0 || number >= STREAMS * world->client_count || world->clients[number / STREAMS].gone) return false;
    const struct task *task = task_at(world, number);
    return task->state == TASK_ASKING && task->ask == ASK_COMMAND && !task->held_until_ns;
}

static bool client_lives(const struct world *world, int number) {
    if (number < 0 || number >= world->client_count) return false;
    return !world->clients[number].gone && !world->clients[number].done;
}

static bool is_about_to_send(const struct world *world, int number) {
    if (!client_lives(world, number) || world->clients[number].paused_until_ns) return false;
    return is_on_its_way(world, number * STREAMS) || is_on_its_way(world, number * STREAMS + 1);
}

static bool is_node(const struct world *world, int number) {
    return number >= 0 && number < world->settings.nodes;
}

static bool is_following(const struct world *world, int number) {
    return number >= 0 && replica_follows(world, replica_node(number), replica_server(number));
}

static int kept_on(const struct world *world, int number) {
    const struct task *task = task_at(world, number);
    for (int node = 0; node < world->settings.nodes; node++)
        if (task->listeners[node].kept_count > 0) return node;
    return -1;
}

static bool has_message(const struct world *world, int number) {
    if (number < 0 || number >= STREAMS * world->client_count || world->clients[number / STREAMS].gone) return false;
    return kept_on(world, number) >= 0;
}

/* Nothing that has gone wrong still lasts. */
static bool all_is_well(const struct world *world) {
    for (int number = 0; number < STREAMS * world->client_count; number++) {
        const struct explored_client *client = &world->clients[number / STREAMS];
        const struct task *task = task_at(world, number);
        if (task->state == TASK_ASKING && task->held_until_ns) return false;
        if (client->paused_until_ns && !client->gone) return false;
    }
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].command) return false;
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 1; server <= world->settings.replicas; server++)
            if (world->nodes[node].stalled_until_ns[server] > now_ns(world)) return false;
    return true;
}

bool world_allows(const struct world *world, struct choice choice) {
    int who = choice.who;
    if (world->quiet && (int)choice.kind >= CHOICE_FAULTS_FROM) return false;
    switch (choice.kind) {
    case CHOICE_TASK: return who >= 0 && who < STREAMS * world->client_count && task_enabled(world, who);
    case CHOICE_LATE: return who >= 0 && who < world->late_count && late_enabled(world, who);
    case CHOICE_PAUSE: return client_lives(world, who) && !world->clients[who].paused_until_ns && choice.amount > 0;
    case CHOICE_HALT: return is_about_to_send(world, who) && choice.amount > 0;
    case CHOICE_CRASH:
    case CHOICE_STEP: return client_lives(world, who);
    case CHOICE_STREAM: return is_following(world, who) && stream_enabled(world, who);
    case CHOICE_PROMOTE: return is_following(world, who) && !world->nodes[replica_node(who)].leads;
    case CHOICE_STALL: return is_following(world, who) && choice.amount > 0;
    case CHOICE_JUMP:
    case CHOICE_RESTART:
    case CHOICE_FORGET: return is_node(world, who);
    case CHOICE_TWICE: return is_on_its_way(world, who) && world->late_count < WORLD_LATE;
    case CHOICE_QUIET: return !world->quiet && all_is_well(world);
    case CHOICE_MUTE: return has_message(world, who);
    case CHOICE_REFUSE: return is_on_its_way(world, who) && task_at(world, who)->node < world->settings.nodes;
    case CHOICE_LOSE:
    case CHOICE_DROP: return is_on_its_way(world, who);
    case CHOICE_HOLD: return is_on_its_way(world, who) && choice.amount > 0;
    case CHOICE_CLOCK: {
        struct choice choices[WORLD_CHOICES];
        return world_choices(world, choices) == 1 && choices[0].kind == CHOICE_CLOCK;
    }
    default: return false;
    }
}

/* --- what happens --- */

/* A fault that the explorer brings about by itself is in effect as soon as it says so. */
static void fault_record(struct world *world, enum history_kind kind, enum choice_kind fault, uint32_t target) {
    enum outcome outcome = kind == HISTORY_FAULT_PROVE ? OUTCOME_OK : OUTCOME_UNKNOWN;
    record(world,
           (struct history_record){
               .kind = (uint8_t)kind, .outcome = (uint8_t)outcome, .name = world->names.fault[fault], .value = target});
}

static void fault_begin(struct world *world, enum choice_kind fault, uint32_t target) {
    fault_record(world, HISTORY_FAULT_INJECT, fault, target);
    fault_record(world, HISTORY_FAULT_PROVE, fault, target);
}

static void pauses_end(struct world *world) {
    for (int each = 0; each < world->client_count; each++) {
        struct explored_client *client = &world->clients[each];
        if (!client->paused_until_ns || client->paused_until_ns > now_ns(world)) continue;
        client->paused_until_ns = 0;
        if (!client->gone) fault_record(world, HISTORY_FAULT_HEAL, CHOICE_PAUSE, client->name);
    }
}

static void clock_advance(struct world *world) {
    int64_t until_ns = next_deadline_ns(world);
    atomic_store_explicit(&world->stage->mono_ns, until_ns, memory_order_release);
    world->clock_steps++;
    for (int node = 0; node < world->settings.nodes; node++) {
        nodes_wall_set(world, &world->nodes[node]);
        world_collect(world, node);
    }
    pauses_end(world);
}

static void late_forget(struct late *late) {
    free(late->command);
    late->command = NULL;
}

static void late_arrive(struct world *world, struct late *late) {
    if (late->node == world->settings.nodes) {
        redisReply *reply = world_store_exchange(world, late->command, late->length);
        freeReplyObject(reply);
    } else {
        late->link.node = world_node(world, late->node);
        link_send(&late->link, late->command, late->length);
        node_settle(late->link.node);
        link_drop(&late->link);
    }
    late_forget(late);
    late->steps++;
    world_collect(world, late->node);
}

static void client_crash(struct world *world, struct explored_client *client) {
    fault_begin(world, CHOICE_CRASH, client->name);
    record(world, (struct history_record){.kind = HISTORY_ACTOR_EXIT, .name = client->name, .value = KILLED});
    client->gone = true;
    client->work.actor.history = world->sink;
    task_unwind(&client->watchdog);
    task_unwind(&client->worker);
    explored_env_reset(&client->worker);
    explored_env_reset(&client->watchdog);
}

static void clock_jump(struct world *world, int node, int64_t step_ms) {
    fault_record(world, HISTORY_FAULT_INJECT, CHOICE_JUMP, world->names.servers[node][0]);
    if (node_clock_jump(world_node(world, node), step_ms * CLOCK_NS_PER_MS))
        fault_record(world, HISTORY_FAULT_PROVE, CHOICE_JUMP, world->names.servers[node][0]);
    world_collect(world, node);
}

static void client_stop(struct world *world, struct choice choice) {
    struct explored_client *client = &world->clients[choice.who];
    int64_t amount_ns = choice.amount * CLOCK_NS_PER_MS;
    fault_begin(world, choice.kind, client->name);
    client->paused_until_ns = now_ns(world) + amount_ns;
    if (choice.kind == CHOICE_PAUSE) return;
    task_put_off(&client->worker, amount_ns);
    task_put_off(&client->watchdog, amount_ns);
}

static void client_clock_step(struct world *world, struct explored_client *client, int64_t step_ms) {
    fault_begin(world, CHOICE_STEP, client->name);
    atomic_fetch_add(&client->work.place->wall_offset_ns, step_ms * CLOCK_NS_PER_MS);
}

/* Everybody's to a node, and what was on its way there. */
static void connections_end(struct world *world, int node) {
    for (int each = 0; each < STREAMS * world->client_count; each++) task_disconnect(world_task(world, each), node);
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].node == node) late_forget(&world->late[each]);
    world->nodes[node].life++;
}

/* As a server with all, or without any, of its data on its disk. A replica hears of it as of anything else. */
static void server_restart(struct world *world, int number, enum choice_kind fault) {
    struct explored_node *at = &world->nodes[number];
    struct node *server = &at->servers[at->leads];
    fault_begin(world, fault, world->names.servers[number][at->leads]);
    connections_end(world, number);
    node_scripts_forget(server);
    if (fault == CHOICE_FORGET) node_flush(server);
    world_collect(world, number);
}

/* The master is gone with what had not arrived, everybody's connections to it, and what was on its way there. Another
 * replica follows the new one: it has what that one has, before anybody can write there. */
static void promote(struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    struct explored_node *at = &world->nodes[node];
    fault_begin(world, CHOICE_PROMOTE, world->names.servers[node][0]);
    connections_end(world, node);
    at->leads = server;
    for (int other = 1; other <= world->settings.replicas; other++)
        if (other != server) stream_resync(&at->streams[server][other]);
}

static void stream_step(struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    struct explored_node *at = &world->nodes[node];
    at->stream_steps[server]++;
    stream_arrive(&at->streams[at->leads][server]);
    world_collect(world, node);
}

static void stall(struct world *world, int number, int64_t amount_ms) {
    int node = replica_node(number), server = replica_server(number);
    fault_begin(world, CHOICE_STALL, world->names.servers[node][server]);
    world->nodes[node].stalled_until_ns[server] = now_ns(world) + amount_ms * CLOCK_NS_PER_MS;
}

static void task_step(struct world *world, struct task *task) {
    task->steps++;
    world->current = task->number;
    if (task->state == TASK_ASKING && task->held_until_ns <= now_ns(world)) task_deliver(task, false);
    else task_go_on(task);
}

static void message_fault(struct world *world, struct choice choice) {
    struct task *task = world_task(world, choice.who);
    fault_begin(world, choice.kind, world->clients[choice.who / STREAMS].name);
    if (choice.kind == CHOICE_HOLD) {
        task->held_until_ns = now_ns(world) + choice.amount * CLOCK_NS_PER_MS;
    } else if (choice.kind == CHOICE_TWICE) {
        (void)task_repeat(task);
    } else if (choice.kind == CHOICE_LOSE) {
        task_deliver(task, true);
    } else if (choice.kind == CHOICE_REFUSE) {
        task_refuse(task);
    } else {
        task->state = TASK_AWAITING;
        task->arrived = true;
    }
}

static void quiet_begin(struct world *world) {
    world->quiet = true;
    record(world, (struct history_record){.kind = HISTORY_PHASE, .name = world->names.quiet});
}

static void message_lose(struct world *world, int number) {
    fault_begin(world, CHOICE_MUTE, world->clients[number / STREAMS].name);
    listener_skip(&world_task(world, number)->listeners[kept_on(world, number)]);
}

void world_do(struct world *world, struct choice choice) {
    assert(world_allows(world, choice));
    world->steps++;
    switch (choice.kind) {
    case CHOICE_TASK: task_step(world, world_task(world, choice.who)); break;
    case CHOICE_LATE: late_arrive(world, &world->late[choice.who]); break;
    case CHOICE_STREAM: stream_step(world, choice.who); break;
    case CHOICE_CLOCK: clock_advance(world); break;
    case CHOICE_QUIET: quiet_begin(world); break;
    case CHOICE_MUTE: message_lose(world, choice.who); break;
    case CHOICE_PAUSE:
    case CHOICE_HALT: client_stop(world, choice); break;
    case CHOICE_CRASH: client_crash(world, &world->clients[choice.who]); break;
    case CHOICE_PROMOTE: promote(world, choice.who); break;
    case CHOICE_STALL: stall(world, choice.who, choice.amount); break;
    case CHOICE_JUMP: clock_jump(world, choice.who, choice.amount); break;
    case CHOICE_STEP: client_clock_step(world, &world->clients[choice.who], choice.amount); break;
    case CHOICE_RESTART:
    case CHOICE_FORGET: server_restart(world, choice.who, choice.kind); break;
    default: message_fault(world, choice); break;
    }
}

void world_end(struct world *world) {
    history_end(world->history);
    for (int each = 0; each < world->client_count; each++) {
        struct explored_client *client = &world->clients[each];
        client->gone = true;
        client->work.actor.history = world->sink;
        task_unwind(&client->watchdog);
        task_unwind(&client->worker);
        explored_env_reset(&client->worker);
        explored_env_reset(&client->watchdog);
    }
    for (int each = 0; each < world->late_count; each++) free(world->late[each].command);
    world->late_count = 0;
}
