/* Stopping processes and looking at them from the outside (/proc). For faults only. */
#ifndef LOCKSTORM_FAULTS_PROCESS_H
#define LOCKSTORM_FAULTS_PROCESS_H

#include "faults/fault.h"

/* Counts the threads of a process and how many of them are in state T (stopped). False: no such process, or nothing is
 * left of it but its exit status. */
bool process_look(int pid, int *threads, int *stopped);

/* Sends a signal to the process and, if it leads a group, to all of that, as a trial's processes do: a client's lock
 * may be a program of its own. As kill(2) answers. */
int process_signal(int pid, int signal);

/* SIGSTOP, and true when every thread has stopped, its children's too: kill returns before that. The trial is told.
 * *sent, of the fault's state, says whether process_go_on has something to do. */
bool process_stop(const struct fault_target *target, bool *sent, struct fault_report *report);

/* SIGCONT, unless another fault still wants the process stopped, and true when it goes on. A process that has ended
 * meanwhile needs no healing. */
bool process_go_on(const struct fault_target *target, bool *sent, struct fault_report *report);

/* Whether every thread is in state T, its children's too, with a sentence. */
bool process_prove_stopped(const struct fault_target *target, struct fault_report *report);

/* Returns after that much of real time. */
void process_nap_us(long duration_us);

#endif
