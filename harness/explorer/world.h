/* The world of one schedule: clients as coroutines with their locks, real servers, one virtual time - and who can take
 * the next step. It chooses nothing itself.
 *
 * A client's worker and its watchdog are two *tasks*. A task's command takes two steps: it arrives, which means that
 * the server executes it; and the task goes on with its reply, up to its next command, sleep or wait. Time passes only
 * when no task can take a step, up to the next moment at which one can. A client that is paused takes no steps, but
 * its command that was on its way arrives. So a schedule - the order of all steps, and the faults between them - is all
 * that decides what happens. */
#ifndef LOCKSTORM_EXPLORER_WORLD_H
#define LOCKSTORM_EXPLORER_WORLD_H

#include "harness/client_work.h"
#include "harness/env_ops.h"
#include "harness/explorer/choice.h"
#include "harness/explorer/coroutine.h"
#include "harness/explorer/node.h"
#include "harness/explorer/stream.h"
#include "harness/random.h"
#include "harness/resource.h"

enum { WORLD_CLIENTS = 16, WORLD_TASKS = 2 * WORLD_CLIENTS, WORLD_NODES = 8, WORLD_LATE = 16 };
enum { WORLD_REPLICAS = 2, WORLD_SERVERS = 1 + WORLD_REPLICAS /* of a node */ };
enum { WORLD_TEXT = 48, WORLD_TEXTS = 96, WORLD_CHECKPOINTS = 32 };
enum { WORLD_STEPS_MOST = 20000, WORLD_CHOICES = WORLD_TASKS + WORLD_LATE + WORLD_REPLICAS * WORLD_NODES + 1 };

enum task_state {
    TASK_ABSENT = 0,
    TASK_READY,     /* its code can go on */
    TASK_ASKING,    /* its command is on its way */
    TASK_AWAITING,  /* its command has arrived, or is lost: waits for the reply */
    TASK_SLEEPING,  /* until deadline_ns */
    TASK_LISTENING, /* for a message on its subscriptions to a node */
    TASK_JOINING,   /* for the end of its watchdog */
};

/* What an asking task wants of a node. */
enum ask { ASK_COMMAND, ASK_SUBSCRIBE, ASK_UNSUBSCRIBE };

/* A connection that is only subscribed, and the messages that have arrived on it. */
struct listener {
    struct link link;
    int channels;
    redisReply **kept;
    size_t kept_count;
};

struct task {
    struct env env; /* first: what the lock's code gets */
    struct world *world;
    int number; /* 2 * client; + 1: its watchdog */
    struct coroutine coroutine;
    struct random random;
    enum task_state state;
    uint64_t steps; /* taken in this schedule */
    int checkpoint; /* the last one that its code has passed, a place in world->checkpoints; 0: none */
    int64_t deadline_ns;
    int64_t look_ns; /* a server that sits on its command answers by then, by its own clock */
    /* Its command: */
    enum ask ask;
    int node; /* the number of nodes stands for the store */
    const char *command;
    size_t length;
    bool may_block, arrived;
    int64_t held_until_ns; /* 0: not held */
    bool unsent;           /* held because its client stands still before it has sent it */
    redisReply *raw;
    struct env_reply reply;
    struct link links[WORLD_NODES];
    int connected_in[WORLD_NODES]; /* which life of the node, in this schedule; -1: none */
    struct listener listeners[WORLD_NODES];
    /* Of a watchdog: */
    void (*run)(struct env *, void *);
    void *argument;
    bool stopping;
};

struct explored_client {
    struct client work;
    struct task worker, watchdog;
    bool opened, done;
    bool gone;               /* killed, or the schedule is over: its code runs to its end in a world without answers */
    int64_t paused_until_ns; /* 0: it runs */
    uint32_t name;           /* index of its name in the history */
};

/* A command that arrives after its task has given it up. */
struct late {
    struct link link;
    char *command; /* NULL: arrived */
    size_t length;
    int node;
    bool may_block;
    int64_t held_until_ns;
    uint64_t steps; /* 1 when it has arrived */
};

/* A node: its master, and its replicas if there are any, each as a server from 0 on. */
struct explored_node {
    struct node servers[WORLD_SERVERS];
    struct stream streams[WORLD_SERVERS][WORLD_SERVERS]; /* from one to another */
    int leads;                                           /* to whom clients talk; not 0: the master is gone */
    int life;                                            /* how often all connections to whoever leads were lost */
    int64_t stalled_until_ns[WORLD_SERVERS];             /* nothing arrives there before */
    uint64_t stream_steps[WORLD_SERVERS];
};

/* How choices number replicas: all first ones, then all second ones. */
static inline int replica_number(int node, int server) {
    return (server - 1) * WORLD_NODES + node;
}
static inline int replica_node(int number) {
    return number % WORLD_NODES;
}
static inline int replica_server(int number) {
    return number / WORLD_NODES + 1;
}

/* The names of faults and targets in the history. */
struct world_names {
    struct world_text {
        char words[WORLD_TEXT];
        uint32_t index;
    } texts[WORLD_TEXTS]; /* all of them: none is written twice */
    int text_count;
    uint32_t driver, store, stranger, resource, schedule, quiet;
    uint32_t fault[CHOICE_KINDS];
    uint32_t servers[WORLD_NODES][WORLD_SERVERS];
};

struct world_settings {
    const struct lock_type *lock;
    enum resource_mode store;
    int clients, nodes;
    int replicas; /* of each node */
    int64_t lease_ms, wait_ms, work_ms, turns, permits;
    int64_t bound_ms; /* how long a free lock may go unnoticed; 0: nobody asks */
    bool fixed_lease, extends;
    uint64_t seed; /* of the campaign; stands in the history */
    const char *history, *sink;
    const char *sockets[WORLD_SERVERS * WORLD_NODES], *clocks[WORLD_SERVERS * WORLD_NODES]; /* masters, then replicas */
};

struct world {
    struct world_settings settings;
    struct stage *stage;            /* only its clock and the clients' places are used */
    struct history *history, *sink; /* the sink takes what a client does that is gone */
    uint64_t prefix;                /* records that are the same in every schedule */
    struct world_names names;
    struct actor driver;
    struct resource resource;
    struct resource_answers answers;
    redisReader *requests, *replies; /* of the store */
    struct explored_node nodes[WORLD_NODES];
    struct explored_client clients[WORLD_CLIENTS];
    int client_count; /* of this schedule */
    struct late late[WORLD_LATE];
    int late_count;
    const char
        *checkpoints[WORLD_CHECKPOINTS]; /* that were passed in any schedule, from 1 on; 0: none, the beginning */
    int checkpoint_count;
    int current; /* the task that took the last step, -1: none */
    uint64_t clock_steps, steps;
    bool quiet;   /* CHOICE_QUIET was made */
    bool opening; /* commands take no steps */
};

/* Makes the history file and connects to the servers. False with *error. */
bool world_open(struct world *world, const struct world_settings *settings, struct history_error *error);
void world_close(struct world *world);

/* Everything as new, `clients` clients (at most as many as in the settings) with their locks open, none of which has
 * taken a step. `seed`: of their random numbers; `schedule`: its number, for the history. False: a lock could not be
 * opened. */
bool world_begin(struct world *world, int clients, uint64_t seed, uint64_t schedule);

/* The steps that can be taken now, at most WORLD_CHOICES; returns how many. CHOICE_CLOCK only where it is the only one.
 * 0: nothing can happen any more. */
int world_choices(const struct world *world, struct choice *choices);
/* Which of them is taken where a schedule says nothing: the task goes on that took the last step, else the first that
 * can. */
struct choice world_usual(const struct world *world, const struct choice *choices, int count);
/* How many steps whoever takes this one has taken. */
uint64_t world_steps_of(const struct world *world, struct choice choice);
/* Whether a choice can be made now: of the steps, and of the faults. */
bool world_allows(const struct world *world, struct choice choice);
void world_do(struct world *world, struct choice choice);

/* Ends the schedule and its history: whoever is not done runs to the end unrecorded. */
void world_end(struct world *world);

/* Where the code of whom a fault strikes is; of a server's, of who took the last step. */
int world_checkpoint(const struct world *world, struct choice fault);
/* What can be seen of the state that it is in, mixed: where everybody's code is, what it waits for and has been told,
 * who stands still or is gone, who leads, and what the resource holds. Not the time, and not what servers hold. */
uint64_t world_state(const struct world *world);

struct task *world_task(struct world *world, int number);
/* Whether that server of a node is a replica whose master lives. */
bool replica_follows(const struct world *world, int node, int server);
/* Whom clients talk to who talk to this node. */
struct node *world_node(struct world *world, int number);
/* What a task has sent arrives once more, when nobody waits for it. False: there are too many already. */
bool task_repeat(struct task *task);
/* Somebody's connections to a node are lost. */
void task_disconnect(struct task *task, int node);

/* --- env_explored.c --- */

/* Prepares a task's environment. */
void explored_env_open(struct task *task, struct world *world, int number, uint64_t seed);
/* What a task kept of the schedule goes; its connections stay, unless somebody waits on them. */
void explored_env_reset(struct task *task);
void explored_env_close(struct task *task);

/* Whether a task can take a step, other than that its command arrives. */
bool task_can_go_on(const struct task *task, int64_t now_ns);
/* The command that it is about to send leaves so much later, as if it had not been asked for before. */
void task_put_off(struct task *task, int64_t by_ns);
/* Its command arrives at the node; `lost`: the reply does not come back. */
void task_deliver(struct task *task, bool lost);
/* Its command arrives at a node that is busy: the answer is an error, and nothing is done. */
void task_refuse(struct task *task);
/* Its code goes on. */
void task_go_on(struct task *task);
/* The store executes an encoded command. The caller frees the answer. */
redisReply *world_store_exchange(struct world *world, const char *command, size_t length);
/* Looks what has arrived on a node's connections for those who wait there. */
void world_collect(struct world *world, int node);
/* The oldest message that has arrived is as if it had not. */
void listener_skip(struct listener *listener);
/* Runs a task to its end that nothing answers any more. */
void task_unwind(struct task *task);

#endif
