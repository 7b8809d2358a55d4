/* The situations of a lock's usual course: where a task is when it takes a step. A fault that is aimed at one strikes a
 * task that is in it, so that faults strike the few steps of a release as often as the many of a client that waits. */
#ifndef LOCKSTORM_EXPLORER_SITUATIONS_H
#define LOCKSTORM_EXPLORER_SITUATIONS_H

#include "harness/scheduler/random.h"
#include "harness/simulation/world_state.h"

enum { SITUATIONS_MOST = 128 };

/* A task is the worker or the watchdog, has passed a checkpoint, and its code runs, or its command is on its way to a
 * server or to the resource. */
struct situations {
    struct situation {
        uint64_t name;    /* a digest */
        uint64_t steps;   /* in which a task was in it, in all courses */
        uint64_t courses; /* in which it came */
        uint64_t latest;  /* the number of the latest of these, from 1 */
        uint32_t kinds;   /* bit n: a fault of enum choice_kind n may strike there */
    } of[SITUATIONS_MOST];
    int count;
    uint64_t courses;  /* that have begun */
    bool spares_store; /* no fault may strike a command to the resource; set before the first course */
};

/* A fault's aim: a situation, and how many steps in it are let pass before. */
struct aim {
    uint64_t name; /* 0: it has none */
    uint64_t skip;
};

/* Another usual course begins. */
static inline void situations_begin(struct situations *situations) {
    situations->courses++;
}

/* Notes a task that takes a step of the usual course. More than SITUATIONS_MOST situations: the rest is left out. */
void situations_note(struct situations *situations, const struct world *world, int task);
uint64_t situation_name(const struct world *world, int task);

/* Draws an aim for a fault of a kind: each situation in which it may strike is as likely as any other. Without one the
 * aim has no name. */
struct aim situations_draw(const struct situations *situations, enum choice_kind kind, struct random *random);

#endif
