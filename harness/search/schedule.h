/* A schedule: its workload, and where it deviates from the usual course of its world, one line each. Everything else
 * follows the usual course, so a schedule of one line has one deviation.
 *
 *   before client-1 6: pause-client client-1 1500     before client-1 takes its 6th step, it is paused for 1500 ms
 *   before client-1 4: client-2                       before client-1 takes its 4th step, client-2 takes one
 *   before answer client-1 link-1 3: request client-2 link-1
 *
 * Steps of C locks are taken by client-N, client-N-watchdog, late-N (a late command), stream-N or stream-N-replica-2
 * (replication) and clock. Steps of hosted programs are: call client-N thread-N, request client-N link-N, answer
 * client-N link-N, clock. Targets of faults: client-N for pause-client, pause-client-before-send, kill-client and
 * client-clock-jump; redis-N for clock-jump, crash-server, crash-server-empty, server-down and
 * server-silent; the replica of redis-N, or
 * redis-N-replica-2, for failover and stall-replica; for faults of one message a client or its watchdog, or
 * client-N link-N. Old names of faults are read. "before client-1 4: quiet": no fault strikes from there on. */
#pragma once

#include <stddef.h>

#include "harness/search/workload.h"

struct deviation {
    struct choice usual; /* the choice of the usual course: a step */
    uint64_t step;       /* the number of that step among those of the same task, stream, thread, connection or clock */
    struct choice instead;
};

struct schedule {
    struct workload workload;
    struct deviation *deviations; /* owned */
    size_t count, room;
};

void schedule_add(struct schedule *schedule, struct deviation deviation);
void schedule_copy(struct schedule *to, const struct schedule *from);
void schedule_free(struct schedule *schedule);

enum { SCHEDULE_LINE = WORKLOAD_LINE };

/* Writes one deviation as a line without its end. Returns the buffer. */
const char *deviation_write(const struct choice_space *space, const struct deviation *deviation,
                            char line[SCHEDULE_LINE]);
/* Reads it back. False: *reason says what is wrong with the line. */
bool deviation_read(const struct choice_space *space, const char *line, struct deviation *deviation,
                    const char **reason);
/* Adds the call or the deviation of a line. False: *reason says what is wrong with it. */
bool schedule_line_read(const struct choice_space *space, const char *line, struct schedule *schedule,
                        const char **reason);
