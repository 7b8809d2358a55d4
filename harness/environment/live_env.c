#include "harness/environment/live_env.h"

#include <stdlib.h>

#include "harness/environment/env_reply.h"

struct live_env *live_env_new(const struct env_ops *ops, const struct env_live_options *options,
                              const struct task *task, struct random random) {
    struct live_env *live = calloc(1, sizeof *live);
    if (!live) abort();
    env_begin(&live->env, ops);
    live->options = *options;
    live->task = (struct live_task){*task, options->host, options->reply_limit_ms * ENV_NS_PER_MS};
    live->random = random;
    for (int node = 0; node < options->node_count; node++) {
        struct redis_session session = {.task = &live->task, .address = options->nodes[node]};
        live->redis[node] = session;
        live->subscriptions[node].session = session;
    }
    return live;
}

void live_env_drop_reply(struct live_env *live) {
    env_reply_free(&live->reply);
    live->reply = (struct env_reply){.kind = ENV_REPLY_UNKNOWN};
    if (live->raw) freeReplyObject(live->raw);
    live->raw = NULL;
}

void live_env_close_postgres(struct live_env *live, int node) {
    if (live->postgres[node]) live_task_count_unawaited(&live->task);
    postgres_session_close(live->postgres[node]);
    live->postgres[node] = NULL;
}

void live_env_close_http(struct live_env *live, struct http_session **session) {
    if (*session) live_task_count_sent(&live->task);
    http_session_close(*session);
    *session = NULL;
}

void live_env_close_sessions(struct live_env *live) {
    for (int node = 0; node < live->options.node_count; node++) {
        redis_session_close(&live->redis[node]);
        redis_subscription_close(&live->subscriptions[node]);
        live_env_close_postgres(live, node);
        live_env_close_http(live, &live->posts[node]);
        live_env_close_http(live, &live->streams[node]);
    }
}
