/* Situations: where somebody is that takes a step. A fault that is aimed at one strikes the one that is in it, so that
 * faults strike the few steps of a release as often as the many of a client that waits.
 *
 * Of a C lock they are those of its usual course: a task is the worker or the watchdog, has passed a checkpoint, and
 * its code runs, or its command is on its way to a server or to the resource. Of hosted programs they are the sorts of
 * messages, requests or answers, that were seen in the session. */
#pragma once

#include "harness/search/search_world.h"

enum { SITUATIONS_MOST = 128 };

struct situations {
    struct situation {
        uint64_t name;    /* a digest */
        uint64_t steps;   /* that were taken in it, in all courses */
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

/* Another course begins. */
static inline void situations_begin(struct situations *situations) {
    situations->courses++;
}

/* Notes a step. More than SITUATIONS_MOST situations: the rest is left out. */
void situations_note(struct situations *situations, const struct search_world *world, struct choice step);

/* Draws an aim for a fault of a kind: each situation in which it may strike is as likely as any other. Without one the
 * aim has no name. */
struct aim situations_draw(const struct situations *situations, enum choice_kind kind, struct random *random);
