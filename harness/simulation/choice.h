/* One choice of a schedule: what happens next. */
#ifndef LOCKSTORM_SIMULATION_CHOICE_H
#define LOCKSTORM_SIMULATION_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* faults/names/fault_rows.c says what each fault is called. */
enum choice_kind {
    CHOICE_NONE = 0,
    /* Steps. Each task, late command and stream, and the clock, counts its own: */
    CHOICE_TASK,   /* task `who`: its command arrives, or its code resumes */
    CHOICE_LATE,   /* late command `who` arrives; no task waits for its reply */
    CHOICE_STREAM, /* replica `who` receives what its master has written since */
    CHOICE_CLOCK,  /* no task can take a step: time passes until one can */
    CHOICE_QUIET,  /* not a step: no fault strikes from here on, and liveness is judged */
    /* Faults: */
    CHOICE_PAUSE,             /* client `who` takes no steps for `amount` ms; a command that it has sent arrives */
    CHOICE_PAUSE_BEFORE_SEND, /* the same, but its next command leaves only after the pause */
    CHOICE_CRASH,             /* client `who` is killed */
    CHOICE_FAILOVER,          /* the master of replica `who` is gone, and clients are led to that replica */
    CHOICE_STALL_REPLICA,     /* no replication arrives at replica `who` for `amount` ms */
    CHOICE_CLOCK_JUMP,        /* the clock of node `who` jumps by `amount` ms */
    CHOICE_CLIENT_CLOCK_JUMP, /* the wall clock of client `who` jumps by `amount` ms */
    CHOICE_RESTART,           /* the leading server of node `who` restarts with its data; connections and scripts go */
    CHOICE_RESTART_EMPTY,     /* the same without its data */
    CHOICE_LOSE_MESSAGE,      /* the oldest message on a channel that has arrived for task `who` is lost */
    CHOICE_LOSE_REPLY,        /* the command of task `who` is executed, its reply is lost */
    CHOICE_DROP_REQUEST,      /* the command of task `who` is lost */
    CHOICE_HOLD_REQUEST,      /* the command of task `who` arrives `amount` ms later */
    CHOICE_ERROR_REPLY,       /* a busy node answers the command of task `who` with an error and does not execute it */
    CHOICE_DUPLICATE_REQUEST, /* the command of task `who` arrives a second time, later */
    CHOICE_KINDS
};
enum { CHOICE_FAULTS_FROM = CHOICE_PAUSE };
enum { TASKS_PER_CLIENT = 2 }; /* the worker of client N is task 2 N, its watchdog task 2 N + 1 */

struct choice {
    enum choice_kind kind;
    int who;        /* from 0: the client, node, replica (replica_number), late command or task that the kind names */
    int64_t amount; /* ms, of the kinds that have one (choice_has_amount), else 0 */
};

static inline bool choice_pauses_client(enum choice_kind kind) {
    return kind == CHOICE_PAUSE || kind == CHOICE_PAUSE_BEFORE_SEND;
}

/* What `who` of a fault counts: clients, nodes or replicas; for all other faults tasks. */
static inline bool choice_strikes_client(enum choice_kind kind) {
    return choice_pauses_client(kind) || kind == CHOICE_CRASH || kind == CHOICE_CLIENT_CLOCK_JUMP;
}

static inline bool choice_strikes_node(enum choice_kind kind) {
    return kind == CHOICE_CLOCK_JUMP || kind == CHOICE_RESTART || kind == CHOICE_RESTART_EMPTY;
}

static inline bool choice_strikes_replica(enum choice_kind kind) {
    return kind == CHOICE_FAILOVER || kind == CHOICE_STALL_REPLICA;
}

static inline bool choice_sets_clock(enum choice_kind kind) {
    return kind == CHOICE_CLOCK_JUMP || kind == CHOICE_CLIENT_CLOCK_JUMP;
}

static inline bool choice_has_amount(enum choice_kind kind) {
    return choice_pauses_client(kind) || kind == CHOICE_STALL_REPLICA || choice_sets_clock(kind) ||
           kind == CHOICE_HOLD_REQUEST;
}

/* The name of a fault; NULL: the choice is a step. */
const char *choice_fault_name(enum choice_kind kind);
/* The fault with this name, or with this name in schedules of before. CHOICE_NONE: the simulation has no such fault. */
enum choice_kind choice_fault_named(const char *word);

static inline bool choice_same(struct choice one, struct choice other) {
    return one.kind == other.kind && one.who == other.who && one.amount == other.amount;
}

#endif
