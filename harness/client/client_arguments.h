/* The arguments of a program that hosts clients: one (client_main.c), or many (harness/client_group). */
#pragma once

#include "harness/environment/env_live.h"
#include "harness/locks/common/lock.h"

struct client_arguments {
    bool fixed_lease, checks_validity;
    const char *history, *page, *lock, *plugin, *store;
    const char *actors; /* of many clients: a file with the index of each one's name, one a line */
    char *resource;
    size_t resource_length;
    struct env_live_options env;
    int64_t actor, resource_id, lease_ms, permits, task, life, turn_fd, watchdog_fd, yield_fd;
    int64_t open_limit_ms; /* the reply limit while the lock is opened, on which no verdict rests; 0: the usual one */
};

/* Fills *arguments; texts stay argv's, and `resource` is the caller's to free. False: they are not usable, which was
 * said on standard error if they say what. */
bool client_arguments_parse(int argc, char **argv, struct client_arguments *arguments);

/* The lock to host: of the table, an adapter's, or a plug-in's; NULL for an unknown name. Ends the process when the
 * plug-in cannot be loaded. */
const struct lock_type *client_arguments_lock(const struct client_arguments *arguments);
