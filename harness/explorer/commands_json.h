/* The commands of a replayed schedule as JSON. */
#ifndef LOCKSTORM_EXPLORER_COMMANDS_JSON_H
#define LOCKSTORM_EXPLORER_COMMANDS_JSON_H

#include <jansson.h>

#include "harness/simulation/world.h"

/* A witness (struct command_witness) with this as its context appends an object for each command:
 *   {"mono_ns": N, "client": index from 1, "watchdog": bool, "node": index from 1, 0: the resource, "words": [text],
 *    "fate": text, "answer": text, if there is one}
 * A byte that is no printable ASCII is \xNN in a text. */
struct commands_json {
    const struct world *world;
    json_t *list; /* an array; the owner's */
    redisReader *reader;
};

void commands_json_tell(void *context, const struct heard_command *heard);

#endif
