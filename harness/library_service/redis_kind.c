#include <stdio.h>
#include <string.h>

#include "harness/library_service/library_server.h"

enum { LINE = 512, NS_PER_MS = 1000000 };
static const char LOADING[] = "-LOADING the dataset is being loaded into memory\r\n";

static void redis_flush(struct library_server *server) {
    node_flush(&server->node);
}

static int64_t redis_left_ms(struct library_server *server, const char *key) {
    char line[LINE];
    snprintf(line, sizeof line, "PTTL %s\r\n", key);
    redisReply *reply = node_ask(&server->node, line);
    int64_t left_ms = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -2;
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "MOVED ", strlen("MOVED ")) == 0)
        left_ms = KEY_ELSEWHERE;
    freeReplyObject(reply);
    return left_ms;
}

static void keys_list(struct node *node, residue_taken *taken, void *taker) {
    redisReply *keys = node_keys(node, false);
    int64_t now_ms = (node->wall_ns + node->offset_ns) / NS_PER_MS;
    for (size_t each = 0; each < keys->elements; each++) {
        const redisReply *key = keys->element[each];
        int64_t expires_ms = key->element[NODE_KEY_EXPIRY]->integer;
        if (expires_ms < 0 || expires_ms > now_ms)
            taken(taker, "key", key->element[NODE_KEY_NAME]->str, expires_ms < 0 ? -1 : expires_ms - now_ms);
    }
    freeReplyObject(keys);
}

static void channels_list(struct node *node, const char *line, residue_taken *taken, void *taker) {
    redisReply *channels = node_ask(node, line);
    for (size_t each = 0; channels->type == REDIS_REPLY_ARRAY && each < channels->elements; each++)
        taken(taker, "subscription", channels->element[each]->str, -1);
    freeReplyObject(channels);
}

static void redis_residue(struct library_server *server, residue_taken *taken, void *taker) {
    keys_list(&server->node, taken, taker);
    channels_list(&server->node, "PUBSUB CHANNELS *\r\n", taken, taker);
}

static void cluster_residue(struct library_server *server, residue_taken *taken, void *taker) {
    redis_residue(server, taken, taker);
    channels_list(&server->node, "PUBSUB SHARDCHANNELS *\r\n", taken, taker);
}

static const char *reply_text(const redisReply *reply, char text[SERVER_VALUE]) {
    if (reply->type == REDIS_REPLY_NIL) return NULL;
    if (reply->type == REDIS_REPLY_INTEGER) snprintf(text, SERVER_VALUE, "%lld", reply->integer);
    else snprintf(text, SERVER_VALUE, "%s", reply->str ? reply->str : "");
    return text;
}

/* An array has a row for each element. */
static bool redis_ask(struct library_server *server, const char *text, row_taken *taken, void *taker, char *reason) {
    char line[4 * LINE], value[SERVER_VALUE];
    if (snprintf(line, sizeof line, "%s\r\n", text) >= (int)sizeof line || strpbrk(text, "\r\n")) {
        snprintf(reason, SERVER_REASON, "a command is one line of at most %zu bytes", sizeof line - 3);
        return false;
    }
    redisReply *reply = node_ask(&server->node, line);
    bool good = reply->type != REDIS_REPLY_ERROR;
    if (!good) snprintf(reason, SERVER_REASON, "%s", reply->str);
    bool is_list = reply->type == REDIS_REPLY_ARRAY;
    for (size_t each = 0; good && taken && each < (is_list ? reply->elements : 1); each++) {
        const char *one = reply_text(is_list ? reply->element[each] : reply, value);
        taken(taker, &one, 1);
    }
    freeReplyObject(reply);
    return good;
}

#define REDIS_FIELDS                                                                                                   \
    .requests = &RESP_REQUEST_FORMAT, .answers = &RESP_REPLY_FORMAT, .busy = LOADING, .restarts = true,                \
    .end = redis_flush, .flush = redis_flush, .left_ms = redis_left_ms, .ask = redis_ask

const struct server_kind REDIS_KIND = {.service = "redis", REDIS_FIELDS, .residue = redis_residue};

/* A node of a Redis cluster (lockstorm/servers/still_topology.py). A message that is published reaches the subscribers
 * of every node, by way of the nodes' own connections. */
const struct server_kind CLUSTER_KIND = {
    .service = "redis-cluster", REDIS_FIELDS, .is_joined = true, .residue = cluster_residue};

/* A Redis Sentinel (lockstorm/servers/still_topology.py). It has no data, and its clock stands still: it answers which
 * server is the master, and neither watches that nor speaks to other sentinels. */

static void nothing_flush(struct library_server *server) {
    (void)server;
}

static void nothing_left(struct library_server *server, residue_taken *taken, void *taker) {
    (void)server, (void)taken, (void)taker;
}

const struct server_kind SENTINEL_KIND = {.service = "redis-sentinel",
                                          .requests = &RESP_REQUEST_FORMAT,
                                          .answers = &RESP_REPLY_FORMAT,
                                          .is_still = true,
                                          .end = nothing_flush,
                                          .flush = nothing_flush,
                                          .residue = nothing_left};
