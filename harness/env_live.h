/* The live environment: real sockets through hiredis, the stage's clock, a thread for the watchdog. */
#ifndef LOCKSTORM_ENV_LIVE_H
#define LOCKSTORM_ENV_LIVE_H

#include "harness/env.h"
#include "harness/strand.h"

enum { ENV_LIVE_NODES = 16 };

struct env_live_options {
    struct strand worker;
    struct strand watchdog;            /* place NULL: env_watchdog_start returns false */
    const char *nodes[ENV_LIVE_NODES]; /* unix socket paths; stay the caller's */
    int node_count;
    int hidden_nodes;          /* the last so many are not counted by env_nodes: the store */
    struct strand_place *host; /* where this host's clocks stand; NULL: they are right */
    int64_t reply_limit_ms;
    uint64_t stream; /* which stream of the trial's random numbers */
    /* Called when the lock tells its holder until when to believe; in the watchdog's thread too. May be NULL. */
    void (*told_validity)(void *holder, int64_t valid_until_ns);
    void *holder;
};

/* The worker's environment. Connections are made at the first command to a node and again after one was lost. Freed by
 * env_live_close, which first stops the watchdog. */
struct env *env_live_open(const struct env_live_options *options);
void env_live_close(struct env *env);

#endif
