/* The calls that the kernel hands over, and what is done with each. A group of calls has a file of its own. */
#pragma once

#include "harness/supervisor/held_calls.h"

typedef void call_handler(struct supervisor *supervisor, struct program_process *process,
                          const struct seccomp_notif *call);

enum call_condition {
    CALL_ALWAYS,
    CALL_UNLESS_ZERO, /* the argument, as 32 bits, is not 0 */
    CALL_IF_ZERO,
};

struct supervised_call {
    int number;
    call_handler *handle;
    enum call_condition condition;
    int argument;
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

/* --- for handlers --- */

static inline uint64_t call_argument(const struct seccomp_notif *call, int number) {
    return call->data.args[number];
}

/* Copies from the program's memory. False: it cannot be read, and the call is refused (EFAULT). */
bool call_read(struct supervisor *supervisor, const struct program_process *process, const struct seccomp_notif *call,
               uint64_t address, void *bytes, size_t size);
/* Writes a result where the program wants it, and answers `value`; or refuses the call (EFAULT). */
void call_answer_written(struct supervisor *supervisor, const struct program_process *process,
                         const struct seccomp_notif *call, uint64_t address, const void *bytes, size_t size,
                         int64_t value);
/* Reads a struct timespec; false, and the call is refused, when it cannot be read or is not a valid time. */
bool call_read_time(struct supervisor *supervisor, const struct program_process *process,
                    const struct seccomp_notif *call, uint64_t address, int64_t *time_ns);
/* The same for an argument that may be NULL: INT64_MAX, no limit. */
bool call_read_limit(struct supervisor *supervisor, const struct program_process *process,
                     const struct seccomp_notif *call, int argument, int64_t *limit_ns);
/* The stamp of the program's monotonic clock this much later; INT64_MAX: never. */
int64_t call_deadline_ns(const struct supervisor *supervisor, int64_t limit_ns);
