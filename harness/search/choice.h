/* One choice of a schedule: what happens next. Two worlds have choices: the simulation of C locks
 * (harness/simulation) and the world of hosted programs (harness/library). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* faults/names/fault_rows.c says what each fault is called. */
enum choice_kind {
    CHOICE_NONE = 0,
    /* Steps. Each task, late command, stream, thread and connection, and the clock, counts its own. Of C locks: */
    CHOICE_TASK,   /* task `who`: its command arrives, or its code resumes */
    CHOICE_LATE,   /* late command `who` arrives; no task waits for its reply */
    CHOICE_STREAM, /* replica `who` receives what its master has written since */
    /* Of hosted programs: */
    CHOICE_CALL,    /* the next call of thread `who` is asked */
    CHOICE_REQUEST, /* the oldest request on connection `who` reaches its server */
    CHOICE_ANSWER,  /* the oldest answer on connection `who` reaches its program */
    /* Of both: */
    CHOICE_CLOCK, /* no other step can be taken: time passes until something happens by itself */
    CHOICE_QUIET, /* not a step: no fault strikes from here on, and liveness is judged */
    /* Faults. One of a message names a task of a C lock, or a connection of a hosted program: */
    CHOICE_PAUSE,             /* client `who` takes no steps for `amount` ms; what it has sent arrives */
    CHOICE_PAUSE_BEFORE_SEND, /* the same, but its next command leaves only after the pause */
    CHOICE_CRASH,             /* client `who` is killed */
    CHOICE_FAILOVER,          /* the master of replica `who` is gone, and clients are led to that replica */
    CHOICE_STALL_REPLICA,     /* no replication arrives at replica `who` for `amount` ms */
    CHOICE_CLOCK_JUMP,        /* the clock of node `who` jumps by `amount` ms */
    CHOICE_CLIENT_CLOCK_JUMP, /* the wall clock of client `who` jumps by `amount` ms */
    CHOICE_RESTART,           /* the leading server of node `who` restarts with its data; connections and scripts go */
    CHOICE_RESTART_EMPTY,     /* the same without its data */
    CHOICE_LOSE_MESSAGE,      /* the oldest message on a channel that has arrived for task `who` is lost */
    CHOICE_LOSE_REPLY,        /* the command is executed, its reply is lost; of a program, with the connection */
    CHOICE_DROP_REQUEST,      /* the command is lost; of a program, with the connection */
    CHOICE_HOLD_REQUEST,      /* the command arrives `amount` ms later */
    CHOICE_ERROR_REPLY,       /* a busy node answers the command with an error and does not execute it */
    CHOICE_DUPLICATE_REQUEST, /* the command arrives a second time, later */
    CHOICE_HOLD_REPLY,        /* the command is executed, and its reply arrives `amount` ms later */
    /* A minority of several servers at most: */
    CHOICE_SERVER_DOWN,   /* node `who` is gone for good: connections to it are refused */
    CHOICE_SERVER_SILENT, /* node `who` hangs for good: it answers nothing */
    CHOICE_KINDS
};
enum { CHOICE_FAULTS_FROM = CHOICE_PAUSE };

/* Numbers of a client's parts: its worker is task 2 N and its watchdog task 2 N + 1, and so on. */
enum { TASKS_PER_CLIENT = 2, THREADS_PER_CLIENT = 3, LINKS_PER_CLIENT = 64 };

/* Replicas are numbered across nodes: the first replicas of all nodes, then the second ones. */
enum { NODES_NUMBERED = 8 };
static inline int replica_number(int node, int server) {
    return (server - 1) * NODES_NUMBERED + node;
}
static inline int replica_node(int number) {
    return number % NODES_NUMBERED;
}
static inline int replica_server(int number) {
    return number / NODES_NUMBERED + 1;
}

struct choice {
    enum choice_kind kind;
    int who;        /* from 0: the client, node, replica (replica_number), late command, task, thread or connection */
    int64_t amount; /* ms, of the kinds that have one (choice_has_amount), else 0 */
};

static inline bool choice_same(struct choice one, struct choice other) {
    return one.kind == other.kind && one.who == other.who && one.amount == other.amount;
}

static inline bool choice_is_fault(enum choice_kind kind) {
    return (int)kind >= CHOICE_FAULTS_FROM;
}

static inline bool choice_ends_server(enum choice_kind kind) {
    return kind == CHOICE_SERVER_DOWN || kind == CHOICE_SERVER_SILENT;
}

/* Whether one more of so many servers can be down: a majority is left. */
static inline bool choice_leaves_majority(int servers, int down) {
    return 2 * (servers - down - 1) > servers;
}

static inline bool choice_sets_clock(enum choice_kind kind) {
    return kind == CHOICE_CLOCK_JUMP || kind == CHOICE_CLIENT_CLOCK_JUMP;
}

/* What `who` of a choice names. */
enum choice_target {
    TARGET_NOTHING,
    TARGET_CLIENT,
    TARGET_TASK,
    TARGET_LATE,
    TARGET_THREAD,
    TARGET_LINK,
    TARGET_NODE,
    TARGET_REPLICA,
    TARGET_MESSAGE /* of a fault of one message: as struct choice_space says */
};

/* The choices that one world has. */
struct choice_space {
    uint32_t steps;                 /* bit n: enum choice_kind n, a step or CHOICE_QUIET */
    const enum choice_kind *faults; /* in the order in which they are drawn and shown */
    int fault_count;
    enum choice_target message;         /* what a fault of one message names: TARGET_TASK or TARGET_LINK */
    int clients, nodes, replicas, late; /* numbers in schedules go up to these */
    /* Sentences for lines of a schedule that are wrong: */
    const char *steps_are, *targets_are, *has_no_such_fault;
};

/* The name of a fault; NULL: the choice is a step. */
const char *choice_fault_name(enum choice_kind kind);
/* The fault with this name, or with this name in schedules of before. CHOICE_NONE: the world has no such fault. */
enum choice_kind choice_fault_named(const struct choice_space *space, const char *word);

/* Whether `who` of a fault counts these: TARGET_CLIENT, TARGET_NODE, TARGET_REPLICA or TARGET_MESSAGE. */
bool choice_strikes(enum choice_kind kind, enum choice_target target);
bool choice_has_amount(enum choice_kind kind);
enum choice_target choice_target(const struct choice_space *space, enum choice_kind kind);
/* How many of these a client has; 0: they belong to no client. */
int choice_units(enum choice_target target);
/* The client that a choice concerns; -1: a choice of a server, or of nobody. */
int choice_client(const struct choice_space *space, struct choice choice);
/* Whose turn a step is: a task's of a C lock, a client's of hosted programs; -1: nobody's. */
int choice_chain(const struct choice_space *space, struct choice step);
