/* The state of a live environment, one for each task: what live_env.c, live_watchdog.c and live_ensemble.c share. */
#pragma once

#include <pthread.h>

#include "harness/environment/env_live.h"
#include "harness/environment/env_ops.h"
#include "harness/environment/http_session.h"
#include "harness/environment/postgres_session.h"
#include "harness/environment/redis_subscription.h"
#include "harness/environment/zookeeper_session.h"
#include "harness/scheduler/random.h"

struct live_env {
    struct env env; /* first: a struct env * is a struct live_env * */
    struct env_live_options options;
    struct live_task task;
    struct random random;
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

static inline struct live_env *live_env_of(struct env *env) {
    return (struct live_env *)env;
}

static inline const struct live_env *live_env_of_const(const struct env *env) {
    return (const struct live_env *)env;
}

/* A new environment for this task, with these random numbers and no connection yet. The caller frees it, after
 * live_env_close_sessions. */
struct live_env *live_env_new(const struct env_ops *ops, const struct env_live_options *options,
                              const struct task *task, struct random random);

/* Frees the last reply; reply is UNKNOWN then. */
void live_env_drop_reply(struct live_env *live);

void live_env_close_sessions(struct live_env *live);

/* --- operations --- */

/* The watchdog: a thread of the client's process, which is a task with a place of its own on the shared page. */
bool live_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument);
void live_watchdog_stop(struct env *env);
bool live_watchdog_stopping(const struct env *env);

/* The session with an ensemble of ZooKeeper servers, which the watchdog tends: env_session_open, env_session_state,
 * env_session_end, env_tree and env_tree_news. */
enum outcome live_ensemble_open(struct env *env, int64_t timeout_ms,
                                void (*changed)(struct env *, enum env_session_state, void *), void *argument);
enum env_session_state live_ensemble_state(struct env *env);
void live_ensemble_end(struct env *env);
const struct env_reply *live_ensemble_request(struct env *env, enum env_tree_verb verb, const char *path);
bool live_ensemble_await_news(struct env *env, int64_t limit_ns);
