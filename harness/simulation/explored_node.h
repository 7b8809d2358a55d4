/* A node as clients see it: a master and its replicas, each a real server. One of them leads. */
#pragma once

#include "harness/simulation/node.h"
#include "harness/simulation/replication_stream.h"

enum { WORLD_REPLICAS = 2, WORLD_SERVERS = 1 + WORLD_REPLICAS /* of a node: server 0 is the first master */ };

struct explored_node {
    struct node servers[WORLD_SERVERS];
    struct stream streams[WORLD_SERVERS][WORLD_SERVERS]; /* [from][to] */
    int leads;                                           /* the server that clients talk to */
    int life;                                            /* how often all connections to the leading server were lost */
    int64_t stalled_until_ns[WORLD_SERVERS];             /* no replication arrives at the server before */
};
