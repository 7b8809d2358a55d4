#include "faults/common/admin_command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/hang_limit.h"

/* --- a connection --- */

redisReply *admin_connection_read(redisContext *link, int limit_ms) {
    void *reply = NULL;
    int64_t until_ns = hang_limit_deadline_ns(limit_ms);
    if (link->err) return NULL;
    for (int written = 0; !written;)
        if (redisBufferWrite(link, &written) != REDIS_OK) return NULL;
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

redisContext *admin_connection_open(const char *socket, struct fault_report *report) {
    redisContext *link = admin_connection_reach(socket, ADMIN_LIMIT_MS, report);
    if (link && admin_connection_command(link, report, "CLIENT SETNAME " ADMIN_CONNECTION_NAME)) return link;
    if (link) redisFree(link);
    return NULL;
}

/* The reply to what was appended; NULL with a sentence. */
static redisReply *reply_await(redisContext *link, bool appended, int limit_ms, struct fault_report *report) {
    redisReply *reply = appended ? admin_connection_read(link, limit_ms) : NULL;
    if (!reply) fault_fail(report, "no reply: %.100s", link->err ? link->errstr : "none came in time");
    return reply;
}

bool admin_connection_command(redisContext *link, struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool appended = redisvAppendCommand(link, format, arguments) == REDIS_OK;
    va_end(arguments);
    redisReply *reply = reply_await(link, appended, ADMIN_LIMIT_MS, report);
    if (!reply) return false;
    bool refused = reply->type == REDIS_REPLY_ERROR;
    if (refused) fault_fail(report, "%.200s", reply->str);
    freeReplyObject(reply);
    return !refused;
}

/* --- one command --- */

static void text_add(struct admin_reply *reply, const redisReply *part) {
    size_t used = strlen(reply->text), room = sizeof reply->text - used;
    if (part->type == REDIS_REPLY_INTEGER) {
        snprintf(reply->text + used, room, "%lld", part->integer);
    } else if (part->str) {
        snprintf(reply->text + used, room, "%s", part->str);
    }
    for (size_t each = 0; each < part->elements; each++) {
        text_add(reply, part->element[each]);
        used = strlen(reply->text);
        if (each + 1 < part->elements) snprintf(reply->text + used, sizeof reply->text - used, "\n");
    }
}

/* Takes the reply to the only command of a connection, and frees that. */
static bool conclude(redisContext *link, bool appended, int limit_ms, struct admin_reply *reply,
                     struct fault_report *report) {
    redisReply *received = reply_await(link, appended, limit_ms, report);
    redisFree(link);
    if (received && reply) {
        *reply = (struct admin_reply){.error = received->type == REDIS_REPLY_ERROR,
                                      .missing = received->type == REDIS_REPLY_NIL,
                                      .number = received->str ? strtoll(received->str, NULL, 10) : received->integer,
                                      .count = received->elements};
        text_add(reply, received);
    }
    freeReplyObject(received);
    return received != NULL;
}

static bool command_list(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                         const char *format, va_list arguments) {
    redisContext *link = admin_connection_reach(socket, limit_ms, report);
    return link && conclude(link, redisvAppendCommand(link, format, arguments) == REDIS_OK, limit_ms, reply, report);
}

bool admin_command_within(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                          const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool is_reply = command_list(socket, limit_ms, reply, report, format, arguments);
    va_end(arguments);
    return is_reply;
}

bool admin_command_words(const char *socket, struct admin_reply *reply, struct fault_report *report, int count,
                         const char **words) {
    redisContext *link = admin_connection_reach(socket, ADMIN_LIMIT_MS, report);
    return link &&
           conclude(link, redisAppendCommandArgv(link, count, words, NULL) == REDIS_OK, ADMIN_LIMIT_MS, reply, report);
}

bool admin_command_ok(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format,
                      ...) {
    struct admin_reply unused;
    va_list arguments;
    if (!reply) reply = &unused;
    va_start(arguments, format);
    bool is_reply = command_list(socket, ADMIN_LIMIT_MS, reply, report, format, arguments);
    va_end(arguments);
    if (is_reply && reply->error) return fault_fail(report, "%.200s", reply->text);
    return is_reply;
}

struct probe_key fault_probe_key(const struct fault_target *target) {
    struct probe_key key;
    snprintf(key.text, sizeof key.text, "%s:%s", target->probe ? target->probe : "lockstorm:probe",
             target->fault->row->name);
    return key;
}

bool admin_write_refused(const struct fault_target *target, const char *const *words, struct fault_report *report) {
    struct admin_reply reply;
    const struct probe_key key = fault_probe_key(target);
    if (!admin_command(target->socket, &reply, report, "SET %s written", key.text)) return false;
    snprintf(report->text, sizeof report->text, "a write is answered: %.200s", reply.text);
    for (; *words; words++)
        if (strncmp(reply.text, *words, strlen(*words)) == 0) return true;
    admin_command(target->socket, NULL, NULL, "DEL %s", key.text);
    return false;
}

bool admin_setting_read(const char *socket, const char *name, char *value, size_t size, struct fault_report *report) {
    struct admin_reply reply;
    if (!admin_command_ok(socket, &reply, report, "CONFIG GET %s", name)) return false;
    const char *found = strchr(reply.text, '\n');
    if (reply.count != 2 || !found) return fault_fail(report, "the server has no setting %s", name);
    snprintf(value, size, "%s", found + 1);
    return true;
}

bool admin_reply_field(const struct admin_reply *reply, const char *name, char *value, size_t size) {
    size_t length = strlen(name);
    for (const char *line = reply->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) != 0 || line[length] != ':') continue;
        size_t taken = strcspn(line + length + 1, "\r\n");
        snprintf(value, size, "%.*s", (int)taken, line + length + 1);
        return true;
    }
    return false;
}

bool admin_info_read(const char *socket, const char *section, const char *field, char *value, size_t size,
                     struct fault_report *report) {
    struct admin_reply reply;
    value[0] = '\0';
    if (!admin_command_ok(socket, &reply, report, "INFO %s", section)) return false;
    admin_reply_field(&reply, field, value, size);
    return true;
}
