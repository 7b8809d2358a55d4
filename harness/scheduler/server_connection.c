#include "harness/scheduler/server_connection.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "harness/scheduler/clock.h"

static const struct timeval LIMIT = {.tv_sec = FENCE_LIMIT_S};

/* The name distinguishes this connection from the clients' in a server's list of connections; the store keeps no such
 * list. */
static void open_connection(struct server_connection *connection) {
    connection->redis = redisConnectUnixWithTimeout(connection->address, LIMIT);
    if (!connection->redis || connection->redis->err) return;
    redisSetTimeout(connection->redis, LIMIT);
    redisReply *named = redisCommand(connection->redis, "CLIENT SETNAME lockstorm");
    if (named) freeReplyObject(named);
}

void server_connection_close(struct server_connection *connection) {
    if (connection->redis) redisFree(connection->redis);
    connection->redis = NULL;
}

bool server_connection_ping(struct server_connection *connection) {
    if (!connection->redis) open_connection(connection);
    bool usable = connection->redis && !connection->redis->err;
    redisReply *pong = usable ? redisCommand(connection->redis, "PING") : NULL;
    if (pong) return freeReplyObject(pong), true;
    server_connection_close(connection);
    return false;
}

void server_connection_ping_send(struct server_connection *connection) {
    int written = 0;
    if (!connection->redis) open_connection(connection);
    if (!connection->redis || connection->redis->err) return;
    redisAppendCommand(connection->redis, "PING");
    while (!written && redisBufferWrite(connection->redis, &written) == REDIS_OK) continue;
}

bool server_connection_ping_receive(struct server_connection *connection) {
    void *pong = NULL;
    bool usable = connection->redis && !connection->redis->err;
    if (usable && redisGetReply(connection->redis, &pong) == REDIS_OK && pong) return freeReplyObject(pong), true;
    server_connection_close(connection);
    return false;
}

/* Without a limit: the server's clock stands still, so a limit would never be reached either. */
bool server_connection_await_replicas(struct server_connection *connection, int replicas) {
    redisReply *reply = redisCommand(connection->redis, "WAIT %d 0", replicas);
    bool acknowledged = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= replicas;
    if (reply) freeReplyObject(reply);
    return acknowledged && server_connection_ping(connection);
}

bool server_connection_read_time(struct server_connection *connection, int64_t *wall_ns) {
    redisReply *reply = redisCommand(connection->redis, "TIME");
    bool answered = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    if (answered)
        *wall_ns = strtoll(reply->element[0]->str, NULL, 10) * CLOCK_NS_PER_S +
                   strtoll(reply->element[1]->str, NULL, 10) * CLOCK_NS_PER_US;
    if (reply) freeReplyObject(reply);
    return answered;
}
