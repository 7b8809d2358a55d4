/* One choice of a schedule: what happens next. */
#ifndef LOCKSTORM_EXPLORER_CHOICE_H
#define LOCKSTORM_EXPLORER_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum choice_kind {
    CHOICE_NONE = 0,
    /* Steps, which are counted per who takes them: */
    CHOICE_TASK,   /* task `who` takes its next step: its command arrives, or it goes on with what has come */
    CHOICE_LATE,   /* a command arrives that nobody waits for any more: the `who`-th of them */
    CHOICE_STREAM, /* what a master has written since arrives at its replica `who` */
    CHOICE_CLOCK,  /* nobody can go on: time passes until somebody can */
    CHOICE_QUIET,  /* no step: nothing goes wrong from here on, and who waits has to be served */
    /* Faults: */
    CHOICE_PAUSE,   /* client `who` stands still for `amount` ms, what it has sent arrives */
    CHOICE_HALT,    /* the same before it has sent what it was about to */
    CHOICE_CRASH,   /* client `who` is killed */
    CHOICE_PROMOTE, /* the master of replica `who` is gone, clients are led to that replica */
    CHOICE_STALL,   /* what is written is on its way to replica `who` for `amount` ms at least */
    CHOICE_JUMP,    /* the clock of node `who` jumps by `amount` ms */
    CHOICE_STEP,    /* the wall clock of client `who` is set by as much */
    CHOICE_RESTART, /* whoever leads node `who` is started again with its data, without connections and scripts */
    CHOICE_FORGET,  /* the same without its data */
    CHOICE_MUTE,    /* the next message that has arrived for task `who` is lost */
    CHOICE_LOSE,    /* the command of task `who` arrives, its reply does not */
    CHOICE_DROP,    /* the command of task `who` does not arrive */
    CHOICE_HOLD,    /* the command of task `who` is on its way for `amount` ms */
    CHOICE_REFUSE,  /* the command of task `who` arrives at a node that answers with an error and does nothing */
    CHOICE_TWICE,   /* the command of task `who` arrives a second time, later */
    CHOICE_KINDS
};
enum { CHOICE_FAULTS_FROM = CHOICE_PAUSE };

struct choice {
    enum choice_kind kind;
    int who;
    int64_t amount;
};

static inline bool choice_stops_client(enum choice_kind kind) {
    return kind == CHOICE_PAUSE || kind == CHOICE_HALT;
}

/* What `who` of a fault numbers: a client, a node, a replica, or else a task. */
static inline bool choice_strikes_client(enum choice_kind kind) {
    return choice_stops_client(kind) || kind == CHOICE_CRASH || kind == CHOICE_STEP;
}

static inline bool choice_strikes_node(enum choice_kind kind) {
    return kind == CHOICE_JUMP || kind == CHOICE_RESTART || kind == CHOICE_FORGET;
}

static inline bool choice_strikes_replica(enum choice_kind kind) {
    return kind == CHOICE_PROMOTE || kind == CHOICE_STALL;
}

static inline bool choice_sets_clock(enum choice_kind kind) {
    return kind == CHOICE_JUMP || kind == CHOICE_STEP;
}

static inline bool choice_has_amount(enum choice_kind kind) {
    return choice_stops_client(kind) || kind == CHOICE_STALL || choice_sets_clock(kind) || kind == CHOICE_HOLD;
}

static inline bool choice_same(struct choice one, struct choice other) {
    return one.kind == other.kind && one.who == other.who && one.amount == other.amount;
}

#endif
