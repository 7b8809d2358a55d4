/* What a server that speaks RESP sends on a connection without having been asked there: a message on a subscribed
 * channel, or the confirmation of SUBSCRIBE or UNSUBSCRIBE. Messages that arrive while a task waits for something else
 * are kept in order of arrival. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

struct redis_push_buffer {
    redisReply **pushes;
    size_t count, room;
};

/* Whether a reply is a push of this kind: "message", "subscribe" or "unsubscribe", in any case. */
bool redis_push_is(const redisReply *reply, const char *kind);

/* The buffer owns what it keeps; redis_push_take gives the oldest to the caller, NULL: it is empty. */
void redis_push_keep(struct redis_push_buffer *buffer, redisReply *push);
redisReply *redis_push_take(struct redis_push_buffer *buffer);
void redis_push_clear(struct redis_push_buffer *buffer);
