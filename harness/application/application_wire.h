/* What the instances of an application do to locks and data: their connections, read by the recogniser
 * (harness/recogniser), and which request is behind each message.
 *
 * A schedule lets one thing happen at a time, and a program runs until it is quiet. So what a program sends is caused
 * by what has just reached it: an answer to a message of a request, or a new request. Where that request has been
 * answered meanwhile, another one that waited in the same program went on; it is known which if only one waits there.
 */
#pragma once

#include "checkers/rules/application_rules.h"
#include "harness/library/library_world.h"
#include "harness/recogniser/recogniser.h"

enum { WIRE_SESSIONS = LIBRARY_CLIENTS * LIBRARY_LINKS, WIRE_MESSAGES = 256, WIRE_TABLES = 256 };

/* A connection, and for each message that is under way the request that has sent it. */
struct observed_session {
    uint64_t serial; /* of the link; 0: unused */
    struct wire_session *wire;
    int client;
    int spoken[WIRE_MESSAGES], executed[WIRE_MESSAGES]; /* rings: sent and not executed, executed and not delivered */
    unsigned spoken_first, spoken_end, executed_first, executed_end;
    int statements[WIRE_MESSAGES]; /* the request of a statement, by its number */
    uint64_t sorts[WIRE_MESSAGES]; /* of the message that a statement came with (struct queued_message) */
};

struct observed_table {
    uint32_t oid;
    struct table_facts facts;
    char name[128], keys[TABLE_KEYS][64];
};

struct application_wire {
    struct library_world *world;
    struct link_observer observer;
    struct observed_node {
        struct application_wire *wire;
        int node;
    } nodes[LIBRARY_NODES];                        /* contexts of the recognisers */
    struct recogniser *recognisers[LIBRARY_NODES]; /* NULL: of a service that is not read */
    struct observed_session sessions[WIRE_SESSIONS];
    struct observed_table tables[WIRE_TABLES];
    int table_count;
    uint64_t executed; /* number of messages that have reached servers since the record began */
    struct rule_record record;
    /* Owned, of each event of the record: the number of the world's events before it, and the sort of its message. */
    size_t *places;
    uint64_t *sorts;
    size_t place_room, sort_room;
    int requests[LIBRARY_CLIENTS][WORKLOAD_THREADS]; /* that are under way; NO_REQUEST */
    int cause;                                       /* the request for which something has just happened */
    int64_t cause_ns;                                /* when: it is no cause of what happens later */
};

/* `hints`: what the user says of locks; the caller's. */
void application_wire_open(struct application_wire *wire, struct library_world *world, const struct lock_hint *hints,
                           int hint_count);
void application_wire_close(struct application_wire *wire);
/* Asks the servers for the tables that there are: the wire names none of their keys. */
void application_wire_learn(struct application_wire *wire);
/* A record begins: of a schedule, or of single requests before it. */
void application_wire_begin(struct application_wire *wire);
/* A request was sent to an instance, or by a thread of it, and was answered. */
void application_wire_asked(struct application_wire *wire, int client, int thread, const char *name);
void application_wire_answered(struct application_wire *wire, int client, int thread);
/* What each request did, as JSON; the caller's. */
json_t *application_wire_json(const struct application_wire *wire);
