#include "faults/common/admin_command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/common/admin_connection.h"

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

static void reply_fill(struct admin_reply *reply, const redisReply *received) {
    *reply = (struct admin_reply){.error = received->type == REDIS_REPLY_ERROR,
                                  .missing = received->type == REDIS_REPLY_NIL,
                                  .number = received->integer,
                                  .count = received->elements};
    text_add(reply, received);
    if (received->str) reply->number = strtoll(received->str, NULL, 10);
}

/* Frees the connection and what was received on it; both may be NULL. */
static bool conclude(redisContext *link, redisReply *received, struct admin_reply *reply, struct fault_report *report) {
    if (received) {
        reply_fill(reply, received);
        freeReplyObject(received);
    } else if (link) {
        fault_fail(report, "no reply: %.100s", link->err ? link->errstr : "none came in time");
    }
    if (link) redisFree(link);
    return received != NULL;
}

static bool command_list(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                         const char *format, va_list arguments) {
    redisContext *link = admin_connection_reach(socket, limit_ms, report);
    bool appended = link && redisvAppendCommand(link, format, arguments) == REDIS_OK;
    redisReply *received = appended ? admin_connection_read(link, limit_ms) : NULL;
    return conclude(link, received, reply, report);
}

bool admin_command(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format,
                   ...) {
    va_list arguments;
    va_start(arguments, format);
    bool is_reply = command_list(socket, ADMIN_LIMIT_MS, reply, report, format, arguments);
    va_end(arguments);
    return is_reply;
}

bool admin_command_within(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                          const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool is_reply = command_list(socket, limit_ms, reply, report, format, arguments);
    va_end(arguments);
    return is_reply;
}

bool admin_command_argv(const char *socket, int limit_ms, struct admin_reply *reply, struct fault_report *report,
                        int count, const char **words, const size_t *lengths) {
    redisContext *link = admin_connection_reach(socket, limit_ms, report);
    bool appended = link && redisAppendCommandArgv(link, count, words, lengths) == REDIS_OK;
    redisReply *received = appended ? admin_connection_read(link, limit_ms) : NULL;
    return conclude(link, received, reply, report);
}

bool admin_command_ok(const char *socket, struct admin_reply *reply, struct fault_report *report, const char *format,
                      ...) {
    va_list arguments;
    va_start(arguments, format);
    bool is_reply = command_list(socket, ADMIN_LIMIT_MS, reply, report, format, arguments);
    va_end(arguments);
    if (is_reply && reply->error) return fault_fail(report, "%.200s", reply->text);
    return is_reply;
}

void fault_probe_key(const struct fault_target *target, char key[PROBE_KEY]) {
    snprintf(key, PROBE_KEY, "%s:%s", target->probe ? target->probe : "lockstorm:probe", target->fault->row->name);
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
