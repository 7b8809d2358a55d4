/* The state of the simulated world, and questions about it that change nothing. */
#pragma once

#include "harness/client/client.h"
#include "harness/resource/resource.h"
#include "harness/search/search_world.h"
#include "harness/simulation/explored_task.h"
#include "harness/simulation/replication_stream.h"

enum { WORLD_REPLICAS = 2, WORLD_SERVERS = 1 + WORLD_REPLICAS /* of a node: server 0 is the first master */ };
enum { WORLD_CLIENTS = 16, WORLD_TASKS = TASKS_PER_CLIENT * WORLD_CLIENTS, WORLD_LATE = 16 };
enum { WORLD_TEXT = 48, WORLD_TEXTS = 160, WORLD_CHECKPOINTS = 32 };
enum { WORLD_STEPS_MOST = 20000, WORLD_CHOICES = WORLD_TASKS + WORLD_LATE + WORLD_REPLICAS * WORLD_NODES + 1 };

_Static_assert((int)WORLD_NODES == (int)NODES_NUMBERED, "replicas are numbered across nodes");

#define WORLD_LOCK_NAME "account" /* of the lock, in the history */

struct sent_bytes {
    char *bytes; /* owned */
    size_t length, room;
};

/* What a client does; see client_course.h. */
struct client_course {
    struct random random;
    int64_t patience_ms; /* how long it waits for the lock; -1: as long as the lock does */
};

/* A node as clients see it: a master and its replicas, each a real server. One of them leads. */
struct explored_node {
    struct node servers[WORLD_SERVERS];
    struct stream streams[WORLD_SERVERS][WORLD_SERVERS]; /* [from][to] */
    int leads;                                           /* the server that clients talk to */
    int life;                                            /* how often all connections to the leading server were lost */
    int64_t stalled_until_ns[WORLD_SERVERS];             /* no replication arrives at the server before */
};

struct explored_client {
    struct client work;
    struct explored_task worker, watchdog;
    bool opened, done;
    bool gone;               /* killed, or the schedule is over: its code runs to its end and gets no answers */
    int64_t paused_until_ns; /* 0: it runs */
    uint32_t name;           /* index of its name in the history */
    struct client_course course;
    struct sent_bytes sent; /* all commands that it has sent to nodes in this schedule */
    /* For client_traces.c: */
    struct sent_bytes sent_first;              /* and in the first schedule of all */
    uint32_t entries_name, subscriptions_name; /* indexes of names of residue */
    uint32_t excused;                          /* bit n: what it leaves on node n may be due to a fault */
    uint32_t settled;                          /* as client.settled, at its last step */
};

/* A command that arrives after its task has stopped waiting for it, or that arrives a second time. */
struct late_command {
    struct node_connection connection;
    struct sent_command command;
    char *bytes; /* owned, of the command; NULL: it has arrived, or was dropped */
    int64_t held_until_ns;
};

/* Indexes of names in the history. */
struct world_names {
    struct world_text {
        char words[WORLD_TEXT];
        uint32_t index;
    } texts[WORLD_TEXTS]; /* every text that was written: none is written twice */
    int text_count;
    uint32_t driver, store, stranger, resource, schedule, quiet;
    uint32_t fault[CHOICE_KINDS];
    uint32_t servers[WORLD_NODES][WORLD_SERVERS];
};

/* What the schedule's seed draws for each client, instead of the same for all. */
enum world_varied {
    WORLD_VARIES_WORK = 1,       /* how long its turns work */
    WORLD_VARIES_TURNS = 2,      /* how many it makes; and one more of everybody after all that was late */
    WORLD_VARIES_PATIENCE = 4,   /* how long it waits for the lock, up to wait_ms */
    WORLD_VARIES_OPERATIONS = 8, /* pauses between turns, renewals, re-entry, where the lock offers them */
    WORLD_VARIES_ALL = 15
};

struct world_settings {
    const struct lock_type *lock;
    enum resource_mode store;
    int clients, nodes;
    int replicas; /* of each node */
    int64_t lease_ms, wait_ms, work_ms, turns, permits;
    int64_t bound_ms; /* liveness: how long a free lock may stay unclaimed; 0: liveness is not judged */
    unsigned varied;  /* of enum world_varied */
    bool fixed_lease, extends, checks_validity;
    bool in_order;              /* fairness is judged: the history says that time passes only when no message is under
                                   way, and some clients give up sooner than others */
    uint64_t seed;              /* of the search; the history names it */
    const char *history, *sink; /* paths; the sink takes what clients record after they are gone */
    /* Masters, then first replicas, then second ones; the caller's: */
    const char *sockets[WORLD_SERVERS * WORLD_NODES], *clocks[WORLD_SERVERS * WORLD_NODES];
};

/* What servers hear and answer, command by command: for an observer of a schedule that is replayed. */
enum heard_fate {
    HEARD_ANSWERED,
    HEARD_ANSWER_LOST,   /* executed and answered; the answer does not reach the client */
    HEARD_WAITS,         /* a blocking command; the server answers later */
    HEARD_ANSWERED_LATE, /* the answer to a blocking command */
    HEARD_LATE,          /* executed when nobody waits for its answer: a copy, or one that its client has given up */
    HEARD_LOST,          /* never executed: it was dropped, or its connection was */
    HEARD_REFUSED,       /* never executed: the server answers with an error */
    HEARD_FATES
};

struct world {
    struct search_world search; /* first member: this world as one to search */
    struct world_settings settings;
    struct shared_page *page; /* only its clock and the clients' task slots are used */
    struct history *history, *sink;
    uint64_t prefix; /* number of records at the beginning that all schedules share */
    struct world_names names;
    struct actor driver;
    struct resource resource;
    struct reply_text answers;
    redisReader *requests, *replies; /* of the store */
    struct explored_node nodes[WORLD_NODES];
    struct explored_client clients[WORLD_CLIENTS];
    int client_count; /* in this schedule */
    struct late_command late[WORLD_LATE];
    int late_count;
    /* Checkpoints that were passed in any schedule, from index 1 on; index 0: the beginning. */
    const char *checkpoints[WORLD_CHECKPOINTS];
    int checkpoint_count;
    bool quiet;                    /* CHOICE_QUIET was made */
    bool compared;                 /* sent_first of all clients is known */
    bool opening;                  /* locks are being opened: commands are executed at once and take no steps */
    struct history_reader *reader; /* of `history` */
    struct commands_json *heard;   /* of a schedule that is watched; owned; NULL: nobody watches */
};

static inline const struct world *world_of(const struct search_world *search) {
    return (const struct world *)search;
}

int64_t world_now_ns(const struct world *world);
struct explored_task *world_task(struct world *world, int number);
const struct explored_task *world_task_const(const struct world *world, int number);
/* The server of a node that leads: clients talk to it. */
struct node *world_node(struct world *world, int number);
/* Whether that server of a node is a replica whose master is alive. */
bool replica_follows(const struct world *world, int node, int server);
enum { SENT_LEAST = 8 }; /* letters: shorter texts occur in commands by chance */
/* Whether a text of SENT_LEAST letters or more occurs in what a client has sent. */
bool sent_contains(const struct sent_bytes *sent, const char *text, size_t length);
/* A node from which a message has arrived that the task has not taken; or -1. */
int world_message_node(const struct world *world, int number);
/* Frees the command; it does not arrive any more. */
void late_command_drop(struct late_command *late);

/* A digest of the visible state: each task's checkpoint, state and reply, pauses, crashes, leading servers and the
 * resource. Leaves out the time and what servers hold. */
uint64_t world_state(const struct search_world *search);

/* --- world_names.c: what the explorer itself writes into a history --- */

/* Writes the records that all schedules share, and sets world->prefix and world->names. */
void world_prefix_write(struct world *world);
/* Appends a record of the driver. */
void world_record(struct world *world, struct history_record record);
/* Appends the start, proof or end of a fault; `target` is a name in the history. */
void world_fault_record(struct world *world, enum history_kind kind, enum choice_kind fault, uint32_t target);

/* --- world_choices.c: what can happen next in a world. Nothing here changes it --- */

extern const struct choice_space SIMULATED_CHOICES;

/* Operations of struct search_world. CHOICE_CLOCK occurs only alone. */
int world_choices(struct search_world *search, struct choice *choices);
bool world_allows(const struct search_world *search, struct choice choice);
/* The next moment at which anything can change; or INT64_MAX. */
int64_t world_next_deadline_ns(const struct world *world);

/* --- world_faults.c: what each fault does to a world --- */

/* Injects a fault that world_allows, and records it. */
void world_fault_apply(struct world *world, struct choice fault);
/* Ends the pauses whose time is over, after time has passed. */
void world_pauses_end(struct world *world);

/* --- client_traces.c: what a client has left behind --- */

/* Keeps what all clients have sent in the first schedule. */
void client_traces_compare_with(struct world *world);
/* A command of the client to a node may have been lost, come late or come twice. */
void client_traces_excuse(struct explored_client *client, int node);
/* Looks for traces of a client that has taken a step, if an operation that should have left none has ended in it. */
void client_traces_look(struct world *world, struct explored_client *client);

/* --- client_course.c: what a client does with its lock --- */

/* Before the client takes a step. */
void client_course_begin(struct explored_client *client, uint64_t seed);
/* Called by the client's own code, when its lock is open. */
void client_course_run(struct explored_client *client);

/* --- server_renewal.c: what a renewal changes on a server, seen there and not by its outcome --- */

/* Keeps the bytes of what a client sends: by them a key is known as its own. */
void server_renewal_keep(struct explored_client *client, const char *command, size_t length);

/* Call it before a command arrives. The leading server's keys, or NULL: the command renews nothing, or does not name
 * the lock. Give it to server_renewal_record. */
redisReply *server_renewal_before(struct world *world, const struct sent_command *command);
/* Call it after the command; `heard`: the server has executed it. Frees `before`, which may be NULL. */
void server_renewal_record(struct world *world, const struct sent_command *command, redisReply *before, bool heard);
