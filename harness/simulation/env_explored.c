#include "harness/simulation/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/environment/env_ops.h"
#include "harness/environment/env_reply.h"

enum { REPLY_LIMIT_MS = 1000, NOT_CONNECTED = -1, NO_ATTEMPT = -1 };

/* The clock of a client that is gone begins there, later than any deadline, and goes on by what the client sleeps: its
 * code ends, also where it began to wait only then. */
static const int64_t END_OF_TIME_NS = INT64_MAX / 2;

static struct explored_task *explored_task_of(struct env *env) {
    return (struct explored_task *)env;
}

static const struct explored_task *explored_task_of_const(const struct env *env) {
    return (const struct explored_task *)env;
}

static struct explored_client *explored_client_of(const struct explored_task *task) {
    return &task->world->clients[task->number / TASKS_PER_CLIENT];
}

static bool is_gone(const struct explored_task *task) {
    return explored_client_of(task)->gone;
}

static int64_t deadline_after(const struct explored_task *task, int64_t limit_ns) {
    return env_deadline_ns(shared_page_mono_ns(task->world->page), limit_ns);
}

static int64_t explored_mono_ns(const struct env *env);

/* --- replies --- */

redisReply *world_store_exchange(struct world *world, const char *command, size_t length) {
    void *request = NULL, *reply = NULL;
    struct resource_access access;
    world->answers.length = 0;
    redisReaderFeed(world->requests, command, length);
    redisReaderGetReply(world->requests, &request);
    resource_serve(&world->resource, request, &world->answers, &access);
    redisReaderFeed(world->replies, world->answers.bytes, world->answers.length);
    redisReaderGetReply(world->replies, &reply);
    freeReplyObject(request);
    return reply;
}

/* A command on a connection to a master that is gone does not arrive; the next command makes a new connection. The live
 * environment does the same: it never sends a command twice. */
static bool connection_holds(struct explored_task *task) {
    int life = task->world->nodes[task->command.node].life, *connected = &task->connected_in[task->command.node];
    bool holds = *connected == NOT_CONNECTED || *connected == life;
    *connected = holds ? life : NOT_CONNECTED;
    if (!holds) task->deadline_ns = shared_page_mono_ns(task->world->page);
    return holds;
}

/* Whether the server that the task's command goes to is down for good. Where it refuses connections, the task learns of
 * it at once. */
static bool server_is_down(struct explored_task *task) {
    int node = task->command.node;
    enum choice_kind down = node == WORLD_RESOURCE ? CHOICE_NONE : task->world->nodes[node].down;
    if (!down) return false;
    task->command.may_block = false; /* no server keeps it waiting */
    if (down == CHOICE_SERVER_DOWN) task->deadline_ns = shared_page_mono_ns(task->world->page);
    return true;
}

/* Executes the task's command. NULL: the server has not answered yet, or the connection is lost. */
static redisReply *explored_exchange(struct explored_task *task) {
    struct world *world = task->world;
    if (task->command.node == WORLD_RESOURCE)
        return world_store_exchange(world, task->command.bytes, task->command.length);
    if (!connection_holds(task)) return NULL;
    struct node_connection *connection = &task->connections[task->command.node];
    node_connection_retarget(connection, world_node(world, task->command.node));
    redisReply *reply = node_script_load(connection->node, task->command.bytes, task->command.length);
    if (reply) return reply;
    node_connection_send(connection, task->command.bytes, task->command.length);
    if (!task->command.may_block) return node_connection_receive(connection);
    node_catch_up(connection->node);
    return node_connection_poll(connection);
}

/* --- subscriptions --- */

static void push_keep(const struct world *world, struct listener *listener, redisReply *push) {
    if (listener->pushes.count == 0) listener->pushed_ns = shared_page_mono_ns(world->page);
    redis_push_keep(&listener->pushes, push);
}

/* Sends SUBSCRIBE or UNSUBSCRIBE and returns the confirmation; keeps messages that arrive before it. */
static redisReply *listener_exchange(struct explored_task *task) {
    struct listener *listener = &task->listeners[task->command.node];
    const char *verb = task->command.kind == COMMAND_SUBSCRIBE ? "subscribe" : "unsubscribe";
    node_connection_retarget(&listener->connection, world_node(task->world, task->command.node));
    node_connection_send(&listener->connection, task->command.bytes, task->command.length);
    for (;;) {
        redisReply *reply = node_connection_receive(&listener->connection);
        if (!redis_push_is(reply, "message")) {
            bool confirmed = redis_push_is(reply, verb);
            if (confirmed) listener->channels = (int)reply->element[2]->integer;
            return reply;
        }
        push_keep(task->world, listener, reply);
    }
}

/* Whether the server at a node has the task's command and has not answered it. */
static bool is_blocked(const struct explored_task *task, int node) {
    return task->state == EXPLORED_TASK_AWAITING && task->arrived && task->command.may_block && !task->raw &&
           task->command.node == node;
}

static bool any_task_waits(struct world *world, int node) {
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++) {
        const struct explored_task *task = world_task(world, number);
        if (task->listeners[node].channels > 0 || is_blocked(task, node)) return true;
    }
    return false;
}

/* Whether the server may answer a command because its time is over. It counts that from when the command arrived, so
 * not before blocked_until_ns, which is a millisecond late; unless its clock has jumped. */
static bool time_may_answer(struct world *world, int node) {
    bool jumped = world_node(world, node)->offset_ns != 0;
    for (int number = 0; number < TASKS_PER_CLIENT * world->client_count; number++) {
        const struct explored_task *task = world_task(world, number);
        if (!is_blocked(task, node)) continue;
        if (jumped || task->blocked_until_ns - ENV_NS_PER_MS <= shared_page_mono_ns(world->page)) return true;
    }
    return false;
}

void world_collect(struct world *world, int node) {
    if (node == WORLD_RESOURCE) return;
    struct explored_node *at = &world->nodes[node];
    bool waits = any_task_waits(world, node);
    if (world->settings.replicas || waits) node_catch_up(world_node(world, node));
    for (int server = 1; server <= world->settings.replicas; server++)
        if (replica_follows(world, node, server)) stream_collect(&at->streams[at->leads][server]);
    for (int number = 0; waits && number < TASKS_PER_CLIENT * world->client_count; number++) {
        struct explored_task *task = world_task(world, number);
        struct listener *listener = &task->listeners[node];
        for (redisReply *push; listener->channels > 0 && (push = node_connection_poll(&listener->connection));)
            push_keep(world, listener, push);
        if (!is_blocked(task, node)) continue;
        task->raw = node_connection_poll(&task->connections[node]);
        if (!task->raw) continue;
        task->answered_ns = shared_page_mono_ns(world->page);
        commands_json_tell(task->world, &task->command, HEARD_ANSWERED_LATE, task->raw);
    }
}

void world_collect_in_time(struct world *world, int node) {
    if (world->settings.replicas || time_may_answer(world, node)) world_collect(world, node);
}

/* --- a task's steps --- */

static enum heard_fate fate_of(const struct explored_task *task, const redisReply *reply, bool lost) {
    if (reply) return lost ? HEARD_ANSWER_LOST : HEARD_ANSWERED;
    return task->command.may_block ? HEARD_WAITS : HEARD_LOST;
}

bool explored_task_can_resume(const struct explored_task *task, int64_t now_ns) {
    bool due = task->deadline_ns <= now_ns;
    switch (task->state) {
    case EXPLORED_TASK_READY: return true;
    case EXPLORED_TASK_SENDING: return task->held_until_ns && due;
    case EXPLORED_TASK_AWAITING: return (task->raw && task->reply_held_until_ns <= now_ns) || due;
    case EXPLORED_TASK_SLEEPING: return task->stopping || due;
    case EXPLORED_TASK_LISTENING: return task->listeners[task->command.node].pushes.count > 0 || due;
    case EXPLORED_TASK_JOINING: return !explored_client_of(task)->watchdog.coroutine.active;
    default: return false;
    }
}

void explored_task_deliver(struct explored_task *task, bool lost) {
    struct world *world = task->world;
    redisReply *before = server_renewal_before(world, &task->command);
    redisReply *reply = NULL;
    if (!server_is_down(task))
        reply = task->command.kind == COMMAND_REQUEST ? explored_exchange(task) : listener_exchange(task);
    server_renewal_record(world, &task->command, before, reply != NULL);
    commands_json_tell(task->world, &task->command, fate_of(task, reply, lost), reply);
    if (lost && reply) freeReplyObject(reply);
    task->raw = lost ? NULL : reply;
    task->state = EXPLORED_TASK_AWAITING;
    task->arrived = true;
    task->arrived_ns = task->answered_ns = shared_page_mono_ns(world->page);
    task->held_until_ns = 0;
    task->unsent = false;
    world_collect(world, task->command.node);
}

/* What Redis answers while a script runs for too long. */
void explored_task_refuse(struct explored_task *task) {
    static const char busy[] =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    void *reply = NULL;
    redisReaderFeed(task->world->replies, busy, sizeof busy - 1);
    redisReaderGetReply(task->world->replies, &reply);
    task->raw = reply;
    task->state = EXPLORED_TASK_AWAITING;
    task->arrived = true;
    commands_json_tell(task->world, &task->command, HEARD_REFUSED, task->raw);
}

void explored_task_resume(struct explored_task *task) {
    task->state = EXPLORED_TASK_READY;
    coroutine_resume(&task->coroutine);
    if (!task->coroutine.active) task->state = EXPLORED_TASK_ABSENT;
}

/* Runs a task to its end without answers. Both tasks of a client are gone at once; a worker that waits for its watchdog
 * finds it ended. */
static void task_unwind(struct explored_task *task) {
    if (task->coroutine.active) explored_task_resume(task);
    if (task->coroutine.active) abort(); /* the lock's code does not end although all its calls fail */
}

/* Called by the task's code: suspends it until it can resume. */
static void wait_as(struct explored_task *task, enum explored_task_state state, int64_t deadline_ns) {
    task->deadline_ns = deadline_ns;
    task->state = state;
    coroutine_leave(&task->coroutine);
}

/* --- commands --- */

void explored_task_delay(struct explored_task *task, int64_t by_ns) {
    if (task->state != EXPLORED_TASK_SENDING || task->held_until_ns) return;
    task->unsent = true;
    task->held_until_ns = shared_page_mono_ns(task->world->page) + by_ns;
    if (task->deadline_ns < INT64_MAX - by_ns) task->deadline_ns += by_ns;
    if (task->blocked_until_ns < INT64_MAX - by_ns) task->blocked_until_ns += by_ns;
}

bool explored_task_duplicate(struct explored_task *task) {
    struct world *world = task->world;
    if (world->late_count == WORLD_LATE) return false;
    struct late_command *late = &world->late[world->late_count++];
    *late = (struct late_command){
        .command = task->command, .held_until_ns = task->held_until_ns, .bytes = malloc(task->command.length)};
    if (!late->bytes) abort();
    memcpy(late->bytes, task->command.bytes, task->command.length);
    late->command.bytes = late->bytes;
    return true;
}

/* Runs a command until its reply has arrived or its time limit is over. False: no reply. */
static bool explored_command_run(struct explored_task *task, struct sent_command command, int64_t limit_ns) {
    struct world *world = task->world;
    const struct client *work = &explored_client_of(task)->work;
    bool sits = command.may_block && limit_ns != INT64_MAX, to_node = command.node != WORLD_RESOURCE;
    env_reply_drop(&task->reply, &task->raw);
    task->command = command;
    task->command.client = task->number / TASKS_PER_CLIENT;
    task->command.by_watchdog = task->number % TASKS_PER_CLIENT != 0;
    task->command.op = work->op;
    task->command.grant = work->grant;
    task->command.renews = task->command.by_watchdog || work->renewing;
    task->arrived = false;
    task->held_until_ns = 0;
    task->unsent = false;
    task->reply_held_until_ns = 0;
    task->blocked_until_ns = sits ? deadline_after(task, limit_ns + ENV_NS_PER_MS) : INT64_MAX;
    if (sits) limit_ns += (1 + REPLY_LIMIT_MS) * (int64_t)ENV_NS_PER_MS;
    if (is_gone(task)) return false;
    if (to_node) server_renewal_keep(explored_client_of(task), command.bytes, command.length);
    if (to_node && task->attempt_ns == NO_ATTEMPT) task->attempt_ns = explored_mono_ns(&task->env);
    if (world->opening) explored_task_deliver(task, false);
    else wait_as(task, EXPLORED_TASK_SENDING, deadline_after(task, limit_ns));
    /* A reply that comes after its code has given the command up comes on a connection that nobody reads any more. */
    if (task->raw && task->reply_held_until_ns > shared_page_mono_ns(world->page))
        env_reply_drop(&task->reply, &task->raw);
    if (task->raw && task->arrived && task->answered_ns > task->arrived_ns) task->attempt_ns = task->answered_ns;
    if (task->raw) return true;
    /* Its task has given it up while it was on its way: it arrives late, or is lost if there are too many late
     * commands. */
    if (!task->arrived && !task->unsent && command.kind == COMMAND_REQUEST) (void)explored_task_duplicate(task);
    if (task->arrived && command.may_block) node_connection_close(&task->connections[command.node]);
    return false;
}

static const struct env_reply *explored_command(struct env *env, int node, const char *command, size_t length,
                                                int64_t limit_ns, bool may_block) {
    struct explored_task *task = explored_task_of(env);
    if (node < 0 || node >= task->world->settings.nodes) abort();
    const struct sent_command sent = {.node = node, .bytes = command, .length = length, .may_block = may_block};
    if (explored_command_run(task, sent, limit_ns)) env_reply_fill(&task->reply, task->raw);
    return &task->reply;
}

const struct env_reply *explored_resource_exchange(void *holder, const char *command, size_t length) {
    struct explored_task *worker = holder;
    const struct sent_command sent = {.node = WORLD_RESOURCE, .bytes = command, .length = length};
    if (explored_command_run(worker, sent, REPLY_LIMIT_MS * (int64_t)ENV_NS_PER_MS))
        env_reply_fill(&worker->reply, worker->raw);
    return &worker->reply;
}

static enum outcome listener_change(struct explored_task *task, enum command_kind verb, int node, const char *channel,
                                    size_t length) {
    char *command = NULL;
    int bytes =
        redisFormatCommand(&command, "%s %b", verb == COMMAND_SUBSCRIBE ? "SUBSCRIBE" : "UNSUBSCRIBE", channel, length);
    if (bytes < 0) abort();
    const struct sent_command sent = {.kind = verb, .node = node, .bytes = command, .length = (size_t)bytes};
    bool answered = explored_command_run(task, sent, REPLY_LIMIT_MS * (int64_t)ENV_NS_PER_MS);
    redisFreeCommand(command);
    return answered && task->raw->type == REDIS_REPLY_ARRAY ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static void listener_drop(struct listener *listener) {
    redis_push_clear(&listener->pushes);
    if (listener->channels > 0) node_connection_close(&listener->connection);
    listener->channels = 0;
}

void explored_task_disconnect(struct explored_task *task, int node) {
    bool concerned = task->command.node == node && !task->raw;
    bool waits = task->state == EXPLORED_TASK_SENDING || task->state == EXPLORED_TASK_AWAITING ||
                 task->state == EXPLORED_TASK_LISTENING;
    listener_drop(&task->listeners[node]);
    if (!concerned || !waits) return;
    task->connected_in[node] = NOT_CONNECTED; /* it learns of the loss now, so the loss costs no second command */
    if (task->state == EXPLORED_TASK_SENDING) {
        commands_json_tell(task->world, &task->command, HEARD_LOST, NULL);
        task->state = EXPLORED_TASK_AWAITING;
    }
    if (task->arrived && task->command.may_block) node_connection_close(&task->connections[node]);
    task->command.may_block = false; /* the server no longer keeps it waiting */
    task->arrived = true;            /* or is lost: no reply comes any more */
    task->deadline_ns = shared_page_mono_ns(task->world->page);
}

static enum outcome explored_subscribe(struct env *env, int node, const char *channel, size_t length) {
    struct explored_task *task = explored_task_of(env);
    enum outcome outcome = listener_change(task, COMMAND_SUBSCRIBE, node, channel, length);
    if (outcome != OUTCOME_OK) listener_drop(&task->listeners[node]);
    return outcome;
}

static void explored_unsubscribe(struct env *env, int node, const char *channel, size_t length) {
    struct explored_task *task = explored_task_of(env);
    struct listener *listener = &task->listeners[node];
    bool asks = listener->channels > 0 && !is_gone(task);
    if (asks && listener_change(task, COMMAND_UNSUBSCRIBE, node, channel, length) != OUTCOME_OK)
        listener_drop(listener);
    redis_push_clear(&listener->pushes);
}

static const struct env_reply *explored_message(struct env *env, int node, int64_t limit_ns) {
    struct explored_task *task = explored_task_of(env);
    struct listener *listener = &task->listeners[node];
    int64_t deadline_ns = deadline_after(task, limit_ns);
    env_reply_drop(&task->reply, &task->raw);
    if (is_gone(task) || listener->channels == 0) return &task->reply; /* the connection was lost */
    do {
        if (listener->pushes.count == 0) {
            task->command.node = node;
            wait_as(task, EXPLORED_TASK_LISTENING, deadline_ns);
        }
        env_reply_drop(&task->reply, &task->raw);
        task->raw = redis_push_take(&listener->pushes);
    } while (task->raw && !redis_push_is(task->raw, "message") && !is_gone(task));
    task->attempt_ns = task->raw ? listener->pushed_ns : NO_ATTEMPT;
    if (task->raw) env_reply_fill(&task->reply, task->raw->element[2]);
    return &task->reply;
}

/* --- clocks, random numbers, sleep --- */

static int64_t explored_mono_ns(const struct env *env) {
    const struct explored_task *task = explored_task_of_const(env);
    if (is_gone(task)) return END_OF_TIME_NS + task->slept_gone_ns;
    return shared_page_host_mono_ns(task->world->page, explored_client_of(task)->work.place);
}

static int64_t explored_wall_ns(const struct env *env) {
    const struct explored_task *task = explored_task_of_const(env);
    if (is_gone(task)) return END_OF_TIME_NS + task->slept_gone_ns;
    return shared_page_host_wall_ns(task->world->page, explored_client_of(task)->work.place);
}

/* Checkpoints serve only the coverage of a search; a fault can strike between any two steps. */
static void explored_checkpoint(struct env *env, const char *name) {
    struct explored_task *task = explored_task_of(env);
    struct world *world = task->world;
    int place = 1;
    while (place <= world->checkpoint_count && strcmp(world->checkpoints[place], name) != 0) place++;
    if (place == WORLD_CHECKPOINTS) return; /* too many: not counted */
    if (place > world->checkpoint_count) world->checkpoints[++world->checkpoint_count] = name;
    task->checkpoint = place;
}

static void explored_sleep_until(struct env *env, int64_t mono_ns) {
    struct explored_task *task = explored_task_of(env);
    while (!task->stopping && explored_mono_ns(env) < mono_ns && !is_gone(task)) {
        wait_as(task, EXPLORED_TASK_SLEEPING, mono_ns);
        task->attempt_ns = NO_ATTEMPT;
    }
    if (is_gone(task) && mono_ns > explored_mono_ns(env)) task->slept_gone_ns = mono_ns - END_OF_TIME_NS;
}

static int64_t explored_attempt_ns(const struct env *env) {
    int64_t began_ns = explored_task_of_const(env)->attempt_ns;
    return began_ns == NO_ATTEMPT ? 0 : began_ns;
}

/* --- the watchdog --- */

static bool explored_watchdog_stopping(const struct env *env) {
    const struct explored_task *task = explored_task_of_const(env);
    return task->stopping || is_gone(task);
}

static void watchdog_main(void *argument) {
    struct explored_task *task = argument;
    task->run(&task->env, task->argument);
    env_reply_drop(&task->reply, &task->raw);
}

static bool explored_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    struct explored_task *task = explored_task_of(env), *watchdog = &explored_client_of(task)->watchdog;
    if (task == watchdog || watchdog->coroutine.active || is_gone(task)) return false;
    watchdog->run = run;
    watchdog->argument = argument;
    watchdog->stopping = false;
    coroutine_begin(&watchdog->coroutine, watchdog_main, watchdog);
    watchdog->state = EXPLORED_TASK_READY;
    return true;
}

static void explored_watchdog_stop(struct env *env) {
    struct explored_task *task = explored_task_of(env), *watchdog = &explored_client_of(task)->watchdog;
    if (!watchdog->coroutine.active) return;
    watchdog->stopping = true;
    while (watchdog->coroutine.active && !is_gone(task)) wait_as(task, EXPLORED_TASK_JOINING, INT64_MAX);
    task_unwind(watchdog);
}

static const struct env_ops EXPLORED_OPS = {
    .command = explored_command,
    .subscribe = explored_subscribe,
    .unsubscribe = explored_unsubscribe,
    .message = explored_message,
    .mono_ns = explored_mono_ns,
    .wall_ns = explored_wall_ns,
    .sleep_until = explored_sleep_until,
    .checkpoint = explored_checkpoint,
    .attempt_ns = explored_attempt_ns,
    .watchdog_start = explored_watchdog_start,
    .watchdog_stop = explored_watchdog_stop,
    .watchdog_stopping = explored_watchdog_stopping,
    ENV_UNSERVED_EXCEPT_REDIS,
};

void explored_env_open(struct explored_task *task, struct world *world, int number, uint64_t seed) {
    struct random random = random_split(seed, (uint64_t)number);
    env_begin(&task->env, &EXPLORED_OPS, world->settings.nodes, REPLY_LIMIT_MS, random);
    task->world = world;
    task->number = number;
    task->env.hearer =
        (struct env_hearer){&explored_client_of(task)->work, client_announce_validity, client_record_answers};
    task->state = EXPLORED_TASK_ABSENT;
    task->checkpoint = 0;
    task->command = (struct sent_command){
        .node = WORLD_RESOURCE, .client = number / TASKS_PER_CLIENT, .by_watchdog = number % TASKS_PER_CLIENT != 0};
    task->stopping = false;
    task->reply_held_until_ns = 0;
    task->attempt_ns = NO_ATTEMPT;
    task->slept_gone_ns = 0;
    for (int node = 0; node < world->settings.nodes; node++) task->connected_in[node] = NOT_CONNECTED;
}

/* Frees what a task kept of the schedule. Its connections stay open, except those with an outstanding reply. */
static void explored_env_reset(struct explored_task *task) {
    bool waited_on = task->arrived && task->command.may_block && !task->raw && task->command.node != WORLD_RESOURCE;
    env_reply_drop(&task->reply, &task->raw);
    if (waited_on) node_connection_close(&task->connections[task->command.node]);
    for (int node = 0; node < task->world->settings.nodes; node++) listener_drop(&task->listeners[node]);
    task->arrived = false;
}

void explored_env_close(struct explored_task *task) {
    for (int node = 0; node < task->world->settings.nodes; node++) {
        if (task->connections[node].context) redisFree(task->connections[node].context);
        if (task->listeners[node].connection.context) redisFree(task->listeners[node].connection.context);
    }
    coroutine_free(&task->coroutine);
}

void explored_client_abandon(struct explored_client *client) {
    client->gone = true;
    client->worker.env.hearer.holder = client->watchdog.env.hearer.holder = NULL;
    client->work.actor.history = client->worker.world->sink;
    task_unwind(&client->watchdog);
    task_unwind(&client->worker);
    explored_env_reset(&client->worker);
    explored_env_reset(&client->watchdog);
}
