/* Ending a process on purpose. */
#pragma once

#include "faults/common/fault.h"

/* SIGKILL. Returns when the last thread has ended, not when the first has become a zombie: until then the process's
 * connections are open. */
bool process_end(int pid, struct fault_report *report);
