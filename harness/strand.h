/* A strand's side of the stage: giving the turn back and waiting for it. */
#ifndef LOCKSTORM_STRAND_H
#define LOCKSTORM_STRAND_H

#include "harness/stage.h"

struct strand {
    struct stage *stage;
    struct strand_place *place;
    int turn_fd;  /* eventfd, written by the conductor: it is your turn */
    int yield_fd; /* eventfd, written by every strand: the turn came back */
};

/* A new process's first call: in virtual time it returns when the trial gives the first turn, so that processes may
 * start side by side and still appear in an order that comes from the seed. */
void strand_enter(struct strand *strand);

/* Gives the turn back in `state` (IDLE, HELD, READY) and returns when it is this strand's turn again. In real time
 * that is when the driver says so. */
void strand_park(struct strand *strand, enum strand_state state);

/* Sleeps until the trial's clock reaches deadline_ns, or another strand calls strand_wake. In real time a wake-up that
 * came after the last sleep ends this one: look at the clock. */
void strand_sleep_until(struct strand *strand, int64_t deadline_ns);
void strand_wake(struct strand *sleeper);

/* The life of a second strand in one process. The first calls strand_announce and then starts the thread, which calls
 * strand_begin before anything else and strand_end after everything else; strand_await_end returns after that. */
void strand_announce(struct strand *second);
void strand_begin(struct strand *second);
void strand_end(struct strand *second, struct strand *first);
void strand_await_end(struct strand *first, struct strand *second);
bool strand_has_ended(const struct strand *second);

/* Waits until `fd` is readable: true; or until the trial's clock passes deadline_ns: false. With `may_block` the other
 * side is allowed to let us wait (a blocking pop, a subscription): others run and the clock moves meanwhile. Without,
 * virtual time stands still until the answer is there, for at most STRAND_REPLY_LIMIT_MS of real time. */
bool strand_wait_readable(struct strand *strand, int fd, int64_t deadline_ns, bool may_block);

/* Holds here if the driver has armed this checkpoint. Returns true if it was held. */
bool strand_checkpoint(struct strand *strand, const char *name);

enum { STRAND_REPLY_LIMIT_MS = 10000 };

#endif
