/* A schedule of a library: its workload, and where it deviates from the usual course (library_usual), one line each.
 *
 *   before answer client-1 link-1 3: request client-2 link-1
 *   before clock 2: pause-client client-1 4500
 *   before call client-2 thread-1 1: hold-reply client-1 link-1 3000
 *
 * Before connection 1 of client-1 hands over its third answer, a request arrives on connection 1 of client-2; and so
 * on. Steps are: call client-N thread-N, request client-N link-N, answer client-N link-N, clock. Targets of faults:
 * client-N for pause-client, kill-client and client-clock-jump; redis-N for clock-jump, crash-server and
 * crash-server-empty; client-N link-N for all others. Old names of faults are read. Everything else follows the usual
 * course. */
#ifndef LOCKSTORM_LIBRARY_SCHEDULE_H
#define LOCKSTORM_LIBRARY_SCHEDULE_H

#include "harness/library/library_choice.h"
#include "harness/library/workload.h"

enum { LIBRARY_DEVIATIONS = 2048, LIBRARY_LINE = WORKLOAD_LINE };

struct library_deviation {
    struct library_choice usual; /* a step */
    uint64_t step;               /* its number among those of the same thread, connection or clock, from 1 */
    struct library_choice instead;
};

struct library_schedule {
    struct workload workload;
    struct library_deviation deviations[LIBRARY_DEVIATIONS];
    int count;
};

/* The name of a fault in schedules and on the command line; NULL: it is a step. */
const char *library_fault_name(enum library_choice_kind kind);
/* The fault with this name; old names, too. LIBRARY_NONE: it is not in this world. */
enum library_choice_kind library_fault_named(const char *name);
/* Writes a deviation as a line without its end. Returns the buffer. */
const char *library_deviation_write(const struct library_deviation *deviation, char line[LIBRARY_LINE]);
/* Reads it back. False: *reason says what is wrong with the line. */
bool library_deviation_read(const char *line, struct library_deviation *deviation, const char **reason);

#endif
