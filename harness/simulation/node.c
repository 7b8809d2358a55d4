#include "harness/simulation/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STATUS_INCONCLUSIVE = 3, NS_PER_US = 1000, US_PER_S = 1000000, CYCLES = 2 };

/* In Redis' inline command format. From Redis 7.4 on a plain FLUSHALL lets its connection wait for a thread that frees
 * the memory, so commands behind it would be executed at a moment that depends on the machine's speed. This one waits
 * for nothing, and the keys are gone at once, too (redis pull request 13167). */
static char FLUSH[] = "FLUSHALL ASYNC\r\n";

_Noreturn void node_give_up(const struct node *node, const char *reason) {
    fprintf(stderr, "the server at %s: %s\n", node->socket, reason);
    exit(STATUS_INCONCLUSIVE);
}

/* --- connections --- */

static void connect_to(struct node_connection *connection) {
    if (connection->context) return;
    connection->context = redisConnectUnix(connection->node->socket);
    if (!connection->context || connection->context->err)
        node_give_up(connection->node,
                     connection->context ? connection->context->errstr : "no memory for a connection");
}

void node_connection_retarget(struct node_connection *connection, struct node *node) {
    if (connection->node && connection->node != node) node_connection_close(connection);
    connection->node = node;
}

static void bytes_write(struct node_connection *connection, struct iovec *parts, size_t count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    while (message.msg_iovlen > 0) {
        ssize_t sent = sendmsg(connection->context->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) node_give_up(connection->node, strerror(errno));
        for (; sent > 0 && (size_t)sent >= message.msg_iov->iov_len; message.msg_iovlen--)
            sent -= (ssize_t)message.msg_iov++->iov_len;
        if (sent <= 0) continue;
        message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
        message.msg_iov->iov_len -= (size_t)sent;
    }
}

void node_connection_send(struct node_connection *connection, const char *command, size_t length) {
    struct node *node = connection->node;
    struct iovec parts[] = {{.iov_base = FLUSH, .iov_len = sizeof FLUSH - 1},
                            {.iov_base = (void *)(uintptr_t)command, .iov_len = length}}; /* which is only read */
    connect_to(connection);
    node->commands += 1 + node->flushes_next;
    connection->unasked += node->flushes_next;
    if (node->flushes_next) bytes_write(connection, parts, 2);
    else bytes_write(connection, parts + 1, 1);
    node->flushes_next = false;
    node->behind = CYCLES;
}

size_t node_connection_read_bytes(struct node_connection *connection, void *bytes, size_t room, int flags) {
    ssize_t got = recv(connection->context->fd, bytes, room, flags);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) node_give_up(connection->node, got < 0 ? strerror(errno) : "it has closed a connection");
    return (size_t)got;
}

/* False: nothing has arrived. */
static bool reply_bytes_read(struct node_connection *connection, int flags) {
    char bytes[16384];
    size_t got = node_connection_read_bytes(connection, bytes, sizeof bytes, flags);
    redisReaderFeed(connection->context->reader, bytes, got);
    return got > 0;
}

static redisReply *parsed(struct node_connection *connection) {
    for (void *reply = NULL;; connection->unasked--) {
        if (redisReaderGetReply(connection->context->reader, &reply) != REDIS_OK)
            node_give_up(connection->node, "it does not speak RESP");
        if (!reply || connection->unasked == 0) return reply;
        freeReplyObject(reply);
        reply = NULL;
    }
}

redisReply *node_connection_receive(struct node_connection *connection) {
    redisReply *reply;
    while (!(reply = parsed(connection))) reply_bytes_read(connection, 0);
    connection->node->behind = CYCLES - 1;
    return reply;
}

redisReply *node_connection_poll(struct node_connection *connection) {
    redisReply *reply = parsed(connection);
    while (!reply && reply_bytes_read(connection, MSG_DONTWAIT)) reply = parsed(connection);
    return reply;
}

void node_connection_read_line(struct node_connection *connection, char *line, size_t room) {
    size_t length = 0;
    for (char byte = 0; byte != '\n';) {
        bool got = node_connection_read_bytes(connection, &byte, sizeof byte, 0) > 0;
        if (got && length + 1 < room && byte != '\r' && byte != '\n') line[length++] = byte;
    }
    line[length] = '\0';
}

void node_connection_close(struct node_connection *connection) {
    if (!connection->context) return;
    redisFree(connection->context);
    connection->context = NULL;
    connection->unasked = 0;
    node_settle(connection->node);
}

/* --- the control connection --- */

redisReply *node_ask(struct node *node, const char *line) {
    node_connection_send(&node->control, line, strlen(line));
    return node_connection_receive(&node->control);
}

static void control_command(struct node *node, const char *line) {
    redisReply *reply = node_ask(node, line);
    if (reply->type == REDIS_REPLY_ERROR) node_give_up(node, reply->str);
    freeReplyObject(reply);
}

/* The server may answer a PING in the same event loop cycle in which it handles an earlier command, before it writes to
 * other connections. What it receives after it has begun to write is of a later cycle. So the second answer says that
 * all is written; the first one does if the answer to the earlier command was received before. */
void node_catch_up(struct node *node) {
    for (int left = node->behind; left > 0; node->behind = left) {
        control_command(node, "PING\r\n");
        left--;
    }
}

void node_settle(struct node *node) {
    node->behind = CYCLES;
    node_catch_up(node);
}

void node_hurry(struct node *node, bool hurry) {
    control_command(node, hurry ? "CONFIG SET hz 100\r\n" : "CONFIG SET hz 1\r\n");
}

/* --- the clock --- */

static void clock_show(struct node *node) {
    atomic_store_explicit(&node->clock->wall_ns, node->wall_ns + node->offset_ns, memory_order_release);
}

void node_wall_set(struct node *node, int64_t wall_ns) {
    if (node->wall_ns != wall_ns) node->behind = CYCLES;
    node->wall_ns = wall_ns;
    clock_show(node);
}

bool node_clock_jump(struct node *node, int64_t step_ns) {
    node->offset_ns += step_ns;
    clock_show(node);
    redisReply *reply = node_ask(node, "TIME\r\n");
    bool answered = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    int64_t seconds = answered ? atoll(reply->element[0]->str) : 0,
            micros = answered ? atoll(reply->element[1]->str) : 0;
    freeReplyObject(reply);
    return answered && seconds * US_PER_S + micros == (node->wall_ns + node->offset_ns) / NS_PER_US;
}

/* --- a server --- */

void node_open_still(struct node *node, const char *socket) {
    *node = (struct node){.socket = socket};
    node->control.node = node;
}

void node_open(struct node *node, const char *socket, const char *clock) {
    node_open_still(node, socket);
    int fd = open(clock, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *node->clock, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) node_give_up(node, strerror(errno));
    close(fd);
    node->clock = map;
    control_command(node, "DEBUG SET-ACTIVE-EXPIRE 0\r\n"); /* keys expire when they are accessed, at a moment that does
                                                           not depend on the machine's speed */
}

void node_close(struct node *node) {
    if (node->control.context) redisFree(node->control.context);
    if (node->clock) munmap(node->clock, sizeof *node->clock);
    for (size_t each = 0; each < node->script_count; each++) free(node->scripts[each].command);
    free(node->scripts);
}

void node_flush(struct node *node) {
    control_command(node, FLUSH);
}

void node_reset(struct node *node, bool with_next) {
    node->offset_ns = 0;
    if (with_next) node->flushes_next = true;
    else node_flush(node);
}

static const char KEYS_SCRIPT[] = "local found, names, call = {}, redis.call('KEYS', '*'), redis.call "
                                  "table.sort(names) "
                                  "for at, name in ipairs(names) do "
                                  "local kind, texts = call('TYPE', name).ok, {} "
                                  "if kind == 'string' then texts = {call('GET', name)} "
                                  "elseif kind == 'hash' then texts = call('HKEYS', name) "
                                  "elseif ARGV[1] == '0' then texts = {} "
                                  "elseif kind == 'list' then texts = call('LRANGE', name, 0, -1) "
                                  "elseif kind == 'zset' then texts = call('ZRANGE', name, 0, -1) "
                                  "elseif kind == 'set' then texts = call('SMEMBERS', name) end "
                                  "found[at] = {name, call('PEXPIRETIME', name), call('DUMP', name), unpack(texts)} "
                                  "end "
                                  "return found";

static void keys_script_load(struct node *node) {
    char line[sizeof KEYS_SCRIPT + 64];
    snprintf(line, sizeof line, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n", sizeof KEYS_SCRIPT - 1,
             KEYS_SCRIPT);
    redisReply *hash = node_ask(node, line);
    if (hash->type != REDIS_REPLY_STRING) node_give_up(node, "it does not load scripts");
    snprintf(node->keys_hash, sizeof node->keys_hash, "%s", hash->str);
    freeReplyObject(hash);
}

static redisReply *keys_ask(struct node *node, bool all) {
    char line[sizeof node->keys_hash + 32];
    if (!node->keys_hash[0]) keys_script_load(node);
    snprintf(line, sizeof line, "EVALSHA %s 0 %d\r\n", node->keys_hash, all);
    return node_ask(node, line);
}

redisReply *node_keys(struct node *node, bool all) {
    redisReply *keys = keys_ask(node, all);
    if (keys->type == REDIS_REPLY_ERROR && strncmp(keys->str, "NOSCRIPT", strlen("NOSCRIPT")) == 0) {
        freeReplyObject(keys); /* a lock may have removed all scripts */
        node->keys_hash[0] = '\0';
        keys = keys_ask(node, all);
    }
    if (keys->type != REDIS_REPLY_ARRAY) node_give_up(node, keys->type == REDIS_REPLY_ERROR ? keys->str : "no keys");
    return keys;
}

/* --- scripts --- */

static redisReply *as_reply(const char *hash) {
    char line[64];
    int length = snprintf(line, sizeof line, "$%zu\r\n%s\r\n", strlen(hash), hash);
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    redisReaderFeed(reader, line, (size_t)length);
    redisReaderGetReply(reader, &reply);
    redisReaderFree(reader);
    return reply;
}

void node_scripts_forget(struct node *node) {
    control_command(node, "SCRIPT FLUSH\r\n");
    for (size_t each = 0; each < node->script_count; each++) free(node->scripts[each].command);
    node->script_count = 0;
}

static void script_keep(struct node *node, const char *command, size_t length, const redisReply *reply) {
    if (reply->type != REDIS_REPLY_STRING || reply->len != sizeof node->scripts->hash - 1) return;
    node->scripts = realloc(node->scripts, (node->script_count + 1) * sizeof *node->scripts);
    char *copy = malloc(length);
    if (!node->scripts || !copy) abort();
    memcpy(copy, command, length);
    struct node_script *script = &node->scripts[node->script_count++];
    *script = (struct node_script){.command = copy, .length = length};
    memcpy(script->hash, reply->str, sizeof script->hash);
}

redisReply *node_script_load(struct node *node, const char *command, size_t length) {
    static const char LOAD[] = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n";
    if (length < sizeof LOAD - 1 || memcmp(command, LOAD, sizeof LOAD - 1) != 0) return NULL;
    for (size_t each = 0; each < node->script_count; each++) {
        const struct node_script *script = &node->scripts[each];
        if (script->length == length && memcmp(script->command, command, length) == 0) return as_reply(script->hash);
    }
    node_connection_send(&node->control, command, length);
    redisReply *reply = node_connection_receive(&node->control);
    script_keep(node, command, length, reply);
    return reply;
}
