/* The calls that the kernel hands over, and what is done with each. A group of calls has a file of its own. */
#pragma once

#include "harness/supervisor/held_calls.h"

typedef void call_handler(const struct program_call *call);

struct supervised_call {
    int number;
    const char *name;
    call_handler *handle; /* NULL: the call is not handed over; it may wait */
    int limit;            /* handed over only if this argument, as 32 bits, is not 0; 0: always */
};

extern const struct supervised_call CALLS[]; /* the last entry has no number: below 0 */

/* The entry of a call, or the last one, whose name is "another call". */
const struct supervised_call *call_find(int number);

/* The handlers; each file has those of one kind. */
call_handler on_clock_gettime, on_gettimeofday, on_time, on_nanosleep, on_clock_nanosleep, on_clock_set, on_times,
    on_sysinfo, on_futex, on_epoll, on_poll, on_select, on_transfer, on_signalfd, on_timerfd_settime,
    on_timerfd_gettime, on_timer_create, on_posix_timer, on_setitimer, on_getitimer, on_alarm, on_birth,
    on_await_signal, on_exit_thread, on_exit_group, on_await_child, on_kill, on_queue, on_kill_thread, on_getrandom,
    on_open, on_connect, on_listen;
/* Refuses a call as if this kernel did not have it. */
call_handler call_refuse_unknown;
/* Gives up: the kernel would carry the call out by the machine's clock, or would not tell the supervisor of its end. */
call_handler call_give_up;

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

/* --- futexes: what a thread's end wakes --- */

/* Makes those threads ready that wait at a word which has changed since: a thread has ended, for which the kernel
 * clears a word and wakes who waits there. True: there were some. */
bool futex_recheck(struct supervisor *supervisor);

/* Of a mutex with priority inheritance: its word holds the id of the thread that has it. */
call_handler futex_lock_inheriting, futex_unlock_inheriting;
/* Gives it to this waiter if its owner has ended. */
bool futex_inherit(struct held_call *held);

/* --- timers, processes, the filter --- */

/* The program's monotonic clock at the next expiry; INT64_MAX: none. */
int64_t timers_next_deadline_ns(const struct supervisor *supervisor);
/* Lets the timers expire whose time has come. True: there were some. */
bool timers_expire(struct supervisor *supervisor);
void timers_free(struct supervisor *supervisor);

/* A process is ending, or has ended: waits until it has, and forgets it. */
void life_process_ended(struct supervisor *supervisor, struct program_process *process);
/* Puts the calling process, and all that it starts, under the filter. The descriptor at which its calls are received,
 * or -1 with errno. Calls that are handed over wait where only a signal that kills can end the wait. */
int call_filter_install(void);
