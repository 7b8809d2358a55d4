/* The calls that the kernel hands over, and what is done with each. A group of calls has a file of its own. */
#pragma once

#include "harness/supervisor/held_calls.h"

typedef void call_handler(const struct program_call *call);

struct supervised_call {
    int number;
    call_handler *handle;
    int limit; /* handed over only if this argument, as 32 bits, is not 0; 0: always */
};

/* The last entry has no handler. */
extern const struct supervised_call CALLS_CLOCK[], CALLS_FUTEX[], CALLS_WAIT[], CALLS_TIMER[], CALLS_LIFE[],
    CALLS_CHANCE[], CALLS_CONNECT[];
extern const struct supervised_call *const CALL_GROUPS[]; /* ends with NULL */

/* The entry of a call; NULL: it is not handed over. */
const struct supervised_call *call_find(int number);
/* Refuses a call as if this kernel did not have it. */
call_handler call_refuse_unknown;
/* Gives up: the kernel would carry the call out by the machine's clock, or would not tell the supervisor of its end. */
call_handler call_give_up;
/* "another call" for a call without a name here: those that may wait and that the supervisor does not answer have one.
 */
const char *call_name(int number);

/* --- for handlers --- */

/* Copies from the program's memory. False: it cannot be read, and the call is refused (EFAULT). */
bool call_read(const struct program_call *call, uint64_t address, void *bytes, size_t size);
/* Writes a result where the program wants it. False: it cannot be written, and the call is refused (EFAULT). */
bool call_write(const struct program_call *call, uint64_t address, const void *bytes, size_t size);
/* The same, and answers `value`. */
void call_answer_written(const struct program_call *call, uint64_t address, const void *bytes, size_t size,
                         int64_t value);
/* Reads a struct timespec; false, and the call is refused, when it cannot be read or is not a valid time. */
bool call_read_time(const struct program_call *call, uint64_t address, int64_t *time_ns);
/* The same for an argument that may be NULL: INT64_MAX, no limit. */
bool call_read_limit(const struct program_call *call, int argument, int64_t *limit_ns);
/* The stamp of the program's monotonic clock this much later; INT64_MAX: never. */
int64_t call_deadline_ns(const struct program_call *call, int64_t limit_ns);
