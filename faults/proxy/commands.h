/* The commands of the control port. faults/proxy/README.md describes them for users. */
#pragma once

#include "faults/proxy/proxy.h"
#include "harness/resp_service/reply_text.h"

/* What the control port has to do after a command. */
enum command_result {
    COMMAND_DONE,     /* send the reply */
    COMMAND_SETTLE,   /* reply when nothing is left to do */
    COMMAND_TARGETS,  /* the same, and name the targets that have had activity */
    COMMAND_QUIT,     /* send the reply and close the caller's connection */
    COMMAND_SHUTDOWN, /* send the reply and end the program */
};

/* Runs one command: `count` words, at least one, each with a zero behind it. */
enum command_result command_run(struct proxy *proxy, const struct span *words, size_t count, struct reply_text *reply);
