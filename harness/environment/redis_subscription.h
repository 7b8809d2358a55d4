/* The subscriptions of one task to channels of one server that speaks RESP, on a connection of their own. */
#pragma once

#include "harness/environment/redis_push.h"
#include "harness/environment/redis_session.h"

struct redis_subscription {
    struct redis_session session;
    struct redis_push_buffer pushes; /* messages that came while something else was waited for */
};

/* As env_subscribe (`verb`: "SUBSCRIBE") and env_unsubscribe describe them. Without a confirmation within the task's
 * reply limit the connection ends, and every subscription with it. */
enum outcome redis_subscription_change(struct redis_subscription *self, const char *verb, const char *channel,
                                       size_t length);
void redis_subscription_end(struct redis_subscription *self, const char *channel, size_t length);

/* The next message on any of the channels, as the push that brought it (its third element is the message); the caller
 * frees. NULL: none came in time, or the connection was lost, and every subscription with it. */
redisReply *redis_subscription_message(struct redis_subscription *self, int64_t deadline_ns);

/* Ends the connection and drops what was kept. */
void redis_subscription_close(struct redis_subscription *self);
