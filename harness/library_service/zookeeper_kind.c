#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/library_service/library_server.h"

/* The world has a session of its own, which outlasts every schedule. Its requests are those of zookeeper.jute. */

enum { PACKET = 1 << 16, PATH = 256, HEAD = 4 + 16 };
enum { OPERATION_DELETE = 2, OPERATION_CHILDREN = 8, ERROR_NO_NODE = -101 };
enum { SESSION_MS = 24 * 24 * 3600 * 1000, PASSWORD = 16 };

struct packet {
    char bytes[PACKET];
    size_t length;
};

static void zookeeper_put_number(struct packet *packet, uint32_t number) {
    four_bytes_put(packet->bytes + packet->length, number);
    packet->length += 4;
}

static void put_bytes(struct packet *packet, const char *bytes, size_t length) {
    zookeeper_put_number(packet, (uint32_t)length);
    memcpy(packet->bytes + packet->length, bytes, length);
    packet->length += length;
}

/* Sends the packet behind its length. False: no whole answer came, which is in *answer without its length. */
static bool zookeeper_exchange(struct library_server *server, const struct packet *packet, struct packet *answer) {
    static struct packet whole;
    whole.length = 0;
    put_bytes(&whole, packet->bytes, packet->length);
    size_t got = server_exchange(server, server->control, (struct span){whole.bytes, whole.length}, answer->bytes,
                                 sizeof answer->bytes);
    if (got < 4 || four_bytes(answer->bytes) != got - 4) return false;
    answer->length = got - 4;
    memmove(answer->bytes, answer->bytes + 4, answer->length);
    return true;
}

static bool zookeeper_kind_answers(struct library_server *server) {
    static const char NO_PASSWORD[PASSWORD];
    static struct packet opening, answer;
    opening.length = 0;
    for (int each = 0; each < 3; each++) zookeeper_put_number(&opening, 0); /* the protocol, and the last change seen */
    zookeeper_put_number(&opening, SESSION_MS);
    zookeeper_put_number(&opening, 0); /* no session yet: 64 bits */
    zookeeper_put_number(&opening, 0);
    put_bytes(&opening, NO_PASSWORD, sizeof NO_PASSWORD);
    opening.bytes[opening.length++] = 0; /* it may not be one that only reads */
    if (server->control >= 0) close(server->control);
    server->control = server_connect(server);
    return server->control >= 0 && zookeeper_exchange(server, &opening, &answer);
}

/* Asks for an operation on a node; `rest` follows the path. The answer's error, 0: none. */
static int32_t operate(struct library_server *server, int operation, const char *path, const char *rest, size_t length,
                       struct packet *answer) {
    static struct packet packet;
    packet.length = 0;
    zookeeper_put_number(&packet, ++server->control_number);
    zookeeper_put_number(&packet, (uint32_t)operation);
    put_bytes(&packet, path, strlen(path));
    memcpy(packet.bytes + packet.length, rest, length);
    packet.length += length;
    if (!zookeeper_exchange(server, &packet, answer) || answer->length < 16)
        server_give_up(server, "it does not answer");
    return (int32_t)four_bytes(answer->bytes + 12);
}

/* Gives all nodes below one to `taken`, children before their parents. */
static void nodes_visit(struct library_server *server, const char *path, residue_taken *taken, void *taker) {
    struct packet answer;
    int32_t error = operate(server, OPERATION_CHILDREN, path, "", 1, &answer);
    if (error == ERROR_NO_NODE || answer.length < HEAD) return;
    uint32_t count = four_bytes(answer.bytes + 16);
    size_t at = HEAD;
    for (uint32_t each = 0; each < count && at + 4 <= answer.length; each++) {
        char child[PATH];
        uint32_t length = four_bytes(answer.bytes + at);
        snprintf(child, sizeof child, "%s/%.*s", strcmp(path, "/") == 0 ? "" : path, (int)length,
                 answer.bytes + at + 4);
        at += 4 + length;
        if (strcmp(child, "/zookeeper") == 0) continue; /* the server's own */
        nodes_visit(server, child, taken, taker);
        taken(taker, "node", child, -1);
    }
}

static void node_delete(void *server, const char *what, const char *path, int64_t remaining_ms) {
    static struct packet answer;
    (void)what, (void)remaining_ms;
    (void)operate(server, OPERATION_DELETE, path, "\xff\xff\xff\xff", 4, &answer); /* whatever its version is */
}

static void zookeeper_flush(struct library_server *server) {
    nodes_visit(server, "/", node_delete, server);
}

static void zookeeper_residue(struct library_server *server, residue_taken *taken, void *taker) {
    nodes_visit(server, "/", taken, taker);
}

const struct server_kind ZOOKEEPER_KIND = {
    .service = "zookeeper",
    .requests = &ZOOKEEPER_REQUEST_FORMAT,
    .answers = &ZOOKEEPER_REPLY_FORMAT,
    .is_hosted = true,
    .answers_now = zookeeper_kind_answers,
    .end = hosted_server_end,
    .flush = zookeeper_flush,
    .residue = zookeeper_residue,
};
