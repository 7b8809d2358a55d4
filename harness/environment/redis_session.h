/* A connection of one task to a server that speaks RESP: a redis-server, or the resource. It is made at the first
 * command and made anew when it has ended: a connection to Redis carries no state that a caller could lose. */
#pragma once

#include <hiredis/hiredis.h>

#include "harness/environment/live_task.h"

/* The caller fills task and address, which outlive the session, and leaves the rest 0. */
struct redis_session {
    struct live_task *task;
    const char *address;   /* the path of a unix socket */
    redisContext *context; /* NULL: not connected */
};

/* Sends one encoded command and waits for its reply; limit_ns (INT64_MAX: none) and may_block as env_command_blocking
 * describes them. The caller frees the reply. NULL: none came in time, or the connection was lost; the command was
 * sent at most once, and the next one begins a new connection. */
redisReply *redis_session_ask(struct redis_session *session, const char *command, size_t length, int64_t limit_ns,
                              bool may_block);

/* Ends the connection; harmless without one. */
void redis_session_close(struct redis_session *session);

/* The parts of redis_session_ask, for a connection that is subscribed. False: no connection can be made. */
bool redis_session_connect(struct redis_session *session);
void redis_session_send(const struct redis_session *session, const char *bytes, size_t length);
/* The next reply, which the caller frees. NULL: none came before give_up_ns, or the connection was lost. At look_ns it
 * looks once for a reply that the server sends by its own clock. */
redisReply *redis_session_receive(struct redis_session *session, int64_t look_ns, int64_t give_up_ns, bool may_block);
