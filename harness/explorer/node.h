/* A real redis-server as the explorer uses it: its clock is set here, and what it has to say is known to have come.
 *
 * A server that goes away is nothing that the explorer can make a schedule of: every function here then ends the
 * process with status 3 and a sentence on standard error. */
#ifndef LOCKSTORM_EXPLORER_NODE_H
#define LOCKSTORM_EXPLORER_NODE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/preload/clock_page.h"

/* Scripts that the server has, as the command that loaded them and its answer. */
struct node_script {
    char *command;
    size_t length;
    char hash[41];
};

/* One connection to a node, made when it is first used. */
struct link {
    struct node *node;
    redisContext *context;
};

struct node {
    const char *socket; /* the caller's */
    struct clock_page *clock;
    int64_t offset_ns; /* how far its clock is off */
    int64_t wall_ns;   /* the trial's wall clock as last told */
    struct link control;
    struct node_script *scripts;
    size_t script_count;
    uint64_t commands; /* sent to it so far */
};

/* Ends the process. */
_Noreturn void node_give_up(const struct node *node, const char *reason);

/* Connects to a server, whose clock page is the file `clock`. The node stays where it is until node_close. */
void node_open(struct node *node, const char *socket, const char *clock);
void node_close(struct node *node);

/* As if it had just been started: no data, its clock right. Its scripts stay, which every lock loads when it is opened;
 * unless they are forgotten. */
void node_reset(struct node *node);
void node_scripts_forget(struct node *node);
/* Its data goes. */
void node_flush(struct node *node);

/* The trial's wall clock moves: the server's moves with it, as far off as it was. */
void node_wall_set(struct node *node, int64_t wall_ns);
/* Its clock jumps. True: the server says so. */
bool node_clock_jump(struct node *node, int64_t step_ns);

/* Lets it look at what its children do a hundred times a second, or once. */
void node_hurry(struct node *node, bool hurry);

/* Returns when everything has arrived that the server had to say to anybody: after commands that may block, and after
 * its clock has moved. */
void node_settle(struct node *node);

/* The answer to SCRIPT LOAD, which a server gives once and remembers: asked once for all schedules. NULL: `command` is
 * something else. The caller frees. */
redisReply *node_script_load(struct node *node, const char *command, size_t length);

/* Leads to another node from now on. */
void link_lead(struct link *link, struct node *node);
/* Sends an encoded command. */
void link_send(struct link *link, const char *command, size_t length);
/* The next reply; waits for it. The caller frees. */
redisReply *link_receive(struct link *link);
/* The next reply that has arrived, NULL if there is none. The caller frees. */
redisReply *link_take(struct link *link);
/* Bytes that have arrived, on a connection whose other side does not answer in replies; 0: none. */
size_t link_take_bytes(struct link *link, char *bytes, size_t room);
/* The next line without its end; waits for it. And passes over so many bytes. */
void link_read_line(struct link *link, char *line, size_t room);
void link_read_past(struct link *link, uint64_t count);
/* Ends the connection; the server has seen it when the function returns. */
void link_drop(struct link *link);

#endif
