/* A client's own connection to the resource that the lock protects. It is no node of the lock's environment, so a lock
 * cannot reach the resource. A client that runs in a process of its own has a socket (harness/client/live_resource.h);
 * in the explorer a command is a step of the schedule, like a command of the lock.
 *
 * The resource speaks RESP; harness/resource/resource.h lists its commands. */
#pragma once

#include "harness/environment/env.h"

struct resource_connection {
    /* Sends one encoded command and waits for its reply, which the connection owns until the next command. Never NULL;
     * UNKNOWN: no reply within the reply limit, or the connection was lost. */
    const struct env_reply *(*exchange)(void *holder, const char *command, size_t length);
    void *holder;
};

/* Formats one command as env_command does, and exchanges it for its reply. By the client's worker only. */
const struct env_reply *resource_exchange(const struct resource_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 0)));
