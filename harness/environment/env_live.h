/* The live environment: real sockets through hiredis, the shared page's clock, a thread for the watchdog. */
#pragma once

#include "harness/environment/adapter_session.h"
#include "harness/environment/env_ops.h"

enum { ENV_LIVE_NODES = 16 };

struct env_live_options {
    struct task worker;
    struct task watchdog; /* place NULL: env_watchdog_start returns false */
    /* Where the lock's nodes are: paths of unix sockets, or "host:port" (ZooKeeper), or libpq's connection strings
     * (PostgreSQL). They stay the caller's. */
    const char *nodes[ENV_LIVE_NODES];
    int node_count;
    struct task_slot *host; /* where this host's clocks stand; NULL: they are right */
    int64_t reply_limit_ms;
    uint64_t stream; /* which stream of the trial's random numbers */
    struct env_hearer hearer;
    struct adapter_launch adapter;
};

/* The worker's environment. Connections are made at the first command to a node and again after one was lost. Freed by
 * env_live_close, which first stops the watchdog. */
struct env *env_live_open(const struct env_live_options *options);
void env_live_close(struct env *env);

/* How long commands wait for their replies from now on: env_reply_limit_ms. Not while a watchdog runs. */
void env_live_set_reply_limit(struct env *env, int64_t reply_limit_ms);
