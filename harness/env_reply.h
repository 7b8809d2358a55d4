/* hiredis' replies as the environment's. Only implementations of the environment include this. */
#ifndef LOCKSTORM_ENV_REPLY_H
#define LOCKSTORM_ENV_REPLY_H

#include <hiredis/hiredis.h>

#include "harness/env.h"

/* Texts stay `raw`'s, which has to live as long; lists are freed by env_reply_free. */
void env_reply_fill(struct env_reply *reply, const redisReply *raw);
void env_reply_free(const struct env_reply *reply);

#endif
