#include "harness/explorer/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO_LINE = 256 };

/* --- the beginning --- */

static void say(struct stream *stream, const char *words) {
    char line[HELLO_LINE];
    int length = snprintf(line, sizeof line, "%s\r\n", words);
    link_send(&stream->link, line, (size_t)length);
}

static void ask(struct stream *stream, const char *words) {
    say(stream, words);
    freeReplyObject(link_receive(&stream->link));
}

/* The data that the master has now, which nobody wants: a length, and so many bytes. */
static void snapshot_skip(struct stream *stream) {
    char line[HELLO_LINE];
    do link_read_line(&stream->link, line, sizeof line);
    while (line[0] != '$'); /* empty lines while it is being written */
    link_read_past(&stream->link, strtoull(line + 1, NULL, 10));
}

void stream_open(struct stream *stream, struct node *master, struct node *replica) {
    char line[HELLO_LINE];
    *stream = (struct stream){.master = master, .replica = replica, .link = {.node = master}};
    ask(stream, "REPLCONF listening-port 1");
    ask(stream, "REPLCONF capa psync2");
    node_hurry(master, true); /* or it would notice only at its next cycle that the snapshot is written */
    say(stream, "PSYNC ? -1");
    link_read_line(&stream->link, line, sizeof line);
    if (sscanf(line, "+FULLRESYNC %*40s %lld", (long long *)&stream->offset) != 1) node_give_up(master, line);
    snapshot_skip(stream);
    node_hurry(master, false);
    stream_forget(stream);
}

void stream_close(struct stream *stream) {
    if (stream->link.context) redisFree(stream->link.context);
    free(stream->held);
    *stream = (struct stream){0};
}

/* --- what it carries --- */

void stream_collect(struct stream *stream) {
    char bytes[16384];
    for (size_t got; (got = link_take_bytes(&stream->link, bytes, sizeof bytes)) > 0;) {
        if (stream->length + got > stream->room) {
            stream->room = 2 * (stream->length + got);
            stream->held = realloc(stream->held, stream->room);
            if (!stream->held) abort();
        }
        memcpy(stream->held + stream->length, bytes, got);
        stream->length += got;
    }
}

/* Where an encoded command ends: "*2\r\n$3\r\nDEL\r\n...". */
static const char *command_end(const char *command) {
    char *at;
    long words = strtol(command + 1, &at, 10);
    for (at += 2; words > 0; words--) {
        long bytes = strtol(at + 1, &at, 10);
        at += 2 + bytes + 2;
    }
    return at;
}

/* What is meant for the replica's replication and not for its data. */
static bool is_question(const char *command, size_t length) {
    static const char REPLCONF[] = "*3\r\n$8\r\nREPLCONF\r\n";
    return length >= sizeof REPLCONF - 1 && memcmp(command, REPLCONF, sizeof REPLCONF - 1) == 0;
}

static void acknowledge(struct stream *stream) {
    char words[HELLO_LINE];
    stream->offset += (int64_t)stream->length;
    stream->length = 0;
    snprintf(words, sizeof words, "REPLCONF ACK %lld", (long long)stream->offset);
    say(stream, words);
    node_settle(stream->master);
}

void stream_arrive(struct stream *stream) {
    const char *end = stream->held + stream->length;
    for (const char *command = stream->held, *next; command < end; command = next) {
        next = command_end(command);
        if (is_question(command, (size_t)(next - command))) continue;
        link_send(&stream->replica->control, command, (size_t)(next - command));
        freeReplyObject(link_receive(&stream->replica->control));
    }
    acknowledge(stream);
}

void stream_forget(struct stream *stream) {
    node_settle(stream->master);
    stream_collect(stream);
    acknowledge(stream);
}

/* The answer of whoever is asked on its own connection; the caller frees. */
static redisReply *asked(struct node *node, const char *format, ...) {
    char *command = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = redisvFormatCommand(&command, format, arguments);
    va_end(arguments);
    if (length < 0) abort();
    link_send(&node->control, command, (size_t)length);
    redisFreeCommand(command);
    return link_receive(&node->control);
}

static void key_copy(struct stream *stream, const redisReply *key) {
    redisReply *data = asked(stream->master, "DUMP %b", key->str, key->len);
    redisReply *expiry = asked(stream->master, "PEXPIRETIME %b", key->str, key->len);
    long long until_ms = expiry->integer > 0 ? expiry->integer : 0;
    if (data->type == REDIS_REPLY_STRING)
        freeReplyObject(
            asked(stream->replica, "RESTORE %b %lld %b ABSTTL", key->str, key->len, until_ms, data->str, data->len));
    freeReplyObject(data);
    freeReplyObject(expiry);
}

void stream_resync(struct stream *stream) {
    redisReply *keys = asked(stream->master, "KEYS *");
    freeReplyObject(asked(stream->replica, "FLUSHALL SYNC"));
    for (size_t each = 0; each < keys->elements; each++) key_copy(stream, keys->element[each]);
    freeReplyObject(keys);
    stream_forget(stream);
}
