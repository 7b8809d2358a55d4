/* Ending a process on purpose. */
#ifndef LOCKSTORM_FAULTS_PROCESS_END_H
#define LOCKSTORM_FAULTS_PROCESS_END_H

#include "faults/fault.h"

/* SIGKILL; returns when the last of its threads has ended, not when the first is a zombie: until then its connections
 * are open. */
bool process_end(int pid, struct fault_report *report);

#endif
