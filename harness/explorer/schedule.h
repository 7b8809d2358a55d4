/* A schedule: its deviations from the usual course (world_usual_choice), one line each. Everything else follows the
 * usual course, so a schedule of one line has one deviation.
 *
 *   before client-1 6: pause-client client-1 1500     before client-1 takes its 6th step, it is paused for 1500 ms
 *   before client-1 4: client-2                before client-1 takes its 4th step, client-2 takes one
 *
 * Steps are taken by client-N, client-N-watchdog, late-N (a late command), stream-N or stream-N-replica-2 (replication)
 * and clock. Targets of faults: client-N for pause-client, pause-client-before-send, kill-client and
 * client-clock-jump; redis-N for clock-jump, crash-server and crash-server-empty; the replica of redis-N, or
 * redis-N-replica-2, for failover and stall-replica; client-N or its watchdog for drop-message (a message on a
 * channel), lose-reply, error-reply, drop-request, hold-request and duplicate-request. Old names of faults are read.
 * "before client-1 4: quiet": no fault strikes from there on. */
#ifndef LOCKSTORM_EXPLORER_SCHEDULE_H
#define LOCKSTORM_EXPLORER_SCHEDULE_H

#include <stddef.h>

#include "harness/simulation/choice.h"

struct deviation {
    struct choice usual; /* the choice of the usual course */
    uint64_t step;       /* the number of that step among those of the same task, stream, late command or clock */
    struct choice instead;
};

struct schedule {
    struct deviation *deviations; /* owned */
    size_t count, room;
};

void schedule_add(struct schedule *schedule, struct deviation deviation);
void schedule_copy(struct schedule *to, const struct schedule *from);
void schedule_free(struct schedule *schedule);

enum { SCHEDULE_LINE = 160 };

/* Writes one deviation as a line without its end. Returns the buffer. */
const char *deviation_write(const struct deviation *deviation, char line[SCHEDULE_LINE]);
/* Reads it back. False: *reason says what is wrong with the line. */
bool deviation_read(const char *line, struct deviation *deviation, const char **reason);

#endif
