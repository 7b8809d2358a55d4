/* Stopping and ending processes, and checking that from the outside (/proc). */
#pragma once

#include "faults/common/fault.h"

/* Counts the threads of a process and how many of them are in state T (stopped). False: no such process, or only its
 * exit status is left. */
bool process_count_threads(int pid, int *threads, int *stopped);

/* Sends a signal to the process and, if it leads a group, to the whole group: a client's lock may run in a program of
 * its own. Returns as kill(2) does. */
int process_signal(int pid, int signal);

/* Sends SIGSTOP or SIGCONT to a process and its children. Returns when every thread has stopped, or none is stopped any
 * more: kill(2) returns before that. False with a sentence in the report. */
bool process_signal_and_wait(int pid, int signal, struct fault_report *report);

/* Stops the target's process with its children and reports that to the trial. *sent, in the fault's state, says whether
 * process_continue has something to do. */
bool process_stop(const struct fault_target *target, bool *sent, struct fault_report *report);

/* Continues it, unless another fault still wants the process stopped. A process that has ended meanwhile needs no
 * healing. */
bool process_continue(const struct fault_target *target, bool *sent, struct fault_report *report);

/* Whether every thread of the process and its children is in state T, with a sentence. */
bool process_prove_stopped(const struct fault_target *target, struct fault_report *report);

/* SIGKILL. Returns when the last thread has ended, not when the first has become a zombie: until then the process's
 * connections are open. */
bool process_end(int pid, struct fault_report *report);
