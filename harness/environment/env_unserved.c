#include "harness/environment/env_unserved.h"

#include <stdio.h>
#include <stdlib.h>

/* Each text begins as the service's own refusals do: with a status of HTTP, or an SQLSTATE. */
static const struct env_reply *env_unserved_reply(const char *text, size_t length) {
    static _Thread_local struct env_reply reply;
    reply = (struct env_reply){.kind = ENV_REPLY_ERROR, .text = text, .length = length};
    return &reply;
}

#define UNSERVED(text) env_unserved_reply(text, sizeof text - 1)

const struct env_reply *env_unserved_query(struct env *env, int node, const char *statement,
                                           const char *const *parameters, size_t count, int64_t limit_ns,
                                           bool may_block) {
    (void)env, (void)node, (void)statement, (void)parameters, (void)count, (void)limit_ns, (void)may_block;
    return UNSERVED("0A000 SQL is not served here");
}

const struct env_reply *env_unserved_post(struct env *env, int node, const char *path, const char *body,
                                          int64_t limit_ns) {
    (void)env, (void)node, (void)path, (void)body, (void)limit_ns;
    return UNSERVED("501 HTTP is not served here");
}

enum outcome env_unserved_stream(struct env *env, int node, const char *path, const char *body) {
    (void)env, (void)node, (void)path, (void)body;
    return OUTCOME_REFUSED;
}

const struct env_reply *env_unserved_stream_line(struct env *env, int node, int64_t limit_ns) {
    (void)env, (void)node, (void)limit_ns;
    return UNSERVED("501 HTTP is not served here");
}

void env_unserved_stream_end(struct env *env, int node) {
    (void)env, (void)node;
}

enum outcome env_unserved_session_open(struct env *env, int64_t timeout_ms,
                                       void (*changed)(struct env *, enum env_session_state, void *), void *argument) {
    (void)env, (void)timeout_ms, (void)changed, (void)argument;
    return OUTCOME_REFUSED;
}

enum env_session_state env_unserved_session_state(struct env *env) {
    (void)env;
    return ENV_SESSION_LOST;
}

void env_unserved_session_end(struct env *env) {
    (void)env;
}

const struct env_reply *env_unserved_tree(struct env *env, enum env_tree_verb verb, const char *path) {
    (void)env, (void)verb, (void)path;
    return UNSERVED("ZooKeeper is not served here");
}

bool env_unserved_tree_news(struct env *env, int64_t limit_ns) {
    (void)env, (void)limit_ns;
    return false;
}

bool env_unserved_adapter_send(struct env *env, const char *line) {
    (void)env, (void)line;
    return false;
}

int64_t env_unserved_adapter_mono_ns(struct env *env, int64_t adapter_ns) {
    (void)env;
    return adapter_ns;
}

const struct env_reply *env_unserved_adapter_receive(struct env *env, int64_t limit_ns) {
    (void)env, (void)limit_ns;
    return UNSERVED("adapters are not hosted here");
}

const char *env_unserved_node_address(const struct env *env, int node) {
    (void)env, (void)node;
    return "";
}

void env_unserved_give_up(struct env *env, const char *sentence) {
    (void)env;
    fprintf(stderr, "%s\n", sentence);
    exit(ENV_GAVE_UP);
}

int64_t env_unserved_attempt_ns(const struct env *env) {
    (void)env;
    return 0;
}
