#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/environment/env_live.h"
#include "harness/environment/env_ops.h"
#include "harness/environment/env_reply.h"
#include "harness/environment/http_session.h"
#include "harness/environment/postgres_session.h"
#include "harness/environment/redis_subscription.h"
#include "harness/environment/zookeeper_session.h"

/* The state of a live environment, one for each task. */
struct live_env {
    struct env env; /* first: a struct env * is a struct live_env * */
    struct env_live_options options;
    struct live_task task;
    /* By node: */
    struct redis_session redis[ENV_LIVE_NODES];
    struct redis_subscription subscriptions[ENV_LIVE_NODES];
    struct postgres_session *postgres[ENV_LIVE_NODES];
    struct http_session *posts[ENV_LIVE_NODES], *streams[ENV_LIVE_NODES];
    struct adapter_session *adapter;
    /* The last reply: */
    redisReply *raw;
    struct env_reply reply;
    struct env_reply answer; /* a session's, which owns what it points to */
    /* Of a worker: */
    struct zookeeper_session *ensemble; /* its watchdog tends it */
    struct live_env *watchdog;          /* NULL: none runs */
    pthread_t thread;
    /* Of a watchdog: */
    struct live_env *worker;
    void (*run)(struct env *, void *);
    void *argument;
    _Atomic bool stopping;
};

static struct live_env *live_env_of(struct env *env) {
    return (struct live_env *)env;
}

static const struct live_env *live_env_of_const(const struct env *env) {
    return (const struct live_env *)env;
}

/* A new environment for this task, with these random numbers and no connection yet. */
static struct live_env *live_env_new(const struct env_ops *ops, const struct env_live_options *options,
                                     const struct task *task, struct random random) {
    struct live_env *live = calloc(1, sizeof *live);
    if (!live) abort();
    env_begin(&live->env, ops, options->node_count, options->reply_limit_ms, random);
    live->env.hearer = options->hearer;
    live->options = *options;
    live->task = (struct live_task){*task, options->host, options->reply_limit_ms * ENV_NS_PER_MS};
    for (int node = 0; node < options->node_count; node++) {
        struct redis_session session = {.task = &live->task, .address = options->nodes[node]};
        live->redis[node] = session;
        live->subscriptions[node].session = session;
    }
    return live;
}

static void close_postgres(struct live_env *live, int node) {
    if (live->postgres[node]) live_task_count_unawaited(&live->task);
    postgres_session_close(live->postgres[node]);
    live->postgres[node] = NULL;
}

static void close_http(struct live_env *live, struct http_session **session) {
    if (*session) live_task_count_sent(&live->task);
    http_session_close(*session);
    *session = NULL;
}

static void live_env_close_sessions(struct live_env *live) {
    for (int node = 0; node < live->options.node_count; node++) {
        redis_session_close(&live->redis[node]);
        redis_subscription_close(&live->subscriptions[node]);
        close_postgres(live, node);
        close_http(live, &live->posts[node]);
        close_http(live, &live->streams[node]);
    }
}

/* --- the watchdog: a thread of the client's process, which is a task with a place of its own on the shared page --- */

static bool live_watchdog_stopping(const struct env *env) {
    return atomic_load_explicit(&live_env_of_const(env)->stopping, memory_order_acquire);
}

static void watchdog_run(void *argument) {
    struct live_env *live = argument;
    task_begin(&live->task.task);
    live->run(&live->env, live->argument);
    env_reply_drop(&live->reply, &live->raw);
    live_env_close_sessions(live);
    task_end(&live->task.task, &live->worker->task.task);
}

static void *live_watchdog_main(void *argument) {
    watchdog_run(argument);
    return NULL;
}

static bool watchdog_begin(struct live_env *worker, struct live_env *live) {
    const struct task *task = &live->task.task;
    if (task->carrier) return task->carrier->start(task->carrier, task->place, watchdog_run, live);
    return pthread_create(&worker->thread, NULL, live_watchdog_main, live) == 0;
}

static void watchdog_join(const struct live_env *worker, const struct live_env *live) {
    const struct task *task = &live->task.task;
    if (task->carrier) task->carrier->join(task->carrier, worker->task.task.place, task->place);
    else pthread_join(worker->thread, NULL);
}

static void live_watchdog_stop(struct env *env) {
    struct live_env *worker = live_env_of(env), *live = worker->watchdog;
    if (!live) return;
    atomic_store_explicit(&live->stopping, true, memory_order_release);
    task_await_end(&worker->task.task, &live->task.task);
    watchdog_join(worker, live);
    free(live);
    worker->watchdog = NULL;
}

static bool live_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument) {
    struct live_env *worker = live_env_of(env);
    const struct env_live_options *options = &worker->options;
    if (worker->watchdog && task_has_ended(&worker->watchdog->task.task)) live_watchdog_stop(env);
    if (worker->watchdog || worker->worker || !options->watchdog.place) return false;
    struct random random = random_split(options->worker.page->seed, options->stream * 2 + 2);
    struct live_env *live = live_env_new(env->ops, options, &options->watchdog, random);
    live->run = run;
    live->argument = argument;
    live->worker = worker;
    task_announce(&live->task.task);
    if (!watchdog_begin(worker, live)) {
        atomic_store_explicit(&live->task.task.place->state, TASK_ABSENT, memory_order_release);
        free(live);
        return false;
    }
    worker->watchdog = live;
    return true;
}

/* A lock that addresses a node that it does not have is wrong. */
static struct live_env *live_at(struct env *env, int node) {
    struct live_env *live = live_env_of(env);
    if (node < 0 || node >= live->options.node_count) abort();
    return live;
}

/* --- nodes that speak RESP --- */

static const struct env_reply *live_command(struct env *env, int node, const char *command, size_t length,
                                            int64_t limit_ns, bool may_block) {
    struct live_env *live = live_at(env, node);
    env_reply_drop(&live->reply, &live->raw);
    live->raw = redis_session_ask(&live->redis[node], command, length, limit_ns, may_block);
    if (live->raw) env_reply_fill(&live->reply, live->raw);
    return &live->reply;
}

static enum outcome live_subscribe(struct env *env, int node, const char *channel, size_t length) {
    return redis_subscription_change(&live_at(env, node)->subscriptions[node], "SUBSCRIBE", channel, length);
}

static void live_unsubscribe(struct env *env, int node, const char *channel, size_t length) {
    redis_subscription_end(&live_at(env, node)->subscriptions[node], channel, length);
}

static const struct env_reply *live_message(struct env *env, int node, int64_t limit_ns) {
    struct live_env *live = live_at(env, node);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, limit_ns);
    env_reply_drop(&live->reply, &live->raw);
    live->raw = redis_subscription_message(&live->subscriptions[node], deadline_ns);
    if (live->raw) env_reply_fill(&live->reply, live->raw->element[2]);
    return &live->reply;
}

/* --- nodes that speak SQL --- */

/* A session holds locks and transactions: one that was lost is never replaced behind the lock's back. */
static const struct env_reply *live_query(struct env *env, int node, const char *statement,
                                          const char *const *parameters, size_t count, int64_t limit_ns,
                                          bool may_block) {
    struct live_env *live = live_at(env, node);
    env_reply_drop(&live->reply, &live->raw);
    struct live_wait to_connect = live_wait_of(&live->task, live->task.reply_limit_ns, false);
    struct live_wait to_run = live_wait_of(&live->task, limit_ns, may_block);
    struct postgres_session **session = &live->postgres[node];
    if (!*session) *session = postgres_session_open(live->options.nodes[node], &to_connect);
    if (*session && postgres_session_run(*session, statement, parameters, count, &to_run, &live->answer))
        return &live->answer;
    close_postgres(live, node);
    return &live->reply;
}

/* --- nodes that speak HTTP --- */

/* A session that is ready for another request; false: it cannot be had. */
static bool http_begin(struct live_env *live, struct http_session **session, int node, const char *path,
                       const char *body) {
    if (!*session) *session = http_session_open(live->options.nodes[node]);
    return *session && http_session_begin(*session, path, body);
}

static const struct env_reply *live_post(struct env *env, int node, const char *path, const char *body,
                                         int64_t limit_ns) {
    struct live_env *live = live_at(env, node);
    struct live_wait limit = live_wait_of(&live->task, limit_ns, false);
    struct http_session **session = &live->posts[node];
    env_reply_drop(&live->reply, &live->raw);
    if (http_begin(live, session, node, path, body) && http_session_answer(*session, &limit, &live->answer))
        return &live->answer;
    close_http(live, session);
    return &live->reply;
}

static enum outcome live_stream(struct env *env, int node, const char *path, const char *body) {
    struct live_env *live = live_at(env, node);
    if (http_begin(live, &live->streams[node], node, path, body)) return OUTCOME_OK;
    close_http(live, &live->streams[node]);
    return OUTCOME_UNKNOWN;
}

static const struct env_reply *live_stream_line(struct env *env, int node, int64_t limit_ns) {
    struct live_env *live = live_at(env, node);
    struct live_wait limit = live_wait_of(&live->task, limit_ns, true);
    struct http_session *session = live->streams[node];
    env_reply_drop(&live->reply, &live->raw);
    if (session && http_session_line(session, &limit, &live->answer)) return &live->answer;
    return &live->reply;
}

static void live_stream_end(struct env *env, int node) {
    struct live_env *live = live_at(env, node);
    close_http(live, &live->streams[node]);
}

/* --- nodes that are an ensemble of ZooKeeper servers: one session, which the watchdog tends --- */

static void ensemble_tend(struct env *env, void *session) {
    zookeeper_session_tend(session, env, &live_env_of(env)->task);
}

static void live_ensemble_end(struct env *env) {
    struct live_env *live = live_env_of(env);
    if (!live->ensemble) return;
    zookeeper_session_dismiss(live->ensemble);
    live_watchdog_stop(env);
    zookeeper_session_close(live->ensemble, &live->task);
    live->ensemble = NULL;
}

/* The nodes as one list, "host:port,host:port"; the caller frees. */
static char *addresses_of(const struct live_env *live) {
    size_t room = 1;
    int nodes = live->options.node_count;
    for (int node = 0; node < nodes; node++) room += strlen(live->options.nodes[node]) + 1;
    char *where = calloc(room, 1);
    if (!where) abort();
    for (int node = 0; node < nodes; node++) {
        if (node > 0) strcat(where, ",");
        strcat(where, live->options.nodes[node]);
    }
    return where;
}

/* A session that no watchdog tends would be SUSPENDED for ever: it is ended, and a later call may begin one. */
static bool ensemble_begin(struct live_env *live, int64_t timeout_ms,
                           void (*changed)(struct env *, enum env_session_state, void *), void *argument) {
    char *where = addresses_of(live);
    live->ensemble = zookeeper_session_open(where, timeout_ms, changed, argument, &live->task);
    free(where);
    if (live->ensemble && live_watchdog_start(&live->env, ensemble_tend, live->ensemble)) return true;
    zookeeper_session_close(live->ensemble, &live->task);
    live->ensemble = NULL;
    return false;
}

static enum env_session_state live_ensemble_state(struct env *env) {
    const struct live_env *live = live_env_of(env);
    return live->ensemble ? zookeeper_session_state(live->ensemble) : ENV_SESSION_LOST;
}

static enum outcome live_ensemble_open(struct env *env, int64_t timeout_ms,
                                       void (*changed)(struct env *, enum env_session_state, void *), void *argument) {
    struct live_env *live = live_env_of(env);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, live->task.reply_limit_ns);
    if (live_ensemble_state(env) == ENV_SESSION_LOST) {
        live_ensemble_end(env);
        if (!ensemble_begin(live, timeout_ms, changed, argument)) return OUTCOME_UNKNOWN;
    }
    while (live_ensemble_state(env) == ENV_SESSION_SUSPENDED)
        if (!zookeeper_session_await_news(live->ensemble, &live->task, deadline_ns)) break;
    return zookeeper_session_timeout_ms(live->ensemble) == timeout_ms ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

static const struct env_reply *live_ensemble_request(struct env *env, enum env_tree_verb verb, const char *path) {
    struct live_env *live = live_env_of(env);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, live->task.reply_limit_ns);
    env_reply_drop(&live->reply, &live->raw);
    live->answer = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (live->ensemble) live->answer = zookeeper_session_ask(live->ensemble, verb, path, &live->task, deadline_ns);
    return &live->answer;
}

static bool live_ensemble_await_news(struct env *env, int64_t limit_ns) {
    struct live_env *live = live_env_of(env);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, limit_ns);
    return live->ensemble && zookeeper_session_await_news(live->ensemble, &live->task, deadline_ns);
}

/* --- the adapter --- */

static bool live_adapter_send(struct env *env, const char *line) {
    struct live_env *live = live_env_of(env);
    if (!live->adapter && live->options.adapter.program)
        live->adapter = adapter_session_open(&live->options.adapter, &live->options.watchdog);
    return live->adapter && adapter_session_send(live->adapter, line);
}

static int64_t live_adapter_mono_ns(struct env *env, int64_t adapter_ns) {
    return live_env_of(env)->options.adapter.supervisor ? adapter_ns - SHARED_PAGE_UPTIME_NS : adapter_ns;
}

static const struct env_reply *live_adapter_receive(struct env *env, int64_t limit_ns) {
    struct live_env *live = live_env_of(env);
    struct live_wait limit = live_wait_of(&live->task, limit_ns, true);
    env_reply_drop(&live->reply, &live->raw);
    if (!live->adapter) return &live->reply;
    live->answer = adapter_session_receive(live->adapter, &limit);
    return &live->answer;
}

static const char *live_node_address(const struct env *env, int node) {
    return live_at((struct env *)(uintptr_t)env, node)->options.nodes[node];
}

static void live_give_up(struct env *env, const char *sentence) {
    (void)env;
    fprintf(stderr, "client: %s\n", sentence);
    exit(ENV_GAVE_UP);
}

/* --- the host and the trial --- */

void env_live_set_reply_limit(struct env *env, int64_t reply_limit_ms) {
    env->reply_limit_ms = reply_limit_ms;
    live_env_of(env)->options.reply_limit_ms = reply_limit_ms; /* of a watchdog that is started from now on */
    live_env_of(env)->task.reply_limit_ns = reply_limit_ms * ENV_NS_PER_MS;
}

static int64_t live_mono_ns(const struct env *env) {
    return live_task_mono_ns(&live_env_of_const(env)->task);
}

static int64_t live_wall_ns(const struct env *env) {
    const struct live_task *task = &live_env_of_const(env)->task;
    return shared_page_host_wall_ns(task->task.page, task->host);
}

static void live_sleep_until(struct env *env, int64_t mono_ns) {
    while (!live_watchdog_stopping(env) && live_mono_ns(env) < mono_ns)
        live_task_sleep_until(&live_env_of(env)->task, mono_ns);
}

static void live_checkpoint(struct env *env, const char *name) {
    task_checkpoint(&live_env_of(env)->task.task, name);
}

static const struct env_ops LIVE_OPS = {
    .command = live_command,
    .query = live_query,
    .post = live_post,
    .stream = live_stream,
    .stream_line = live_stream_line,
    .stream_end = live_stream_end,
    .session_open = live_ensemble_open,
    .session_state = live_ensemble_state,
    .session_end = live_ensemble_end,
    .tree = live_ensemble_request,
    .tree_news = live_ensemble_await_news,
    .adapter_send = live_adapter_send,
    .adapter_mono_ns = live_adapter_mono_ns,
    .adapter_receive = live_adapter_receive,
    .node_address = live_node_address,
    .give_up = live_give_up,
    .subscribe = live_subscribe,
    .unsubscribe = live_unsubscribe,
    .message = live_message,
    .mono_ns = live_mono_ns,
    .wall_ns = live_wall_ns,
    .sleep_until = live_sleep_until,
    .checkpoint = live_checkpoint,
    .attempt_ns = env_unserved_attempt_ns,
    .watchdog_start = live_watchdog_start,
    .watchdog_stop = live_watchdog_stop,
    .watchdog_stopping = live_watchdog_stopping,
};

struct env *env_live_open(const struct env_live_options *options) {
    struct random random = random_split(options->worker.page->seed, options->stream * 2 + 1);
    return &live_env_new(&LIVE_OPS, options, &options->worker, random)->env;
}

void env_live_close(struct env *env) {
    struct live_env *live = live_env_of(env);
    live_ensemble_end(env);
    live_watchdog_stop(env);
    adapter_session_close(live->adapter);
    env_reply_drop(&live->reply, &live->raw);
    live_env_close_sessions(live);
    free(live);
}
