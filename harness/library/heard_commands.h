/* What servers heard of programs and answered: the commands of a schedule that is watched, as JSON.
 *
 * Of servers that speak RESP. Answers come in the order of the commands of their connection. What nobody has asked for,
 * as a message on a channel, is left out. */
#pragma once

#include <jansson.h>

#include "harness/library_service/message_format.h"
#include "harness/scheduler/shared_page.h"
#include "harness/search/heard_fate.h"

/* Of one connection. Zeroed: nothing was heard. */
struct heard_commands {
    json_t *unanswered; /* owned; NULL: nobody watches, or nothing is unanswered */
    const struct shared_page *page;
    int64_t began_ns; /* the page's clock at the beginning of the schedule; times count from there */
};

/* A command goes on, or does not. Appends to `list` an object:
 *   {"mono_ns": N, "client": index from 1, "watchdog": false, "node": index from 1, "words": [text], "fate": text}
 * and when its answer comes "answer": text, and "answered_ns": N if the client gets it at a later time. In texts a byte
 * that is no printable ASCII is \xNN. `client`, `node`: from 0. page and began_ns are set. */
void heard_request(struct heard_commands *heard, json_t *list, struct span request, int client, int node,
                   enum heard_fate fate);
/* An answer reaches the program, or (`reaches` is false) is lost on its way. */
void heard_answer(struct heard_commands *heard, struct span answer, bool reaches);
/* No answer reaches the program any more. */
void heard_end(struct heard_commands *heard);
