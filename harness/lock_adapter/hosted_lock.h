/* A C lock as a lock object of a library: an instance with an environment of its own, real sockets and this machine's
 * clocks. Used by one thread only. */
#pragma once

#include "harness/environment/env_live.h"
#include "harness/locks/common/lock.h"

enum { HOSTED_LOCKS = SHARED_PAGE_TASKS / 2 }; /* most that there are at once: each has two tasks */

/* What all lock objects of the program have in common. */
struct lock_site {
    const struct lock_type *type;
    struct shared_page *page; /* of this process alone, in real time */
    char *nodes[ENV_LIVE_NODES];
    int node_count;
    char *resource; /* of `open`, zero-terminated */
    int64_t lease_ms, permits;
    bool fixed_lease;
};

struct hosted_lock {
    int number; /* the lock object's, as its questions say */
    struct env *env;
    struct lock lock;
    struct lock_options options; /* as it was made; a lock may change its own */
    bool opened;
    bool acquires; /* it has been asked for an acquire */
    int place;     /* of its two tasks on the page */
    int turn_fd, watchdog_fd, yield_fd;
    char *resource;
    int64_t token; /* of the latest grant; 0: it holds none */
};

/* Makes the lock object; nothing is sent yet. lease_ms, fixed_lease: as in struct lock_options. The resource is copied.
 * Ends the program if there are no descriptors. */
void hosted_lock_make(struct hosted_lock *hosted, const struct lock_site *site, const char *resource, int64_t lease_ms,
                      bool fixed_lease);

/* Opens the lock if that has not succeeded yet; false: a node did not answer. */
bool hosted_lock_ready(struct hosted_lock *hosted, const struct lock_site *site);

/* Ends its watchdog and its connections. It releases nothing. */
void hosted_lock_end(struct hosted_lock *hosted);
