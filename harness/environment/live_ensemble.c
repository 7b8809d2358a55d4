#include "harness/environment/live_env.h"

#include <stdlib.h>
#include <string.h>

static void ensemble_tend(struct env *env, void *session) {
    zookeeper_session_tend(session, env, &live_env_of(env)->task);
}

void live_ensemble_end(struct env *env) {
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

enum env_session_state live_ensemble_state(struct env *env) {
    const struct live_env *live = live_env_of(env);
    return live->ensemble ? zookeeper_session_state(live->ensemble) : ENV_SESSION_LOST;
}

enum outcome live_ensemble_open(struct env *env, int64_t timeout_ms,
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

const struct env_reply *live_ensemble_request(struct env *env, enum env_tree_verb verb, const char *path) {
    struct live_env *live = live_env_of(env);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, live->task.reply_limit_ns);
    live_env_drop_reply(live);
    live->answer = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (live->ensemble) live->answer = zookeeper_session_ask(live->ensemble, verb, path, &live->task, deadline_ns);
    return &live->answer;
}

bool live_ensemble_await_news(struct env *env, int64_t limit_ns) {
    struct live_env *live = live_env_of(env);
    int64_t deadline_ns = live_task_deadline_ns(&live->task, limit_ns);
    return live->ensemble && zookeeper_session_await_news(live->ensemble, &live->task, deadline_ns);
}
