/* The clocks that a supervised program sees: those of its client's host in the trial (shared_page.h), or, without a
 * trial, a clock of its own that moves from one deadline to the next.
 *
 * A program may wait actively for its clock to move: libuuid reads gettimeofday until it shows another microsecond.
 * After PROGRAM_CLOCK_EQUAL_READS reads of the same time by system calls the program's clock creeps ahead by a
 * microsecond. Reads of a patched vDSO cannot be counted; a thread that computes for long without a call makes the
 * clock creep too (supervisor.c). */
#pragma once

#include <time.h>

#include "harness/scheduler/shared_page.h"

enum { PROGRAM_CLOCK_EQUAL_READS = 50 };

/* How far a wait or timer goes past its deadline: the default timer slack of the kernel. No kernel wakes a program at
 * the very nanosecond, so programs wait again until the clock shows more than their deadline: `while (now <= deadline)`
 * would never end (decision 0144). */
enum { PROGRAM_CLOCK_LATE_NS = 50000 };

struct program_clock {
    const struct shared_page *page; /* NULL: a clock of its own */
    const struct task_slot *host;
    int64_t mono_ns, wall_ns; /* what the program sees now */
    int64_t crept_ns;         /* of it: how far ahead of its host */
    unsigned equal_reads;
};

/* Without a page, both clocks begin at the stamps that a trial's do. */
void program_clock_begin(struct program_clock *clock, const struct shared_page *page, const struct task_slot *host);
/* Takes over what the host's clocks show now. True: the program sees another time than before. */
bool program_clock_update(struct program_clock *clock);
/* Counts a read that the program made by a system call. True: the clock has crept. */
bool program_clock_count_read(struct program_clock *clock);
void program_clock_creep(struct program_clock *clock, int64_t step_ns);
/* Moves a clock of its own; does nothing to a host's. */
void program_clock_move(struct program_clock *clock, int64_t mono_ns);

/* Whether programs read this clock in virtual time, and what it shows: ns. */
bool program_clock_is_virtual(clockid_t id);
bool program_clock_is_wall(clockid_t id);
int64_t program_clock_read(const struct program_clock *clock, clockid_t id);
/* How late a wait or timer ends that began at began_ns; one whose deadline was over then ends at once. */
int64_t program_clock_late_ns(int64_t began_ns, int64_t deadline_ns);
/* The stamp of the trial's clock at which this program's monotonic clock shows mono_ns; INT64_MAX stays. */
int64_t program_clock_trial_ns(const struct program_clock *clock, int64_t mono_ns);
