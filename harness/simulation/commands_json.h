/* The commands of a replayed schedule as JSON. */
#pragma once

#include <jansson.h>

#include "harness/search/schedule.h"
#include "harness/simulation/world_state.h"

/* What servers heard. An object is appended for each command:
 *   {"mono_ns": N, "client": index from 1, "watchdog": bool, "node": index from 1, 0: the resource, "words": [text],
 *    "fate": text, "answer": text, if there is one}
 * and for each fault that strikes a command, or a message on a channel:
 *   {"line": of the schedule, "mono_ns": N, "fault": name, "client": index from 1, "watchdog": bool, "node": index from
 * 1, 0: the resource, "words": [text]} A byte that is no printable ASCII is \xNN in a text. */
struct commands_json {
    const struct schedule *schedule; /* its last deviation is the one that is taking effect */
    json_t *list, *strikes;          /* arrays; owned */
    redisReader *reader;
};

/* Freed with commands_json_free, which takes NULL, too. */
struct commands_json *commands_json_new(const struct schedule *schedule);
void commands_json_free(struct commands_json *self);
/* Call it when a server hears a command, or answers it late. `reply` may be NULL. Nothing is noted of a world that
 * nobody watches, and while locks are being opened. */
void commands_json_tell(const struct world *world, const struct sent_command *command, enum heard_fate fate,
                        const redisReply *reply);
/* A fault loses, delays, refuses or repeats the command, or loses the message, which has come from its node. Call it
 * before the fault acts. `message` is NULL: the command is struck. */
void commands_json_strike(const struct world *world, enum choice_kind fault, const struct sent_command *command,
                          const redisReply *message);
