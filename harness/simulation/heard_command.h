/* What servers heard and answered, command by command: for an observer of a schedule that is replayed. */
#pragma once

#include "harness/search/choice.h"
#include "harness/simulation/explored_task.h"

enum heard_fate {
    HEARD_ANSWERED,
    HEARD_ANSWER_LOST,   /* executed and answered; the answer does not reach the client */
    HEARD_WAITS,         /* a blocking command; the server answers later */
    HEARD_ANSWERED_LATE, /* the answer to a blocking command */
    HEARD_LATE,          /* executed when nobody waits for its answer: a copy, or one that its client has given up */
    HEARD_LOST,          /* never executed: it was dropped, or its connection was */
    HEARD_REFUSED,       /* never executed: the server answers with an error */
    HEARD_FATES
};

/* Everything that these functions get belongs to the world. */
struct command_witness {
    /* A server hears the command, or answers it late. `reply` may be NULL. */
    void (*tell)(void *context, const struct sent_command *command, enum heard_fate fate, const redisReply *reply);
    /* A fault loses, delays, refuses or repeats the command, or loses the message, which has come from its node. It has
     * not acted yet. `message` is NULL: the command is struck. */
    void (*strike)(void *context, enum choice_kind fault, const struct sent_command *command,
                   const redisReply *message);
    void *context;
};
