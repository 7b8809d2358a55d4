#include "faults/common/admin_connection.h"

#include <stdarg.h>

redisContext *admin_connection_reach(const char *socket, int limit_ms, struct fault_report *report) {
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    if (!socket) return fault_fail(report, "this target has no socket for commands"), NULL;
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
    redisReply *reply = redisvCommand(link, format, arguments);
    va_end(arguments);
    if (!reply) return fault_fail(report, "no reply: %.100s", link->errstr);
    bool refused = reply->type == REDIS_REPLY_ERROR;
    if (refused) fault_fail(report, "%.200s", reply->str);
    freeReplyObject(reply);
    return !refused;
}
