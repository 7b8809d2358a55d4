/* A task of the explorer: the code of one lock client's worker or watchdog, as a coroutine.
 *
 * A task's command takes two steps. In the first it arrives: the server executes it. In the second the task resumes
 * with the reply and runs to its next command, sleep or wait. */
#pragma once

#include "harness/environment/env_ops.h"
#include "harness/environment/redis_push.h"
#include "harness/simulation/coroutine.h"
#include "harness/simulation/node.h"

struct world;

enum { WORLD_RESOURCE = -1 /* the node of a command that goes to the resource */ };

enum command_kind { COMMAND_REQUEST, COMMAND_SUBSCRIBE, COMMAND_UNSUBSCRIBE };

/* A command that a client has sent, and what the client was doing then. */
struct sent_command {
    enum command_kind kind;
    int node; /* or WORLD_RESOURCE */
    const char *bytes;
    size_t length;
    bool may_block; /* the server may answer later, as BLPOP does */
    int client;
    bool by_watchdog;   /* and not by the client's worker */
    uint32_t op, grant; /* its latest operation; the grant that it had not released, 0: none */
    bool renews;        /* sent by its watchdog, or in a renewal that it has invoked */
};

enum explored_task_state {
    EXPLORED_TASK_ABSENT = 0, /* not started, or finished */
    EXPLORED_TASK_READY,      /* its code can run */
    EXPLORED_TASK_SENDING,    /* its command is on its way to the server */
    EXPLORED_TASK_AWAITING,   /* its command has arrived or is lost; the task waits for the reply */
    EXPLORED_TASK_SLEEPING,   /* until deadline_ns */
    EXPLORED_TASK_LISTENING,  /* waits for a message on its subscriptions to a node */
    EXPLORED_TASK_JOINING,    /* a worker waits for the end of its watchdog */
};

/* A connection that carries only subscriptions, and the messages that have arrived on it. */
struct listener {
    struct node_connection connection;
    int channels; /* subscribed ones */
    struct redis_push_buffer pushes;
    int64_t pushed_ns; /* when the oldest of them that were there at once arrived */
};

struct explored_task {
    struct env env; /* first member: the lock's code gets a pointer to it */
    struct world *world;
    int number; /* see TASKS_PER_CLIENT */
    struct coroutine coroutine;
    enum explored_task_state state;
    int checkpoint;              /* the last one that its code has passed: an index into world->checkpoints; 0: none */
    int64_t deadline_ns;         /* the end of its sleep or wait */
    int64_t blocked_until_ns;    /* by then the server answers a blocking command, by the server's clock */
    struct sent_command command; /* the current one; its node: of the messages that the task waits for */
    bool arrived;
    int64_t held_until_ns;           /* it does not arrive before; 0: not held */
    bool unsent;                     /* held because its client was paused before it sent the command */
    int64_t reply_held_until_ns;     /* its code gets the reply not before; 0: not held */
    redisReply *raw;                 /* the reply, once it has arrived; owned */
    int64_t arrived_ns, answered_ns; /* when the command arrived, and when it was answered */
    int64_t attempt_ns;              /* see env_attempt_ns; -1: no command since the last wait */
    int64_t slept_gone_ns;           /* how long its code has slept since its client is gone */
    struct env_reply reply;
    struct node_connection connections[WORLD_NODES];
    int connected_in[WORLD_NODES]; /* the node's life in which the connection was made; -1: not connected */
    struct listener listeners[WORLD_NODES];
    /* Of a watchdog: */
    void (*run)(struct env *, void *);
    void *argument;
    bool stopping;
};
