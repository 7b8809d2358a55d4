/* Converts hiredis' replies to the environment's. Only implementations of the environment, and of the client's
 * connection to the resource, include this. */
#pragma once

#include <hiredis/hiredis.h>

#include "harness/environment/env.h"

/* Fills *reply. Its texts belong to `raw`, which has to live as long; env_reply_free frees its lists. */
void env_reply_fill(struct env_reply *reply, const redisReply *raw);
void env_reply_free(const struct env_reply *reply);
/* Frees both, if there are any; *reply is UNKNOWN then, and *raw NULL. */
void env_reply_drop(struct env_reply *reply, redisReply **raw);
