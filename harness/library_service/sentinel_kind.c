#include "harness/library_service/library_server.h"

/* A Redis Sentinel (lockstorm/servers/still_topology.py). It has no data, and its clock stands still: it answers which
 * server is the master, and neither watches that nor speaks to other sentinels. */

static void sentinel_open(struct library_server *server) {
    node_open_still(&server->node, server->address);
}

static void nothing_flush(struct library_server *server) {
    (void)server;
}

static void nothing_left(struct library_server *server, residue_taken *taken, void *taker) {
    (void)server, (void)taken, (void)taker;
}

const struct server_kind SENTINEL_KIND = {
    .service = "redis-sentinel",
    .requests = &RESP_REQUEST_FORMAT,
    .answers = &RESP_REPLY_FORMAT,
    .is_still = true,
    .open = sentinel_open,
    .close = node_server_close,
    .end = nothing_flush,
    .flush = nothing_flush,
    .settle = node_server_settle,
    .residue = nothing_left,
};
