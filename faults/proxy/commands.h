/* The commands of the control port. faults/proxy/README.md describes them for users. */
#pragma once

#include "faults/proxy/control_reply.h"
#include "faults/proxy/proxy.h"

/* What the control port has to do after a command. */
enum command_result {
    COMMAND_DONE,     /* send the reply */
    COMMAND_SETTLE,   /* reply when nothing is left to do */
    COMMAND_TARGETS,  /* the same, and name the targets that have had activity */
    COMMAND_QUIT,     /* send the reply and close the caller's connection */
    COMMAND_SHUTDOWN, /* send the reply and end the program */
};

/* Runs one command; `arguments` holds its words, at least one. */
enum command_result command_run(struct proxy *proxy, const struct span *arguments, size_t count,
                                struct control_reply *reply);
