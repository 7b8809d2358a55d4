/* A live client's session with an ensemble of ZooKeeper servers, which its watchdog tends: the environment's operations
 * on it. */
#pragma once

#include "harness/environment/env.h"

/* env_session_open, env_session_state and env_session_end. */
enum outcome live_ensemble_open(struct env *env, int64_t timeout_ms,
                                void (*changed)(struct env *, enum env_session_state, void *), void *argument);
enum env_session_state live_ensemble_state(struct env *env);
void live_ensemble_end(struct env *env);

/* env_tree and env_tree_news; limit_ns INT64_MAX: it waits for ever. */
const struct env_reply *live_ensemble_request(struct env *env, enum env_tree_verb verb, const char *path);
bool live_ensemble_await_news(struct env *env, int64_t limit_ns);
