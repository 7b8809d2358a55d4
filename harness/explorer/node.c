#include "harness/explorer/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STATUS_INCONCLUSIVE = 3, NS_PER_US = 1000, US_PER_S = 1000000 };

_Noreturn void node_give_up(const struct node *node, const char *reason) {
    fprintf(stderr, "the server at %s: %s\n", node->socket, reason);
    exit(STATUS_INCONCLUSIVE);
}

/* --- connections --- */

static void connect_to(struct link *link) {
    if (link->context) return;
    link->context = redisConnectUnix(link->node->socket);
    if (!link->context || link->context->err)
        node_give_up(link->node, link->context ? link->context->errstr : "no memory for a connection");
}

void link_lead(struct link *link, struct node *node) {
    if (link->node && link->node != node) link_drop(link);
    link->node = node;
}

void link_send(struct link *link, const char *command, size_t length) {
    connect_to(link);
    link->node->commands++;
    while (length > 0) {
        ssize_t sent = send(link->context->fd, command, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) node_give_up(link->node, strerror(errno));
        if (sent > 0) command += sent, length -= (size_t)sent;
    }
}

/* Reads what is there, or waits for something. False: nothing is there. */
static bool link_read(struct link *link, int flags) {
    char bytes[16384];
    ssize_t got = recv(link->context->fd, bytes, sizeof bytes, flags);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) node_give_up(link->node, got < 0 ? strerror(errno) : "it has closed a connection");
    redisReaderFeed(link->context->reader, bytes, (size_t)got);
    return true;
}

static redisReply *parsed(struct link *link) {
    void *reply = NULL;
    if (redisReaderGetReply(link->context->reader, &reply) != REDIS_OK)
        node_give_up(link->node, "it does not speak RESP");
    return reply;
}

redisReply *link_receive(struct link *link) {
    redisReply *reply;
    while (!(reply = parsed(link))) link_read(link, 0);
    return reply;
}

redisReply *link_take(struct link *link) {
    redisReply *reply = parsed(link);
    while (!reply && link_read(link, MSG_DONTWAIT)) reply = parsed(link);
    return reply;
}

size_t link_take_bytes(struct link *link, char *bytes, size_t room) {
    ssize_t got = recv(link->context->fd, bytes, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) node_give_up(link->node, got < 0 ? strerror(errno) : "it has closed a connection");
    return (size_t)got;
}

static char byte_read(struct link *link) {
    char byte;
    ssize_t got;
    while ((got = recv(link->context->fd, &byte, sizeof byte, 0)) < 0 && errno == EINTR) continue;
    if (got != sizeof byte) node_give_up(link->node, "it has closed a connection");
    return byte;
}

void link_read_line(struct link *link, char *line, size_t room) {
    size_t length = 0;
    for (char byte; (byte = byte_read(link)) != '\n';)
        if (length + 1 < room && byte != '\r') line[length++] = byte;
    line[length] = '\0';
}

void link_read_past(struct link *link, uint64_t count) {
    while (count-- > 0) (void)byte_read(link);
}

void link_drop(struct link *link) {
    if (!link->context) return;
    redisFree(link->context);
    link->context = NULL;
    node_settle(link->node);
}

/* --- the control connection --- */

static redisReply *ask(struct node *node, const char *command) {
    link_send(&node->control, command, strlen(command));
    return link_receive(&node->control);
}

static void command(struct node *node, const char *words) {
    char line[64];
    snprintf(line, sizeof line, "%s\r\n", words); /* inline, as at a telnet prompt */
    redisReply *reply = ask(node, line);
    if (reply->type == REDIS_REPLY_ERROR) node_give_up(node, reply->str);
    freeReplyObject(reply);
}

/* The first answer may leave the server in the same round in which it deals with what came just before; what it has to
 * say to others then goes out after it. The second is of a later round. */
void node_settle(struct node *node) {
    command(node, "PING");
    command(node, "PING");
}

void node_hurry(struct node *node, bool hurry) {
    command(node, hurry ? "CONFIG SET hz 100" : "CONFIG SET hz 1");
}

/* --- the clock --- */

static void clock_show(struct node *node) {
    atomic_store_explicit(&node->clock->wall_ns, node->wall_ns + node->offset_ns, memory_order_release);
}

void node_wall_set(struct node *node, int64_t wall_ns) {
    node->wall_ns = wall_ns;
    clock_show(node);
}

bool node_clock_jump(struct node *node, int64_t step_ns) {
    node->offset_ns += step_ns;
    clock_show(node);
    redisReply *reply = ask(node, "TIME\r\n");
    bool told = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    int64_t seconds = told ? atoll(reply->element[0]->str) : 0, micros = told ? atoll(reply->element[1]->str) : 0;
    freeReplyObject(reply);
    return told && seconds * US_PER_S + micros == (node->wall_ns + node->offset_ns) / NS_PER_US;
}

/* --- a server --- */

void node_open(struct node *node, const char *socket, const char *clock) {
    *node = (struct node){.socket = socket};
    int fd = open(clock, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *node->clock, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) node_give_up(node, strerror(errno));
    close(fd);
    node->clock = map;
    node->control.node = node;
    command(node, "DEBUG SET-ACTIVE-EXPIRE 0"); /* keys expire when somebody looks, not by the machine's speed */
}

void node_close(struct node *node) {
    if (node->control.context) redisFree(node->control.context);
    if (node->clock) munmap(node->clock, sizeof *node->clock);
    for (size_t each = 0; each < node->script_count; each++) free(node->scripts[each].command);
    free(node->scripts);
}

void node_flush(struct node *node) {
    command(node, "FLUSHALL");
}

void node_reset(struct node *node) {
    node->offset_ns = 0;
    node_flush(node);
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
    command(node, "SCRIPT FLUSH");
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
    link_send(&node->control, command, length);
    redisReply *reply = link_receive(&node->control);
    script_keep(node, command, length, reply);
    return reply;
}
