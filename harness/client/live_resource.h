/* The connection to the resource of a client that runs in a process of its own: RESP over a unix socket, with the
 * turns, limits and outcomes of a command to a node (harness/environment/redis_session.h). */
#pragma once

#include "harness/client/resource_connection.h"
#include "harness/environment/redis_session.h"

struct live_resource {
    struct live_task task;
    struct redis_session session;
    redisReply *raw;
    struct env_reply reply;
};

/* The connection of the worker that `task` is, to the socket at `address`, which stays the caller's. It connects with
 * the first command and stays where it is until live_resource_close. */
struct resource_connection live_resource_open(struct live_resource *resource, const struct live_task *task,
                                              const char *address);
void live_resource_close(struct live_resource *resource);
