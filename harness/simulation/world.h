/* The world of one schedule: clients as coroutines with their locks, real servers, and one virtual time. It makes no
 * choices itself (harness/search/strategy.h does).
 *
 * A client has two tasks, its worker and its watchdog (explored_task.h). Time passes only when no task can take a step,
 * up to the next moment at which one can. A paused client takes no steps, but a command that it has sent arrives. So a
 * schedule - the order of all steps and the faults between them - determines everything that happens. */
#pragma once

#include "harness/client/client.h"
#include "harness/resource/resource.h"
#include "harness/search/heard_fate.h"
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
    bool holds_long;     /* if its lease is renewed */
};

/* A node as clients see it: a master and its replicas, each a real server. One of them leads. */
struct explored_node {
    struct node servers[WORLD_SERVERS];
    struct stream streams[WORLD_SERVERS][WORLD_SERVERS]; /* [from][to] */
    int leads;                                           /* the server that clients talk to */
    int life;                                            /* how often all connections to the leading server were lost */
    enum choice_kind down;                               /* what has ended it for good; CHOICE_NONE: it runs */
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
    uint32_t driver, store, stranger, resource, schedule, quiet, bound;
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
    int64_t bound_ms;      /* liveness: how long a free lock may stay unclaimed; 0: liveness is not judged */
    int64_t calm_bound_ms; /* the same of a schedule in which no fault struck; 0: bound_ms, too */
    unsigned varied;       /* of enum world_varied */
    bool fixed_lease, extends, checks_validity;
    bool in_order;              /* fairness is judged: the history says that time passes only when no message is under
                                   way, and some clients give up sooner than others */
    uint64_t seed;              /* of the search; the history names it */
    const char *history, *sink; /* paths; the sink takes what clients record after they are gone */
    /* Masters, then first replicas, then second ones; the caller's: */
    const char *sockets[WORLD_SERVERS * WORLD_NODES], *clocks[WORLD_SERVERS * WORLD_NODES];
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
    bool struck;                   /* by a fault */
    bool quiet;                    /* CHOICE_QUIET was made */
    bool compared;                 /* sent_first of all clients is known */
    bool opening;                  /* locks are being opened: commands are executed at once and take no steps */
    struct history_reader *reader; /* of `history` */
    struct commands_json *heard;   /* of a schedule that is watched; owned; NULL: nobody watches */
};

static inline const struct world *world_of(const struct search_world *search) {
    return (const struct world *)search;
}

/* --- world.c --- */

/* Creates the history files and connects to the servers. False with *error. */
bool world_open(struct world *world, const struct world_settings *settings, struct history_error *error);
void world_close(struct world *world);
/* Makes world->search of a world that has these settings and need not be open. Its properties are those of the checkers
 * of a history; its places are the checkpoints that the struck clients have passed. */
void world_search_make(struct world *world, const struct world_settings *settings);

/* Begins a schedule: everything is as new, and `clients` clients (at most settings.clients) have opened their locks and
 * taken no step. `seed`: of their random numbers; `schedule`: its number, for the history. False: a lock could not be
 * opened. */
bool world_begin(struct world *world, int clients, uint64_t seed, uint64_t schedule);
/* An operation of struct search_world. */
bool world_apply(struct search_world *search, struct choice choice);
/* Ends the schedule and its history. Clients that are not done run to their end unrecorded. */
void world_end(struct world *world);

/* --- world_state.c: questions about the state, which change nothing --- */

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

/* --- env_explored.c: what the lock's code of a task calls, and how its commands are executed. A task gives up control
 * wherever it waits; its commands reach real servers when the schedule lets them arrive --- */

/* Prepares a task's environment for a schedule. */
void explored_env_open(struct explored_task *task, struct world *world, int number, uint64_t seed);
void explored_env_close(struct explored_task *task);
/* The client is gone: its code runs to its end without answers, and what it records goes to the sink. */
void explored_client_abandon(struct explored_client *client);

/* Whether a task's code can resume. The arrival of its command is a step of its own, which this does not cover. */
bool explored_task_can_resume(const struct explored_task *task, int64_t now_ns);
/* Runs the task's code to its next command, sleep or wait. */
void explored_task_resume(struct explored_task *task);
/* Delays a command that has not left yet by `by_ns`, with its deadline, as if it were sent that much later. */
void explored_task_delay(struct explored_task *task, int64_t by_ns);
/* The task's command arrives at the node; `lost`: the reply does not come back. */
void explored_task_deliver(struct explored_task *task, bool lost);
/* The task's command arrives at a busy node, which answers with an error and executes nothing. */
void explored_task_refuse(struct explored_task *task);
/* A copy of the task's command becomes a late command. False: there are WORLD_LATE of them already. */
bool explored_task_duplicate(struct explored_task *task);
/* The task's connections to a node are lost. */
void explored_task_disconnect(struct explored_task *task, int node);

/* The client's connection to the resource (harness/client/client.h): `holder` is the client's worker. The
 * reply belongs to the worker until its next command. */
const struct env_reply *explored_resource_exchange(void *holder, const char *command, size_t length);
/* The store executes an encoded command. The caller frees the answer. */
redisReply *world_store_exchange(struct world *world, const char *command, size_t length);
/* Reads what has arrived on the connections to a node, for the tasks that wait there and for its replicas. */
void world_collect(struct world *world, int node);
/* The same after its clock has moved on, which sends nothing to who listens. */
void world_collect_in_time(struct world *world, int node);

/* --- commands_json.c: the commands of a replayed schedule as JSON --- */

/* What servers heard. An object is appended for each command:
 *   {"mono_ns": N, "client": index from 1, "watchdog": bool, "node": index from 1, 0: the resource, "words": [text],
 *    "fate": text, "answer": text, if there is one}
 * and for each fault that strikes a command, or a message on a channel:
 *   {"line": of the schedule, "mono_ns": N, "fault": name, "client": index from 1, "watchdog": bool, "node": index from
 * 1, 0: the resource, "words": [text]}
 * and for each deviation that is no fault, what the usual step was about, and the one that is taken:
 *   {"line": of the schedule, "usual": text, "instead": text, "event": 0}
 * "request SET": this command of a task arrives; "answer SET": the task gets the answer to it; "wake", "message", "on":
 * it wakes up, hears a message, or just goes on; empty: it is no step of a task. A byte that is no printable ASCII is
 * \xNN in a text. */
struct commands_json {
    const struct schedule *schedule; /* its last deviation is the one that is taking effect */
    size_t noted;                    /* its deviations in `orders` */
    json_t *list, *strikes, *orders; /* arrays; owned */
    redisReader *reader;
};

/* Freed with commands_json_free, which takes NULL, too. */
struct commands_json *commands_json_new(const struct schedule *schedule);
void commands_json_free(struct commands_json *self);
/* Call it when a server hears a command, or answers it late. `reply` may be NULL. Nothing is noted of a world that
 * nobody watches, and while locks are being opened. */
void commands_json_tell(const struct world *world, const struct sent_command *command, enum heard_fate fate,
                        const redisReply *reply);
/* A fault loses, delays, refuses or repeats the command, or loses the message, which has come from its node. Call it
 * before the fault acts. `message` is NULL: the command is struck. */
void commands_json_strike(const struct world *world, enum choice_kind fault, const struct sent_command *command,
                          const redisReply *message);
/* Notes the last deviation, if it is a new one and no fault. Call it before any choice is made. */
void commands_json_order(const struct world *world);
