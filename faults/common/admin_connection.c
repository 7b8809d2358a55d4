#include "faults/common/admin_connection.h"

#include <stdarg.h>

#include "harness/scheduler/hang_limit.h"

static bool write_command(redisContext *link) {
    int written = 0;
    while (!written)
        if (redisBufferWrite(link, &written) != REDIS_OK) return false;
    return true;
}

redisReply *admin_connection_read(redisContext *link, int limit_ms) {
    void *reply = NULL;
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    if (link->err || !write_command(link)) return NULL;
    while (redisGetReplyFromReader(link, &reply) == REDIS_OK && !reply)
        if (!hang_limit_await_readable(link->fd, until_ns) || redisBufferRead(link) != REDIS_OK) return NULL;
    return reply;
}

redisContext *admin_connection_reach(const char *socket, int limit_ms, struct fault_report *report) {
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    if (!socket) {
        fault_fail(report, "this target has no socket for commands");
        return NULL;
    }
    redisContext *link = redisConnectUnixWithTimeout(socket, limit);
    if (link && !link->err && redisSetTimeout(link, limit) == REDIS_OK) return link;
    fault_fail(report, "%.100s: %.100s", socket, link ? link->errstr : "out of memory");
    if (link) redisFree(link);
    return NULL;
}

redisContext *admin_connection_open(const char *socket, int limit_ms, struct fault_report *report) {
    redisContext *link = admin_connection_reach(socket, limit_ms, report);
    if (link && admin_connection_command(link, report, "CLIENT SETNAME " ADMIN_CONNECTION_NAME)) return link;
    if (link) redisFree(link);
    return NULL;
}

bool admin_connection_command(redisContext *link, struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool appended = redisvAppendCommand(link, format, arguments) == REDIS_OK;
    va_end(arguments);
    redisReply *reply = appended ? admin_connection_read(link, ADMIN_LIMIT_MS) : NULL;
    if (!reply) return fault_fail(report, "no reply: %.100s", link->err ? link->errstr : "none came in time");
    bool refused = reply->type == REDIS_REPLY_ERROR;
    if (refused) fault_fail(report, "%.200s", reply->str);
    freeReplyObject(reply);
    return !refused;
}
