/* The scheduler's own connection to a server that speaks RESP. It carries PING and WAIT, which only ask whether the
 * server has dealt with what it received. Commands of locks never pass through here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SERVERS_MAX = 32 }; /* in one trial */
/* How long a server, the proxy or a process may take to answer or to become idle (hang_limit.h). */
enum { FENCE_LIMIT_MS = 60000 };

struct redisContext;
struct redisReply;

/* Zero but for the address: not connected. */
struct server_connection {
    char address[108]; /* path of a unix socket */
    struct redisContext *redis;
};

/* Sends PING and reads the answer; connects first if there is no connection. False: no answer within FENCE_LIMIT_MS, or
 * the connection was lost; it is closed then. */
bool server_connection_ping(struct server_connection *connection);
/* The same in two steps, so that several servers can be asked at once. Sending never fails: receiving does. */
void server_connection_ping_send(struct server_connection *connection);
bool server_connection_ping_receive(struct server_connection *connection);
/* Returns true when this number of replicas has acknowledged everything that the server had sent them when it was last
 * asked PING, and the server has written what clients that sat in WAIT were owed for that. Only when connected. */
bool server_connection_await_replicas(struct server_connection *connection, int replicas);
/* For a connection of hiredis' own: sends what was appended to it and reads one reply, which the caller frees. NULL:
 * none within FENCE_LIMIT_MS, or the connection was lost; it is of no more use then. */
struct redisReply *server_connection_read(struct redisContext *redis);
void server_connection_close(struct server_connection *connection);
