#include "faults/own_link.h"

#include <stdarg.h>

redisContext *own_link_open(const char *socket, int limit_ms, struct fault_report *report) {
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    if (!socket) return fault_fail(report, "this target has no socket to ask"), NULL;
    redisContext *link = redisConnectUnixWithTimeout(socket, limit);
    if (link && !link->err && redisSetTimeout(link, limit) == REDIS_OK &&
        own_link_do(link, report, "CLIENT SETNAME " OWN_NAME))
        return link;
    if (!link || link->err) fault_fail(report, "%.100s: %.100s", socket, link ? link->errstr : "out of memory");
    if (link) redisFree(link);
    return NULL;
}

bool own_link_do(redisContext *link, struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(link, format, arguments);
    va_end(arguments);
    if (!reply) return fault_fail(report, "no answer: %.100s", link->errstr);
    bool refused = reply->type == REDIS_REPLY_ERROR;
    if (refused) fault_fail(report, "%.200s", reply->str);
    freeReplyObject(reply);
    return !refused;
}
