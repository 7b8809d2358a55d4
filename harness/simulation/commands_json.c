#include "harness/simulation/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEEPEST = 8 };

struct commands_json *commands_json_new(const struct schedule *schedule) {
    struct commands_json *self = malloc(sizeof *self);
    redisReader *reader = redisReaderCreate();
    if (!self || !reader) abort();
    *self = (struct commands_json){schedule, 0, json_array(), json_array(), json_array(), reader};
    return self;
}

void commands_json_free(struct commands_json *self) {
    if (!self) return;
    json_decref(self->list);
    json_decref(self->strikes);
    json_decref(self->orders);
    redisReaderFree(self->reader);
    free(self);
}

/* --- texts --- */

static void bytes_print(FILE *text, const char *bytes, size_t length) {
    for (size_t each = 0; each < length; each++) {
        unsigned char byte = (unsigned char)bytes[each];
        if (byte >= ' ' && byte <= '~') fputc(byte, text);
        else fprintf(text, "\\x%02x", byte);
    }
}

/* `depth`: how many arrays it is in. */
static void reply_print(FILE *text, const redisReply *reply, int depth) {
    switch (reply->type) {
    case REDIS_REPLY_NIL: fputs("nil", text); break;
    case REDIS_REPLY_INTEGER: fprintf(text, "%lld", reply->integer); break;
    case REDIS_REPLY_ARRAY:
        fputc('[', text);
        for (size_t each = 0; each < reply->elements && depth < DEEPEST; each++) {
            if (each > 0) fputs(", ", text);
            reply_print(text, reply->element[each], depth + 1);
        }
        fputc(']', text);
        break;
    case REDIS_REPLY_ERROR: fputs("error: ", text); /* fall through */
    default: bytes_print(text, reply->str, reply->str ? reply->len : 0);
    }
}

static json_t *reply_json(const redisReply *reply) {
    char *bytes = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&bytes, &length);
    if (!text) abort();
    reply_print(text, reply, 0);
    if (fclose(text) != 0) abort();
    json_t *value = json_string(bytes);
    free(bytes);
    return value;
}

/* --- commands --- */

static json_t *elements_json(const redisReply *reply) {
    json_t *words = json_array();
    for (size_t each = 0; reply && each < reply->elements; each++)
        json_array_append_new(words, reply_json(reply->element[each]));
    return words;
}

static json_t *words_json(redisReader *reader, const struct sent_command *command) {
    void *parsed = NULL;
    redisReaderFeed(reader, command->bytes, command->length);
    redisReaderGetReply(reader, &parsed);
    json_t *words = elements_json(parsed);
    freeReplyObject(parsed);
    return words;
}

void commands_json_tell(const struct world *world, const struct sent_command *command, enum heard_fate fate,
                        const redisReply *reply) {
    struct commands_json *self = world->heard;
    if (!self || world->opening) return;
    json_t *heard = json_pack("{s:I,s:i,s:b,s:i,s:o,s:s}", "mono_ns", (json_int_t)world_now_ns(world), "client",
                              command->client + 1, "watchdog", (int)command->by_watchdog, "node", command->node + 1,
                              "words", words_json(self->reader, command), "fate", heard_fate_name(fate));
    if (reply) json_object_set_new(heard, "answer", reply_json(reply));
    json_array_append_new(self->list, heard);
}

void commands_json_strike(const struct world *world, enum choice_kind fault, const struct sent_command *command,
                          const redisReply *message) {
    struct commands_json *self = world->heard;
    char line[SCHEDULE_LINE];
    if (!self) return;
    json_t *words = message ? elements_json(message) : words_json(self->reader, command);
    deviation_write(&SIMULATED_CHOICES, &self->schedule->deviations[self->schedule->count - 1], line);
    json_array_append_new(self->strikes, json_pack("{s:s,s:I,s:s,s:i,s:b,s:i,s:o}", "line", line, "mono_ns",
                                                   (json_int_t)world_now_ns(world), "fault", choice_fault_name(fault),
                                                   "client", command->client + 1, "watchdog", (int)command->by_watchdog,
                                                   "node", command->node + 1, "words", words));
}

/* --- deviations that are no faults --- */

/* What a step is about; the caller owns the value. */
static json_t *step_json(const struct commands_json *self, const struct world *world, struct choice step) {
    static const char *const WITHOUT[] = {[EXPLORED_TASK_READY] = "on",
                                          [EXPLORED_TASK_SLEEPING] = "wake",
                                          [EXPLORED_TASK_LISTENING] = "message",
                                          [EXPLORED_TASK_JOINING] = "on"};
    if (step.kind != CHOICE_TASK) return json_string("");
    const struct explored_task *task = world_task_const(world, step.who);
    bool is_sent = task->state == EXPLORED_TASK_SENDING;
    if (!is_sent && task->state != EXPLORED_TASK_AWAITING)
        return json_string(task->state == EXPLORED_TASK_ABSENT ? "" : WITHOUT[task->state]);
    json_t *words = words_json(self->reader, &task->command), *first = json_array_get(words, 0);
    json_t *named = json_sprintf("%s %s", is_sent ? "request" : "answer", first ? json_string_value(first) : "command");
    json_decref(words);
    return named;
}

void commands_json_order(const struct world *world) {
    struct commands_json *self = world->heard;
    if (!self || self->schedule->count == self->noted) return;
    self->noted = self->schedule->count;
    if (self->noted == 0) return; /* another schedule begins */
    const struct deviation *last = &self->schedule->deviations[self->noted - 1];
    char line[SCHEDULE_LINE];
    if (choice_is_fault(last->instead.kind)) return;
    deviation_write(&SIMULATED_CHOICES, last, line);
    json_array_append_new(self->orders,
                          json_pack("{s:s,s:o,s:o,s:i}", "line", line, "usual", step_json(self, world, last->usual),
                                    "instead", step_json(self, world, last->instead), "event", 0));
}
