/* The live environment: real sockets through hiredis, the shared page's clock, a thread for the watchdog. */
#pragma once

#include "harness/environment/env.h"
#include "harness/environment/live_options.h"

/* The worker's environment. Connections are made at the first command to a node and again after one was lost. Freed by
 * env_live_close, which first stops the watchdog. */
struct env *env_live_open(const struct env_live_options *options);
void env_live_close(struct env *env);

/* How long commands wait for their replies from now on: env_reply_limit_ms. Not while a watchdog runs. */
void env_live_set_reply_limit(struct env *env, int64_t reply_limit_ms);
