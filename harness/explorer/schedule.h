/* A schedule: in what it differs from the usual course (world_usual), one line each. The rest follows, so a schedule
 * with one line in it is a story with one surprise.
 *
 *   before client-1 6: pause client-1 1500     when client-1 would take its 6th step, it is paused for 1500 ms
 *   before client-1 4: client-2                client-2 takes a step first
 *
 * Who takes steps: client-N, client-N-watchdog, late-N, stream-N or stream-N-replica-2, clock. Faults: pause,
 * pause-before-send, crash and client-clock-jump strike client-N; clock-jump, restart and restart-empty redis-N;
 * failover and stall-replica its replica redis-N, or redis-N-replica-2; lose-message what client-N, or its watchdog, is
 * told by a channel; lose-reply, error-reply, drop-request, hold-request and duplicate-request what it has sent. And
 * "before client-1 4: quiet": nothing goes wrong from there on. */
#ifndef LOCKSTORM_EXPLORER_SCHEDULE_H
#define LOCKSTORM_EXPLORER_SCHEDULE_H

#include <stddef.h>

#include "harness/explorer/world.h"

struct deviation {
    struct choice usual; /* what would happen */
    uint64_t step;       /* and the how manieth step of whoever takes it that is */
    struct choice instead;
};

struct schedule {
    struct deviation *deviations;
    size_t count, room;
};

void schedule_add(struct schedule *schedule, struct deviation deviation);
void schedule_copy(struct schedule *to, const struct schedule *from);
void schedule_free(struct schedule *schedule);

enum { SCHEDULE_LINE = 160 };

/* How the faults are called, by enum choice_kind; NULL: a step. */
const char *schedule_fault_word(enum choice_kind kind);
/* Writes one deviation as a line without its end. Returns the buffer. */
const char *deviation_write(const struct deviation *deviation, char line[SCHEDULE_LINE]);
/* Reads it back. False: *reason says what is wrong with the line. */
bool deviation_read(const char *line, struct deviation *deviation, const char **reason);

#endif
