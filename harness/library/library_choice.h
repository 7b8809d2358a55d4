/* One choice of a schedule of a library: what happens next. */
#ifndef LOCKSTORM_LIBRARY_CHOICE_H
#define LOCKSTORM_LIBRARY_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum library_choice_kind {
    LIBRARY_NONE = 0,
    /* Steps: */
    LIBRARY_CALL,    /* the next call of thread `who` is asked */
    LIBRARY_REQUEST, /* the oldest request on connection `who` reaches its server */
    LIBRARY_ANSWER,  /* the oldest answer on connection `who` reaches its program */
    LIBRARY_CLOCK,   /* nothing is under way: time passes until something happens by itself */
    /* Faults: */
    LIBRARY_PAUSE,             /* client `who` does nothing for `amount` ms */
    LIBRARY_CRASH,             /* client `who` is killed */
    LIBRARY_HOLD_REQUEST,      /* what connection `who` carries to its server is late by `amount` ms */
    LIBRARY_HOLD_REPLY,        /* what connection `who` carries to its program is late by `amount` ms */
    LIBRARY_DROP_REQUEST,      /* connection `who` is lost, with the request that was on its way */
    LIBRARY_LOSE_REPLY,        /* connection `who` is lost after its request was executed, with the answer */
    LIBRARY_ERROR_REPLY,       /* a busy server answers the request of connection `who` and does not execute it */
    LIBRARY_CLOCK_JUMP,        /* the clock of server `who` jumps by `amount` ms */
    LIBRARY_CLIENT_CLOCK_JUMP, /* the wall clock of client `who` jumps by `amount` ms */
    LIBRARY_RESTART,           /* server `who` restarts with its data; connections and scripts are lost */
    LIBRARY_RESTART_EMPTY,     /* the same without its data */
    LIBRARY_CHOICE_KINDS
};
static const enum library_choice_kind LIBRARY_FAULTS_FROM = LIBRARY_PAUSE;

struct library_choice {
    enum library_choice_kind kind;
    int who;        /* from 0; of threads and connections: library_thread_number, library_link_number */
    int64_t amount; /* ms, of the kinds that have one, else 0 */
};

static inline bool library_strikes_client(enum library_choice_kind kind) {
    return kind == LIBRARY_PAUSE || kind == LIBRARY_CRASH || kind == LIBRARY_CLIENT_CLOCK_JUMP;
}

static inline bool library_strikes_server(enum library_choice_kind kind) {
    return kind == LIBRARY_CLOCK_JUMP || kind == LIBRARY_RESTART || kind == LIBRARY_RESTART_EMPTY;
}

static inline bool library_has_amount(enum library_choice_kind kind) {
    return kind == LIBRARY_PAUSE || kind == LIBRARY_HOLD_REQUEST || kind == LIBRARY_HOLD_REPLY ||
           kind == LIBRARY_CLOCK_JUMP || kind == LIBRARY_CLIENT_CLOCK_JUMP;
}

static inline bool library_choice_same(struct library_choice one, struct library_choice other) {
    return one.kind == other.kind && one.who == other.who && one.amount == other.amount;
}

#endif
