/* The explored environment: a task gives control back wherever it waits, and its commands go to real servers when the
 * schedule says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/env_ops.h"
#include "harness/env_reply.h"
#include "harness/explorer/world.h"

enum { REPLY_LIMIT_MS = 1000, STREAMS = 2, NOBODY = -1 };

/* By the clock of whoever is gone it is later than any deadline. */
static const int64_t END_OF_TIME_NS = INT64_MAX / 2;

static struct task *task_of(struct env *env) {
    return (struct task *)env;
}

static const struct task *task_of_const(const struct env *env) {
    return (const struct task *)env;
}

static struct explored_client *client_of(const struct task *task) {
    return &task->world->clients[task->number / STREAMS];
}

static bool is_gone(const struct task *task) {
    return client_of(task)->gone;
}

static int64_t deadline_after(const struct task *task, int64_t limit_ns) {
    int64_t now_ns = stage_mono_ns(task->world->stage);
    return limit_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + limit_ns;
}

/* --- replies --- */

static void reply_drop(struct task *task) {
    env_reply_free(&task->reply);
    task->reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (task->raw) freeReplyObject(task->raw);
    task->raw = NULL;
}

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

/* What is sent on a connection to a master that is gone does not arrive, and the next command makes a new one: as the
 * live environment does, which never sends a command twice. */
static bool connection_holds(struct task *task) {
    int life = task->world->nodes[task->node].life, *connected = &task->connected_in[task->node];
    bool holds = *connected == NOBODY || *connected == life;
    *connected = holds ? life : NOBODY;
    if (!holds) task->deadline_ns = stage_mono_ns(task->world->stage);
    return holds;
}

/* The task's command is executed. NULL: the server sits on it, or the connection is lost. */
static redisReply *exchange(struct task *task) {
    struct world *world = task->world;
    struct link *link = &task->links[task->node];
    if (task->node == world->settings.nodes) return world_store_exchange(world, task->command, task->length);
    if (!connection_holds(task)) return NULL;
    link_lead(link, world_node(world, task->node));
    redisReply *reply = node_script_load(link->node, task->command, task->length);
    if (reply) return reply;
    link_send(link, task->command, task->length);
    if (!task->may_block) return link_receive(link);
    node_settle(link->node);
    return link_take(link);
}

/* --- subscriptions --- */

static bool is_push(const redisReply *reply, const char *kind) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
           strcasecmp(reply->element[0]->str, kind) == 0;
}

static void listener_keep(struct listener *listener, redisReply *message) {
    redisReply **kept = realloc(listener->kept, (listener->kept_count + 1) * sizeof *kept);
    if (!kept) abort();
    kept[listener->kept_count++] = message;
    listener->kept = kept;
}

static void listener_forget(struct listener *listener) {
    for (size_t each = 0; each < listener->kept_count; each++) freeReplyObject(listener->kept[each]);
    free(listener->kept);
    listener->kept = NULL;
    listener->kept_count = 0;
}

/* SUBSCRIBE or UNSUBSCRIBE up to its confirmation; messages that come before it are kept. */
static redisReply *listener_ask(struct task *task) {
    struct listener *listener = &task->listeners[task->node];
    const char *verb = task->ask == ASK_SUBSCRIBE ? "subscribe" : "unsubscribe";
    link_lead(&listener->link, world_node(task->world, task->node));
    link_send(&listener->link, task->command, task->length);
    for (;;) {
        redisReply *reply = link_receive(&listener->link);
        if (!is_push(reply, "message")) {
            bool confirmed = is_push(reply, verb);
            if (confirmed) listener->channels = (int)reply->element[2]->integer;
            return reply;
        }
        listener_keep(listener, reply);
    }
}

static void listener_collect(struct listener *listener) {
    redisReply *message;
    while (listener->channels > 0 && (message = link_take(&listener->link))) listener_keep(listener, message);
}

static bool somebody_waits(const struct world *world, int node) {
    for (int number = 0; number < 2 * world->client_count; number++) {
        const struct explored_client *client = &world->clients[number / STREAMS];
        const struct task *task = number % STREAMS ? &client->watchdog : &client->worker;
        if (task->listeners[node].channels > 0) return true;
        if (task->state == TASK_AWAITING && task->may_block && !task->raw && task->node == node) return true;
    }
    return false;
}

void world_collect(struct world *world, int node) {
    if (node == world->settings.nodes) return;
    struct explored_node *at = &world->nodes[node];
    bool waits = somebody_waits(world, node);
    if (world->settings.replicas || waits) node_settle(world_node(world, node));
    for (int server = 1; server <= world->settings.replicas; server++)
        if (replica_follows(world, node, server)) stream_collect(&at->streams[at->leads][server]);
    for (int number = 0; waits && number < 2 * world->client_count; number++) {
        struct task *task = world_task(world, number);
        listener_collect(&task->listeners[node]);
        bool sat_on = task->state == TASK_AWAITING && task->arrived && task->may_block && !task->raw;
        if (sat_on && task->node == node) task->raw = link_take(&task->links[node]);
    }
}

/* --- a task's steps --- */

bool task_can_go_on(const struct task *task, int64_t now_ns) {
    bool due = task->deadline_ns <= now_ns;
    switch (task->state) {
    case TASK_READY: return true;
    case TASK_ASKING: return task->held_until_ns && due;
    case TASK_AWAITING: return task->raw || due;
    case TASK_SLEEPING: return task->stopping || due;
    case TASK_LISTENING: return task->listeners[task->node].kept_count > 0 || due;
    case TASK_JOINING: return !client_of(task)->watchdog.coroutine.active;
    default: return false;
    }
}

void task_deliver(struct task *task, bool lost) {
    struct world *world = task->world;
    redisReply *reply = task->ask == ASK_COMMAND ? exchange(task) : listener_ask(task);
    if (lost && reply) freeReplyObject(reply);
    task->raw = lost ? NULL : reply;
    task->state = TASK_AWAITING;
    task->arrived = true;
    task->held_until_ns = 0;
    task->unsent = false;
    world_collect(world, task->node);
}

/* What Redis says while a script does not come to its end. */
void task_refuse(struct task *task) {
    static const char busy[] =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    void *reply = NULL;
    redisReaderFeed(task->world->replies, busy, sizeof busy - 1);
    redisReaderGetReply(task->world->replies, &reply);
    task->raw = reply;
    task->state = TASK_AWAITING;
    task->arrived = true;
}

void task_go_on(struct task *task) {
    task->state = TASK_READY;
    coroutine_resume(&task->coroutine);
    if (!task->coroutine.active) task->state = TASK_ABSENT;
}

/* Both tasks of a client are gone at once. A worker that waits for its watchdog sees it at its end. */
void task_unwind(struct task *task) {
    if (task->coroutine.active) task_go_on(task);
    if (task->coroutine.active) abort(); /* lock code that never ends although nothing answers */
}

/* From inside the task: others take their steps until this one can go on. */
static void wait_as(struct task *task, enum task_state state, int64_t deadline_ns) {
    task->deadline_ns = deadline_ns;
    task->state = state;
    coroutine_leave(&task->coroutine);
}

/* --- commands --- */

void task_put_off(struct task *task, int64_t by_ns) {
    if (task->state != TASK_ASKING || task->held_until_ns) return;
    task->unsent = true;
    task->held_until_ns = stage_mono_ns(task->world->stage) + by_ns;
    if (task->deadline_ns < INT64_MAX - by_ns) task->deadline_ns += by_ns;
    if (task->look_ns < INT64_MAX - by_ns) task->look_ns += by_ns;
}

bool task_repeat(struct task *task) {
    struct world *world = task->world;
    if (world->late_count == WORLD_LATE) return false;
    struct late *late = &world->late[world->late_count++];
    *late = (struct late){.node = task->node,
                          .length = task->length,
                          .may_block = task->may_block,
                          .held_until_ns = task->held_until_ns,
                          .command = malloc(task->length)};
    if (!late->command) abort();
    memcpy(late->command, task->command, task->length);
    return true;
}

/* Asks, and returns when the reply has come or is not waited for any longer. False: no reply. */
static bool ask(struct task *task, int node, const char *command, size_t length, int64_t limit_ns, bool may_block) {
    struct world *world = task->world;
    bool sits = may_block && limit_ns != INT64_MAX;
    task->node = node;
    task->command = command;
    task->length = length;
    task->may_block = may_block;
    task->arrived = false;
    task->held_until_ns = 0;
    task->unsent = false;
    task->look_ns = sits ? deadline_after(task, limit_ns + ENV_NS_PER_MS) : INT64_MAX;
    if (sits) limit_ns += (1 + REPLY_LIMIT_MS) * (int64_t)ENV_NS_PER_MS;
    if (is_gone(task)) return false;
    if (world->opening) task_deliver(task, false);
    else wait_as(task, TASK_ASKING, deadline_after(task, limit_ns));
    if (task->raw) return true;
    /* Given up while it was still on its way, it arrives all the same; or is as if it were lost. */
    if (!task->arrived && !task->unsent && task->ask == ASK_COMMAND) (void)task_repeat(task);
    if (task->arrived && may_block) link_drop(&task->links[node]);
    return false;
}

static const struct env_reply *explored_command(struct env *env, int node, const char *command, size_t length,
                                                int64_t limit_ns, bool may_block) {
    struct task *task = task_of(env);
    if (node < 0 || node > task->world->settings.nodes) abort();
    reply_drop(task);
    task->ask = ASK_COMMAND;
    if (ask(task, node, command, length, limit_ns, may_block)) env_reply_fill(&task->reply, task->raw);
    return &task->reply;
}

static enum outcome listener_change(struct task *task, enum ask verb, int node, const char *channel, size_t length) {
    char *command = NULL;
    int bytes =
        redisFormatCommand(&command, "%s %b", verb == ASK_SUBSCRIBE ? "SUBSCRIBE" : "UNSUBSCRIBE", channel, length);
    if (bytes < 0) abort();
    reply_drop(task);
    task->ask = verb;
    bool answered = ask(task, node, command, (size_t)bytes, REPLY_LIMIT_MS * (int64_t)ENV_NS_PER_MS, false);
    redisFreeCommand(command);
    return answered && task->raw->type == REDIS_REPLY_ARRAY ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static void listener_drop(struct listener *listener) {
    listener_forget(listener);
    if (listener->channels > 0) link_drop(&listener->link);
    listener->channels = 0;
}

void task_disconnect(struct task *task, int node) {
    bool concerned = task->node == node && !task->raw;
    bool waits = task->state == TASK_ASKING || task->state == TASK_AWAITING || task->state == TASK_LISTENING;
    listener_drop(&task->listeners[node]);
    if (!concerned || !waits) return;
    if (task->state == TASK_ASKING) task->state = TASK_AWAITING;
    task->arrived = true; /* or lost: nothing of it comes any more */
    task->deadline_ns = stage_mono_ns(task->world->stage);
}

static enum outcome explored_subscribe(struct env *env, int node, const char *channel, size_t length) {
    struct task *task = task_of(env);
    enum outcome outcome = listener_change(task, ASK_SUBSCRIBE, node, channel, length);
    if (outcome != OUTCOME_OK) listener_drop(&task->listeners[node]);
    return outcome;
}

static void explored_unsubscribe(struct env *env, int node, const char *channel, size_t length) {
    struct task *task = task_of(env);
    struct listener *listener = &task->listeners[node];
    bool asks = listener->channels > 0 && !is_gone(task);
    if (asks && listener_change(task, ASK_UNSUBSCRIBE, node, channel, length) != OUTCOME_OK) listener_drop(listener);
    listener_forget(listener);
}

static redisReply *listener_next(struct listener *listener) {
    if (listener->kept_count == 0) return NULL;
    redisReply *first = listener->kept[0];
    memmove(listener->kept, listener->kept + 1, --listener->kept_count * sizeof *listener->kept);
    return first;
}

void listener_skip(struct listener *listener) {
    redisReply *message = listener_next(listener);
    if (message) freeReplyObject(message);
}

static const struct env_reply *explored_message(struct env *env, int node, int64_t limit_ns) {
    struct task *task = task_of(env);
    struct listener *listener = &task->listeners[node];
    int64_t deadline_ns = deadline_after(task, limit_ns);
    reply_drop(task);
    if (is_gone(task) || listener->channels == 0) return &task->reply; /* the connection was lost */
    do {
        if (listener->kept_count == 0) {
            task->node = node;
            wait_as(task, TASK_LISTENING, deadline_ns);
        }
        reply_drop(task);
        task->raw = listener_next(listener);
    } while (task->raw && !is_push(task->raw, "message") && !is_gone(task));
    if (task->raw) env_reply_fill(&task->reply, task->raw->element[2]);
    return &task->reply;
}

/* --- the small ones --- */

static int explored_nodes(const struct env *env) {
    return task_of_const(env)->world->settings.nodes;
}

static int64_t explored_reply_limit_ms(const struct env *env) {
    (void)env;
    return REPLY_LIMIT_MS;
}

static int64_t explored_mono_ns(const struct env *env) {
    const struct task *task = task_of_const(env);
    return is_gone(task) ? END_OF_TIME_NS : stage_host_mono_ns(task->world->stage, client_of(task)->work.place);
}

static int64_t explored_wall_ns(const struct env *env) {
    const struct task *task = task_of_const(env);
    return is_gone(task) ? END_OF_TIME_NS : stage_host_wall_ns(task->world->stage, client_of(task)->work.place);
}

static uint64_t explored_random(struct env *env) {
    return random_next(&task_of(env)->random);
}

/* Only for what is said of a search: a fault can land between any two steps. */
static void explored_checkpoint(struct env *env, const char *name) {
    struct task *task = task_of(env);
    struct world *world = task->world;
    int place = 1;
    while (place <= world->checkpoint_count && strcmp(world->checkpoints[place], name) != 0) place++;
    if (place == WORLD_CHECKPOINTS) return; /* as if it were none */
    if (place > world->checkpoint_count) world->checkpoints[++world->checkpoint_count] = name;
    task->checkpoint = place;
}

static void explored_tell_validity(struct env *env, int64_t valid_until_ns) {
    struct task *task = task_of(env);
    if (!is_gone(task)) client_told_validity(&client_of(task)->work, valid_until_ns);
}

static void explored_sleep_until(struct env *env, int64_t mono_ns) {
    struct task *task = task_of(env);
    while (!task->stopping && explored_mono_ns(env) < mono_ns && !is_gone(task)) wait_as(task, TASK_SLEEPING, mono_ns);
}

/* --- the watchdog --- */

static bool explored_watchdog_stopping(const struct env *env) {
    const struct task *task = task_of_const(env);
    return task->stopping || is_gone(task);
}

static void watchdog_main(void *argument) {
    struct task *task = argument;
    task->run(&task->env, task->argument);
    reply_drop(task);
}

static bool explored_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    struct task *task = task_of(env), *watchdog = &client_of(task)->watchdog;
    if (task == watchdog || watchdog->coroutine.active || is_gone(task)) return false;
    watchdog->run = run;
    watchdog->argument = argument;
    watchdog->stopping = false;
    coroutine_begin(&watchdog->coroutine, watchdog_main, watchdog);
    watchdog->state = TASK_READY;
    return true;
}

static void explored_watchdog_stop(struct env *env) {
    struct task *task = task_of(env), *watchdog = &client_of(task)->watchdog;
    if (!watchdog->coroutine.active) return;
    watchdog->stopping = true;
    while (watchdog->coroutine.active && !is_gone(task)) wait_as(task, TASK_JOINING, INT64_MAX);
    task_unwind(watchdog);
}

static const struct env_ops EXPLORED_OPS = {
    .nodes = explored_nodes,
    .command = explored_command,
    .subscribe = explored_subscribe,
    .unsubscribe = explored_unsubscribe,
    .message = explored_message,
    .reply_limit_ms = explored_reply_limit_ms,
    .mono_ns = explored_mono_ns,
    .wall_ns = explored_wall_ns,
    .sleep_until = explored_sleep_until,
    .random = explored_random,
    .checkpoint = explored_checkpoint,
    .tell_validity = explored_tell_validity,
    .watchdog_start = explored_watchdog_start,
    .watchdog_stop = explored_watchdog_stop,
    .watchdog_stopping = explored_watchdog_stopping,
};

void explored_env_open(struct task *task, struct world *world, int number, uint64_t seed) {
    task->env.ops = &EXPLORED_OPS;
    task->world = world;
    task->number = number;
    task->random = random_split(seed, (uint64_t)number);
    task->state = TASK_ABSENT;
    task->steps = 0;
    task->checkpoint = 0;
    task->stopping = false;
    for (int node = 0; node < world->settings.nodes; node++) task->connected_in[node] = NOBODY;
}

void explored_env_reset(struct task *task) {
    bool waited_on = task->arrived && task->may_block && !task->raw && task->node < task->world->settings.nodes;
    reply_drop(task);
    if (waited_on) link_drop(&task->links[task->node]);
    for (int node = 0; node < task->world->settings.nodes; node++) listener_drop(&task->listeners[node]);
    task->arrived = false;
}

void explored_env_close(struct task *task) {
    for (int node = 0; node < task->world->settings.nodes; node++) {
        if (task->links[node].context) redisFree(task->links[node].context);
        if (task->listeners[node].link.context) redisFree(task->listeners[node].link.context);
    }
    coroutine_free(&task->coroutine);
}
