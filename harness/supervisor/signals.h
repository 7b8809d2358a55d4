/* Signals that threads of a program send to each other, or that its timers send, while calls are held. A thread whose
 * call is held would hear of a signal only afterwards, so the call ends as the kernel would have ended it. */
#pragma once

#include "harness/supervisor/held_calls.h"

/* The signal is being sent to this thread, or (tid 0) to the process. */
void signals_interrupt(struct supervisor *supervisor, struct program_process *process, pid_t tid, int number);
/* Whether this signal ends the process: nothing handles, ignores or blocks it. */
bool signals_ends_process(const struct program_process *process, int number);
/* Sends a signal as a timer does. */
void signals_send(struct supervisor *supervisor, struct program_process *process, pid_t tid, int number,
                  uint64_t value);
