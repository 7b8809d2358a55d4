/* The commands of a replayed schedule as JSON. */
#pragma once

#include <jansson.h>

#include "harness/search/schedule.h"
#include "harness/simulation/world.h"

/* A witness (struct command_witness) with this as its context appends an object for each command:
 *   {"mono_ns": N, "client": index from 1, "watchdog": bool, "node": index from 1, 0: the resource, "words": [text],
 *    "fate": text, "answer": text, if there is one}
 * and for each fault that strikes a command, or a message on a channel:
 *   {"line": of the schedule, "mono_ns": N, "fault": name, "client": index from 1, "watchdog": bool, "node": index from
 * 1, 0: the resource, "words": [text]} A byte that is no printable ASCII is \xNN in a text. */
struct commands_json {
    const struct world *world;
    const struct choice_space *space;
    const struct schedule *schedule; /* its last deviation is the one that is taking effect */
    json_t *list, *strikes;          /* arrays; the owner's */
    redisReader *reader;
};

void commands_json_tell(void *context, const struct sent_command *command, enum heard_fate fate,
                        const redisReply *reply);
void commands_json_strike(void *context, enum choice_kind fault, const struct sent_command *command,
                          const redisReply *message);
