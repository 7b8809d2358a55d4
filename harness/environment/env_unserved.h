/* What a call of the environment returns where it is not served: an ERROR, OUTCOME_REFUSED or false, at once. An
 * implementation puts these into the slots of struct env_ops that it does not fill itself. */
#ifndef LOCKSTORM_ENV_UNSERVED_H
#define LOCKSTORM_ENV_UNSERVED_H

#include "harness/environment/env_ops.h"

const struct env_reply *env_unserved_query(struct env *env, int node, const char *statement,
                                           const char *const *parameters, size_t count, int64_t limit_ns,
                                           bool may_block);
const struct env_reply *env_unserved_post(struct env *env, int node, const char *path, const char *body,
                                          int64_t limit_ns);
enum outcome env_unserved_stream(struct env *env, int node, const char *path, const char *body);
const struct env_reply *env_unserved_stream_line(struct env *env, int node, int64_t limit_ns);
void env_unserved_stream_end(struct env *env, int node);
enum outcome env_unserved_session_open(struct env *env, int64_t timeout_ms,
                                       void (*changed)(struct env *, enum env_session_state, void *), void *argument);
enum env_session_state env_unserved_session_state(struct env *env);
void env_unserved_session_end(struct env *env);
const struct env_reply *env_unserved_tree(struct env *env, enum env_tree_verb verb, const char *path);
bool env_unserved_tree_news(struct env *env, int64_t limit_ns);
bool env_unserved_adapter_send(struct env *env, const char *line);
int64_t env_unserved_adapter_mono_ns(struct env *env, int64_t adapter_ns);
const struct env_reply *env_unserved_adapter_receive(struct env *env, int64_t limit_ns);
const char *env_unserved_node_address(const struct env *env, int node);
void env_unserved_give_up(struct env *env, const char *sentence); /* prints it and exits with ENV_GAVE_UP */
int64_t env_unserved_attempt_ns(const struct env *env);

/* The slots of an environment whose nodes are Redis servers and which hosts no adapter. */
#define ENV_UNSERVED_EXCEPT_REDIS                                                                                      \
    .query = env_unserved_query, .post = env_unserved_post, .stream = env_unserved_stream,                             \
    .stream_line = env_unserved_stream_line, .stream_end = env_unserved_stream_end,                                    \
    .session_open = env_unserved_session_open, .session_state = env_unserved_session_state,                            \
    .session_end = env_unserved_session_end, .tree = env_unserved_tree, .tree_news = env_unserved_tree_news,           \
    .adapter_send = env_unserved_adapter_send, .adapter_mono_ns = env_unserved_adapter_mono_ns,                        \
    .adapter_receive = env_unserved_adapter_receive, .node_address = env_unserved_node_address,                        \
    .give_up = env_unserved_give_up

#endif
