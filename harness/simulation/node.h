/* A real redis-server as the simulation uses it: the simulation sets its clock, and knows when everything that the
 * server sends has arrived.
 *
 * No schedule covers a server that ends or closes a connection: every function here then ends the process with status 3
 * and a sentence on standard error. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/process/preload/clock_page.h"

enum { WORLD_NODES = 8 }; /* the most that a world has, not counting replicas */

enum { NODE_HASH_ROOM = 41 }; /* of a script's SHA-1 in hexadecimal */

/* A script that the server has: the command that loaded it, and the answer. */
struct node_script {
    char *command;
    size_t length;
    char hash[NODE_HASH_ROOM];
};

/* A connection to a node, made at its first use. */
struct node_connection {
    struct node *node;
    redisContext *context;
    int unasked; /* replies to come that nobody waits for */
};

struct node {
    const char *socket; /* the caller's */
    struct clock_page *clock;
    int64_t offset_ns;              /* its clock minus the simulation's wall clock */
    int64_t wall_ns;                /* the simulation's wall clock, as last set */
    struct node_connection control; /* of the simulation itself */
    struct node_script *scripts;
    size_t script_count;
    char keys_hash[NODE_HASH_ROOM]; /* of the script of node_keys; empty: not loaded yet */
    bool flushes_next;              /* FLUSHALL goes ahead of the next command */
    int behind;                     /* answers to PING after which everything has arrived that it had to send */
    uint64_t commands;              /* number of commands sent to it */
};

/* Ends the process with status 3 and the reason. */
_Noreturn void node_give_up(const struct node *node, const char *reason);

/* Connects to a server whose clock page is the file `clock`. The node must not move in memory until node_close. */
void node_open(struct node *node, const char *socket, const char *clock);
/* The same without its clock, which nobody sets, and whatever it does with time. */
void node_open_still(struct node *node, const char *socket);
void node_close(struct node *node);

/* Makes the server as new: no data, its clock right. Its scripts stay, because every lock loads them when it is
 * opened; node_scripts_forget removes them. `with_next`: its data goes right before the next command that is sent to
 * it, on the same connection: a schedule waits once less. Only where nobody but these functions writes to the server.
 */
void node_reset(struct node *node, bool with_next);
void node_scripts_forget(struct node *node);
/* Deletes its data. */
void node_flush(struct node *node);
enum node_key { NODE_KEY_NAME, NODE_KEY_EXPIRY, NODE_KEY_DUMP, NODE_KEY_TEXTS /* and on */ };
/* Its keys, sorted, each an array: name, PEXPIRETIME, DUMP, and texts: the value of a string, the fields of a hash;
 * with `all` also the elements of a list, a set or a sorted set. The caller frees. */
redisReply *node_keys(struct node *node, bool all);

/* The answer to a command in Redis' inline format, with its line end, on the simulation's own connection. The caller
 * frees. */
redisReply *node_ask(struct node *node, const char *line);

/* Moves the simulation's wall clock; the server's clock keeps its offset. */
void node_wall_set(struct node *node, int64_t wall_ns);
/* Its clock jumps by `step_ns`. True: the server's answer to TIME proves it. */
bool node_clock_jump(struct node *node, int64_t step_ns);

/* Makes the server run its periodic work, such as watching its child processes, 100 times a second, or once. */
void node_hurry(struct node *node, bool hurry);

/* Returns when everything that the server had to send, on any connection, has arrived. Needed after commands that may
 * block, and after its clock has moved. */
void node_settle(struct node *node);
/* The same where nobody but these functions writes to the server: asks it only as often as is needed, which is once
 * after a command whose answer has been received. */
void node_catch_up(struct node *node);

/* The answer to SCRIPT LOAD, which is sent to the server once for all schedules. NULL: `command` is another one. The
 * caller frees. */
redisReply *node_script_load(struct node *node, const char *command, size_t length);

/* Makes the connection lead to a node; one to another node is closed. */
void node_connection_retarget(struct node_connection *connection, struct node *node);
/* Sends an encoded command. */
void node_connection_send(struct node_connection *connection, const char *command, size_t length);
/* Waits for the next reply. The caller frees. */
redisReply *node_connection_receive(struct node_connection *connection);
/* The next reply that has arrived, or NULL. The caller frees. */
redisReply *node_connection_poll(struct node_connection *connection);
/* Takes bytes that have arrived on a connection that does not carry replies; returns their number. `flags`: as of recv;
 * waits for some unless they have MSG_DONTWAIT. */
size_t node_connection_read_bytes(struct node_connection *connection, void *bytes, size_t room, int flags);
/* Waits for the next line; writes it without its end. */
void node_connection_read_line(struct node_connection *connection, char *line, size_t room);
/* Closes the connection; the server has noticed when the function returns. */
void node_connection_close(struct node_connection *connection);
