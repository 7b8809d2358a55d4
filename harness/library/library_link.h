/* The connections of hosted programs to servers. A program connects to an address of its own for each server; what it
 * sends, and what the server answers, waits here as whole messages until the world lets each of them go on. */
#pragma once

#include "harness/library/heard_commands.h"
#include "harness/library_service/byte_queue.h"
#include "harness/library_service/library_server.h"
#include "harness/resp_service/address.h"

enum { LINK_COMMAND = 24 }; /* bytes of a command's name */

/* Where one client's program finds one server. */
struct link_door {
    int fd; /* listens */
    struct address address;
};

/* `address`: as address_parse takes it. False with *error: it cannot listen. */
bool link_door_open(struct link_door *door, const char *address, struct address_error *error);
void link_door_close(struct link_door *door);
/* Nobody listens there any more, and connections to it are refused. */
void link_door_refuse(struct link_door *door);
/* 0: it is a unix socket. */
uint16_t link_door_port(const struct link_door *door);

struct library_link;

/* Is told what happens on connections. Spans end with the call. */
struct link_observer {
    void *context;
    /* The program has sent a whole message, the last one of the link's requests. */
    void (*spoken)(void *context, const struct library_link *link);
    /* The oldest request reaches the server. */
    void (*executed)(void *context, const struct library_link *link, struct span request);
    /* The oldest request reaches nobody. Its answer is made up, and `answered` is not told of it. */
    void (*refused)(void *context, const struct library_link *link);
    /* The server has given an answer, or a message that nobody has asked for. */
    void (*answered)(void *context, const struct library_link *link, struct span answer);
    /* The oldest answer reaches the program. */
    void (*delivered)(void *context, const struct library_link *link);
    /* Both ends are closed. */
    void (*ended)(void *context, const struct library_link *link);
};

struct library_link {
    int client, node; /* from 0 */
    int number;       /* among the client's connections in the order of their first use in this schedule; -1: unused */
    int fd;           /* to the program; -1: the program, or a fault, has closed it */
    struct server_channel server;
    struct byte_queue requests, answers;
    char *unread;         /* owned: what of delivered answers the program's socket has no room for */
    size_t unread_length; /* bytes */
    int64_t requests_held_until_ns, answers_held_until_ns; /* messages are late; 0: they are not */
    int64_t block_until_ns;           /* the server ends a blocking command then; INT64_MAX: not blocking */
    uint64_t asked_sort;              /* of the last request that has reached the server */
    char asked_command[LINK_COMMAND]; /* its name (link_request_command); or empty */
    int owed;                         /* requests that have reached the server, which has not answered them */
    bool is_push;                     /* answers come that nobody has asked for */
    bool has_waited; /* the server was asked something that it answers by its own clock, if not before */
    bool stirred;    /* something happened to it that the program may notice, since the flag was taken down */
    bool ended;      /* nothing more happens on it */
    struct heard_commands heard;          /* of a schedule that is watched */
    const struct link_observer *observer; /* the world's; NULL: nobody */
    uint64_t serial;                      /* no other connection of this world has it */
};

/* Takes a connection that a program has made. False if none waits. */
bool library_link_accept(struct library_link *link, const struct link_door *door, struct library_server *server);
/* Reads what the program has sent. True: there was something, or the program has closed it. */
bool link_hear_program(struct library_link *link);
/* Reads what the server has sent, which is there after server_settle. True: there was something. */
bool link_hear_server(struct library_link *link);
/* The oldest request reaches the server. */
void link_deliver_request(struct library_link *link, int64_t now_ns);
/* The name of the command of the oldest request, of Redis: "GET"; of PostgreSQL the first word of its statement; else
 * the buffer is empty. Returns the buffer. */
const char *link_request_command(const struct library_link *link, char command[LINK_COMMAND]);
/* The server's answer is made up; the request reaches nobody. */
void link_refuse_request(struct library_link *link, const char *answer);
/* The oldest answer reaches the program. */
void link_deliver_answer(struct library_link *link);
/* What the program's socket had no room for goes on as far as there is room now. True: some of it did. */
bool link_deliver_rest(struct library_link *link);
/* The connection to the program is closed; what the program has sent may still arrive, and the end after it. */
void link_cut(struct library_link *link);
/* Both ends are closed, and what was under way is lost. */
void link_end(struct library_link *link);
