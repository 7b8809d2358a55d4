#include "harness/simulation/replication_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/scheduler/grown.h"

enum { HELLO_LINE = 256 };

/* --- handshake --- */

static void line_send(struct stream *stream, const char *words) {
    char line[HELLO_LINE];
    int length = snprintf(line, sizeof line, "%s\r\n", words);
    node_connection_send(&stream->connection, line, (size_t)length);
}

static void handshake(struct stream *stream, const char *words) {
    line_send(stream, words);
    freeReplyObject(node_connection_receive(&stream->connection));
}

void stream_open(struct stream *stream, struct node *master, struct node *replica) {
    char line[HELLO_LINE];
    *stream = (struct stream){.master = master, .replica = replica, .connection = {.node = master}};
    handshake(stream, "REPLCONF listening-port 1");
    handshake(stream, "REPLCONF capa psync2");
    node_hurry(master, true); /* else it would notice the finished snapshot up to a second later */
    line_send(stream, "PSYNC ? -1");
    node_connection_read_line(&stream->connection, line, sizeof line);
    if (sscanf(line, "+FULLRESYNC %*40s %lld", (long long *)&stream->offset) != 1) node_give_up(master, line);
    do node_connection_read_line(&stream->connection, line, sizeof line);
    while (line[0] != '$'); /* the master sends empty lines while it writes the snapshot; then its length */
    for (size_t left = strtoull(line + 1, NULL, 10); left > 0;)
        left -= node_connection_read_bytes(&stream->connection, line, left < sizeof line ? left : sizeof line, 0);
    node_hurry(master, false);
    stream_forget(stream);
}

void stream_close(struct stream *stream) {
    if (stream->connection.context) redisFree(stream->connection.context);
    free(stream->held);
    *stream = (struct stream){0};
}

/* --- replicated commands --- */

void stream_collect(struct stream *stream) {
    char bytes[16384];
    for (size_t got; (got = node_connection_read_bytes(&stream->connection, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
        stream->held = grown(stream->held, stream->length + got, &stream->room, 1);
        memcpy(stream->held + stream->length, bytes, got);
        stream->length += got;
    }
}

/* Where an encoded command ends: "*2\r\n$3\r\nDEL\r\n...". */
static const char *stream_command_end(const char *command) {
    char *at;
    long words = strtol(command + 1, &at, 10);
    for (at += 2; words > 0; words--) {
        long bytes = strtol(at + 1, &at, 10);
        at += 2 + bytes + 2;
    }
    return at;
}

static void acknowledge(struct stream *stream) {
    char words[HELLO_LINE];
    stream->offset += (int64_t)stream->length;
    stream->length = 0;
    snprintf(words, sizeof words, "REPLCONF ACK %lld", (long long)stream->offset);
    line_send(stream, words);
    node_settle(stream->master);
}

void stream_arrive(struct stream *stream) {
    static const char REPLCONF[] = "*3\r\n$8\r\nREPLCONF\r\n"; /* of the replication protocol, no data */
    const char *end = stream->held + stream->length;
    for (const char *command = stream->held, *next; command < end; command = next) {
        next = stream_command_end(command);
        if (strncmp(command, REPLCONF, sizeof REPLCONF - 1) == 0) continue;
        node_connection_send(&stream->replica->control, command, (size_t)(next - command));
        freeReplyObject(node_connection_receive(&stream->replica->control));
    }
    acknowledge(stream);
}

void stream_forget(struct stream *stream) {
    node_settle(stream->master);
    stream_collect(stream);
    acknowledge(stream);
}

/* Sends a command on the node's control connection. The caller frees the answer. An error ends the search: a replica
 * that was filled wrongly would make a lock look wrong. */
static redisReply *node_request(struct node *node, const char *format, ...) {
    char *command = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = redisvFormatCommand(&command, format, arguments);
    va_end(arguments);
    if (length < 0) abort();
    node_connection_send(&node->control, command, (size_t)length);
    redisFreeCommand(command);
    redisReply *answer = node_connection_receive(&node->control);
    if (answer->type == REDIS_REPLY_ERROR) node_give_up(node, answer->str);
    return answer;
}

static void key_copy(struct stream *stream, const redisReply *key) {
    redisReply *data = node_request(stream->master, "DUMP %b", key->str, key->len);
    redisReply *expiry = node_request(stream->master, "PEXPIRETIME %b", key->str, key->len);
    long long until_ms = expiry->integer > 0 ? expiry->integer : 0;
    if (data->type == REDIS_REPLY_STRING)
        freeReplyObject(node_request(stream->replica, "RESTORE %b %lld %b ABSTTL", key->str, key->len, until_ms,
                                     data->str, data->len));
    freeReplyObject(data);
    freeReplyObject(expiry);
}

void stream_resync(struct stream *stream) {
    redisReply *keys = node_request(stream->master, "KEYS *");
    freeReplyObject(node_request(stream->replica, "FLUSHALL SYNC"));
    for (size_t each = 0; each < keys->elements; each++) key_copy(stream, keys->element[each]);
    freeReplyObject(keys);
    stream_forget(stream);
}
