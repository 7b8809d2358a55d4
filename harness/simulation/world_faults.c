#include "harness/simulation/world.h"

#include "harness/scheduler/clock.h"

enum { KILLED = 9 };

/* A fault of the simulation is in effect as soon as it is recorded, so its proof follows at once. */
static void fault_begin(struct world *world, enum choice_kind fault, uint32_t target) {
    world_fault_record(world, HISTORY_FAULT_INJECT, fault, target);
    world_fault_record(world, HISTORY_FAULT_PROVE, fault, target);
}

/* --- clients --- */

void world_pauses_end(struct world *world) {
    for (int each = 0; each < world->client_count; each++) {
        struct explored_client *client = &world->clients[each];
        if (!client->paused_until_ns || client->paused_until_ns > world_now_ns(world)) continue;
        client->paused_until_ns = 0;
        if (!client->gone) world_fault_record(world, HISTORY_FAULT_HEAL, CHOICE_PAUSE, client->name);
    }
}

static void client_pause(struct world *world, struct choice choice) {
    struct explored_client *client = &world->clients[choice.who];
    int64_t amount_ns = choice.amount * CLOCK_NS_PER_MS;
    fault_begin(world, choice.kind, client->name);
    client->paused_until_ns = world_now_ns(world) + amount_ns;
    if (choice.kind == CHOICE_PAUSE) return;
    explored_task_delay(&client->worker, amount_ns);
    explored_task_delay(&client->watchdog, amount_ns);
}

static void client_crash(struct world *world, struct explored_client *client) {
    fault_begin(world, CHOICE_CRASH, client->name);
    world_record(world, (struct history_record){.kind = HISTORY_ACTOR_EXIT, .name = client->name, .value = KILLED});
    explored_client_abandon(client);
}

static void client_clock_jump(struct world *world, struct explored_client *client, int64_t step_ms) {
    fault_begin(world, CHOICE_CLIENT_CLOCK_JUMP, client->name);
    atomic_fetch_add(&client->work.place->wall_offset_ns, step_ms * CLOCK_NS_PER_MS);
}

/* --- servers --- */

static void node_server_clock_jump(struct world *world, int node, int64_t step_ms) {
    uint32_t name = world->names.servers[node][world->nodes[node].leads];
    world_fault_record(world, HISTORY_FAULT_INJECT, CHOICE_CLOCK_JUMP, name);
    if (node_clock_jump(world_node(world, node), step_ms * CLOCK_NS_PER_MS))
        world_fault_record(world, HISTORY_FAULT_PROVE, CHOICE_CLOCK_JUMP, name);
    world_collect(world, node);
}

/* All connections to a node are lost, and so is every command on its way there. */
static void connections_end(struct world *world, int node) {
    for (int each = 0; each < world->client_count; each++) client_traces_excuse(&world->clients[each], node);
    for (int each = 0; each < TASKS_PER_CLIENT * world->client_count; each++)
        explored_task_disconnect(world_task(world, each), node);
    for (int each = 0; each < world->late_count; each++)
        if (world->late[each].command.node == node) late_command_drop(&world->late[each]);
    world->nodes[node].life++;
}

/* The server loses its connections and scripts, and its data with CHOICE_RESTART_EMPTY; the flush is replicated like
 * any command. */
static void server_restart(struct world *world, int number, enum choice_kind fault) {
    struct explored_node *at = &world->nodes[number];
    struct node *server = &at->servers[at->leads];
    fault_begin(world, fault, world->names.servers[number][at->leads]);
    connections_end(world, number);
    node_scripts_forget(server);
    if (fault == CHOICE_RESTART_EMPTY) node_flush(server);
    world_collect(world, number);
}

static void node_down(struct world *world, int number, enum choice_kind how) {
    fault_begin(world, how, world->names.servers[number][world->nodes[number].leads]);
    if (how == CHOICE_SERVER_DOWN) connections_end(world, number);
    else
        for (int each = 0; each < world->client_count; each++) client_traces_excuse(&world->clients[each], number);
    world->nodes[number].down = how;
}

/* The master is gone with all connections to it, every command on its way there and all replication that had not
 * arrived. The other replica follows the promoted one and has the same data before any client can write. */
static void replica_promote(struct world *world, int number) {
    int node = replica_node(number), server = replica_server(number);
    struct explored_node *at = &world->nodes[node];
    fault_begin(world, CHOICE_FAILOVER, world->names.servers[node][at->leads]);
    connections_end(world, node);
    at->leads = server;
    for (int other = 1; other <= world->settings.replicas; other++)
        if (other != server) stream_resync(&at->streams[server][other]);
}

static void replica_stall(struct world *world, int number, int64_t amount_ms) {
    int node = replica_node(number), server = replica_server(number);
    fault_begin(world, CHOICE_STALL_REPLICA, world->names.servers[node][server]);
    world->nodes[node].stalled_until_ns[server] = world_now_ns(world) + amount_ms * CLOCK_NS_PER_MS;
}

/* --- requests and messages --- */

static void request_fault(struct world *world, struct choice choice) {
    struct explored_task *task = world_task(world, choice.who);
    commands_json_strike(world, choice.kind, &task->command, NULL);
    fault_begin(world, choice.kind, world->clients[choice.who / TASKS_PER_CLIENT].name);
    if (choice.kind != CHOICE_LOSE_REPLY && choice.kind != CHOICE_HOLD_REPLY)
        client_traces_excuse(&world->clients[choice.who / TASKS_PER_CLIENT], task->command.node);
    if (choice.kind == CHOICE_HOLD_REQUEST) {
        task->held_until_ns = world_now_ns(world) + choice.amount * CLOCK_NS_PER_MS;
    } else if (choice.kind == CHOICE_HOLD_REPLY) {
        explored_task_deliver(task, false);
        task->reply_held_until_ns = world_now_ns(world) + choice.amount * CLOCK_NS_PER_MS;
    } else if (choice.kind == CHOICE_DUPLICATE_REQUEST) {
        (void)explored_task_duplicate(task);
    } else if (choice.kind == CHOICE_LOSE_REPLY) {
        explored_task_deliver(task, true);
    } else if (choice.kind == CHOICE_ERROR_REPLY) {
        explored_task_refuse(task);
    } else {
        commands_json_tell(world, &task->command, HEARD_LOST, NULL);
        task->state = EXPLORED_TASK_AWAITING;
        task->arrived = true;
    }
}

static void message_lose(struct world *world, int number) {
    struct sent_command command = world_task(world, number)->command;
    command.node = world_message_node(world, number);
    struct listener *listener = &world_task(world, number)->listeners[command.node];
    commands_json_strike(world, CHOICE_LOSE_MESSAGE, &command, listener->pushes.pushes[0]);
    fault_begin(world, CHOICE_LOSE_MESSAGE, world->clients[command.client].name);
    freeReplyObject(redis_push_take(&listener->pushes));
}

void world_fault_apply(struct world *world, struct choice fault) {
    switch (fault.kind) {
    case CHOICE_PAUSE:
    case CHOICE_PAUSE_BEFORE_SEND: client_pause(world, fault); break;
    case CHOICE_CRASH: client_crash(world, &world->clients[fault.who]); break;
    case CHOICE_FAILOVER: replica_promote(world, fault.who); break;
    case CHOICE_STALL_REPLICA: replica_stall(world, fault.who, fault.amount); break;
    case CHOICE_CLOCK_JUMP: node_server_clock_jump(world, fault.who, fault.amount); break;
    case CHOICE_CLIENT_CLOCK_JUMP: client_clock_jump(world, &world->clients[fault.who], fault.amount); break;
    case CHOICE_SERVER_DOWN:
    case CHOICE_SERVER_SILENT: node_down(world, fault.who, fault.kind); break;
    case CHOICE_RESTART:
    case CHOICE_RESTART_EMPTY: server_restart(world, fault.who, fault.kind); break;
    case CHOICE_LOSE_MESSAGE: message_lose(world, fault.who); break;
    default: request_fault(world, fault); break;
    }
}
