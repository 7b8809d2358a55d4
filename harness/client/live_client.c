#include "harness/client/live_client.h"

#include <stdio.h>

#include "harness/client/client.h"
#include "harness/environment/env_live.h"
#include "harness/environment/env_reply.h"
#include "harness/environment/redis_session.h"

/* --- the connection to the resource --- */

/* The worker's, RESP over a unix socket, with the turns, limits and outcomes of a command to a node. It connects with
 * the first command. */
struct live_resource {
    struct live_task task;
    struct redis_session session;
    redisReply *raw;
    struct env_reply reply;
};

static const struct env_reply *live_resource_exchange(void *holder, const char *command, size_t length) {
    struct live_resource *resource = holder;
    env_reply_drop(&resource->reply, &resource->raw);
    resource->raw = redis_session_ask(&resource->session, command, length, resource->task.reply_limit_ns, false);
    if (resource->raw) env_reply_fill(&resource->reply, resource->raw);
    return &resource->reply;
}

/* --- the client --- */

static void client_serve(struct client *client, struct task *task) {
    for (;;) {
        task_park(task, TASK_IDLE);
        struct step step = client->place->step;
        if (step.kind == STEP_EXIT) return;
        struct step_result result = {.outcome = OUTCOME_UNKNOWN};
        client_step(client, &step, &result);
        client->place->result = result;
    }
}

/* Worker and watchdog have neighbouring places on the shared page. */
static void tasks_fill(struct env_live_options *env, const struct client_arguments *arguments, struct shared_page *page,
                       struct task_carrier *carrier) {
    struct task worker = {.page = page,
                          .place = &page->tasks[arguments->task],
                          .turn_fd = (int)arguments->turn_fd,
                          .yield_fd = (int)arguments->yield_fd,
                          .carrier = carrier};
    env->worker = worker;
    env->host = worker.place;
    worker.place += 1;
    worker.turn_fd = (int)arguments->watchdog_fd;
    env->watchdog = worker;
    env->stream = (uint64_t)(arguments->task + arguments->life * page->task_count);
}

enum outcome live_client_run(const struct client_arguments *arguments, const struct lock_type *type,
                             const struct actor *files, struct task_carrier *carrier) {
    struct env_live_options env = arguments->env;
    tasks_fill(&env, arguments, files->page, carrier);
    task_enter(&env.worker);
    struct client client = {
        .actor = {files->history, files->page, (uint32_t)arguments->actor, env.host},
        .place = env.worker.place,
        .checks_validity = arguments->checks_validity,
        .lock_name = (uint32_t)arguments->resource_id,
    };
    env.hearer = (struct env_hearer){&client, client_announce_validity, client_record_answers};
    client.env = env_live_open(&env);
    struct live_resource resource = {.task = {env.worker, env.host, env.reply_limit_ms * ENV_NS_PER_MS},
                                     .session = {.task = &resource.task, .address = arguments->store}};
    client.resource = (struct resource_connection){live_resource_exchange, &resource};
    const struct lock_options options = {arguments->resource, arguments->resource_length, arguments->lease_ms,
                                         arguments->permits, arguments->fixed_lease};
    if (arguments->open_limit_ms) env_live_set_reply_limit(client.env, arguments->open_limit_ms);
    enum outcome opened = client_open(&client, type, &options);
    env_live_set_reply_limit(client.env, env.reply_limit_ms);
    if (opened == OUTCOME_OK) {
        client_serve(&client, &env.worker);
    } else {
        fprintf(stderr, "client: the node %s did not answer while the lock was opened\n", env.nodes[0]);
    }
    lock_close(&client.lock);
    env_live_close(client.env);
    env_reply_drop(&resource.reply, &resource.raw);
    redis_session_close(&resource.session);
    return opened;
}
