#include "harness/scheduler/server_connection.h"

#include <hiredis/hiredis.h>

#include "harness/scheduler/hang_limit.h"

static bool write_appended(redisContext *redis) {
    int written = 0;
    while (!written)
        if (redisBufferWrite(redis, &written) != REDIS_OK) return false;
    return true;
}

redisReply *server_connection_read(redisContext *redis) {
    void *reply = NULL;
    int64_t until_ns = hang_limit_deadline_ns(FENCE_LIMIT_MS);
    if (redis->err || !write_appended(redis)) return NULL;
    while (redisGetReplyFromReader(redis, &reply) == REDIS_OK && !reply)
        if (!hang_limit_await_readable(redis->fd, until_ns) || redisBufferRead(redis) != REDIS_OK) return NULL;
    return reply;
}

/* The name distinguishes this connection from the clients' in a server's list of connections; the store keeps no such
 * list. */
static void open_connection(struct server_connection *connection) {
    connection->redis = redisConnectUnix(connection->address);
    if (!connection->redis || connection->redis->err) return;
    redisAppendCommand(connection->redis, "CLIENT SETNAME lockstorm");
    redisReply *named = server_connection_read(connection->redis);
    if (named) freeReplyObject(named);
}

void server_connection_close(struct server_connection *connection) {
    if (connection->redis) redisFree(connection->redis);
    connection->redis = NULL;
}

bool server_connection_ping(struct server_connection *connection) {
    server_connection_ping_send(connection);
    return server_connection_ping_receive(connection);
}

void server_connection_ping_send(struct server_connection *connection) {
    if (!connection->redis) open_connection(connection);
    if (!connection->redis || connection->redis->err) return;
    redisAppendCommand(connection->redis, "PING");
    write_appended(connection->redis);
}

bool server_connection_ping_receive(struct server_connection *connection) {
    redisReply *pong = connection->redis ? server_connection_read(connection->redis) : NULL;
    if (pong) {
        freeReplyObject(pong);
        return true;
    }
    server_connection_close(connection);
    return false;
}

/* Without a limit of the server's: the server's clock stands still, so a limit would never be reached either. */
bool server_connection_await_replicas(struct server_connection *connection, int replicas) {
    redisAppendCommand(connection->redis, "WAIT %d 0", replicas);
    redisReply *reply = server_connection_read(connection->redis);
    bool acknowledged = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= replicas;
    if (reply) freeReplyObject(reply);
    return acknowledged && server_connection_ping(connection);
}
