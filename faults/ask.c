#include "faults/ask.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void text_add(struct answer *answer, const redisReply *reply) {
    size_t used = strlen(answer->text), room = sizeof answer->text - used;
    if (reply->type == REDIS_REPLY_INTEGER) {
        snprintf(answer->text + used, room, "%lld", reply->integer);
    } else if (reply->str) {
        snprintf(answer->text + used, room, "%s", reply->str);
    }
    for (size_t each = 0; each < reply->elements; each++) {
        text_add(answer, reply->element[each]);
        used = strlen(answer->text);
        if (each + 1 < reply->elements) snprintf(answer->text + used, sizeof answer->text - used, "\n");
    }
}

static void answer_fill(struct answer *answer, const redisReply *reply) {
    *answer = (struct answer){.error = reply->type == REDIS_REPLY_ERROR,
                              .missing = reply->type == REDIS_REPLY_NIL,
                              .number = reply->integer,
                              .count = reply->elements};
    text_add(answer, reply);
    if (reply->str) answer->number = strtoll(reply->str, NULL, 10);
}

static redisContext *reach(const char *socket, int limit_ms, struct fault_report *report) {
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    if (!socket) return fault_fail(report, "this target has no socket to ask"), NULL;
    redisContext *link = redisConnectUnixWithTimeout(socket, limit);
    if (link && !link->err && redisSetTimeout(link, limit) == REDIS_OK) return link;
    fault_fail(report, "%.100s: %.100s", socket, link ? link->errstr : "out of memory");
    if (link) redisFree(link);
    return NULL;
}

/* Takes the reply and the connection, both may be NULL. */
static bool conclude(redisContext *link, redisReply *reply, struct answer *answer, struct fault_report *report) {
    if (reply) {
        answer_fill(answer, reply);
        freeReplyObject(reply);
    } else if (link) {
        fault_fail(report, "no answer: %.100s", link->errstr);
    }
    if (link) redisFree(link);
    return reply != NULL;
}

static bool ask_list(const char *socket, int limit_ms, struct answer *answer, struct fault_report *report,
                     const char *format, va_list arguments) {
    redisContext *link = reach(socket, limit_ms, report);
    redisReply *reply = link ? redisvCommand(link, format, arguments) : NULL;
    return conclude(link, reply, answer, report);
}

bool ask(const char *socket, struct answer *answer, struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool answered = ask_list(socket, ASK_LIMIT_MS, answer, report, format, arguments);
    va_end(arguments);
    return answered;
}

bool ask_within(const char *socket, int limit_ms, struct answer *answer, struct fault_report *report,
                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool answered = ask_list(socket, limit_ms, answer, report, format, arguments);
    va_end(arguments);
    return answered;
}

bool ask_words(const char *socket, int limit_ms, struct answer *answer, struct fault_report *report, int count,
               const char **words, const size_t *lengths) {
    redisContext *link = reach(socket, limit_ms, report);
    redisReply *reply = link ? redisCommandArgv(link, count, words, lengths) : NULL;
    return conclude(link, reply, answer, report);
}

bool ask_good(const char *socket, struct answer *answer, struct fault_report *report, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bool answered = ask_list(socket, ASK_LIMIT_MS, answer, report, format, arguments);
    va_end(arguments);
    if (answered && answer->error) return fault_fail(report, "%.200s", answer->text);
    return answered;
}

void probe_key(const struct fault_target *target, const char *fault, char key[PROBE_KEY]) {
    snprintf(key, PROBE_KEY, "%s:%s", target->probe ? target->probe : "lockstorm:probe", fault);
}

bool ask_setting(const char *socket, const char *name, char *value, size_t size, struct fault_report *report) {
    struct answer answer;
    if (!ask_good(socket, &answer, report, "CONFIG GET %s", name)) return false;
    const char *found = strchr(answer.text, '\n');
    if (answer.count != 2 || !found) return fault_fail(report, "the server has no setting %s", name);
    snprintf(value, size, "%s", found + 1);
    return true;
}

bool answer_line(const struct answer *answer, const char *name, char *value, size_t size) {
    size_t length = strlen(name);
    for (const char *line = answer->text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) != 0 || line[length] != ':') continue;
        size_t taken = strcspn(line + length + 1, "\r\n");
        snprintf(value, size, "%.*s", (int)taken, line + length + 1);
        return true;
    }
    return false;
}
