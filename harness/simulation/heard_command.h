/* What servers heard and answered, command by command: for an observer of a schedule that is replayed. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/search/choice.h"

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

struct heard_command {
    int client;       /* index */
    bool by_watchdog; /* and not by the client's worker */
    int node;         /* or WORLD_RESOURCE */
    const char *command;
    size_t length;           /* in bytes, of the command as it is sent */
    const redisReply *reply; /* or NULL */
    enum heard_fate fate;
};

/* What a fault strikes that loses, delays, refuses or repeats one command, or loses one message. */
struct struck_command {
    enum choice_kind fault;
    int client; /* index */
    bool by_watchdog;
    int node;                  /* or WORLD_RESOURCE */
    const char *command;       /* NULL: a message is lost */
    size_t length;             /* in bytes, of the command */
    const redisReply *message; /* NULL: a command is struck */
};

/* `tell` is called at the moment at which the server hears the command, or answers it late, `strike` before the fault
 * acts. Everything that they get belongs to the world. */
struct command_witness {
    void (*tell)(void *context, const struct heard_command *heard);
    void (*strike)(void *context, const struct struck_command *struck);
    void *context;
};
