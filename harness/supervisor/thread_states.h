/* What the threads of a program do, read from /proc: only where bookkeeping does not say, because a program seems to
 * run and makes no call. */
#ifndef LOCKSTORM_THREAD_STATES_H
#define LOCKSTORM_THREAD_STATES_H

#include "harness/supervisor/supervisor.h"

enum { THREAD_CALL_ROOM = 80 };

/* Finds a thread whose call is not held and that sleeps all the same, and writes the call's number and the thread's
 * name into `call`. False: there is none. */
bool thread_states_find_blocked(const struct supervisor *supervisor, char call[THREAD_CALL_ROOM]);

/* Whether there is a thread or a process that one of the program's threads has made and that has not made a call. */
bool thread_states_find_newborn(struct supervisor *supervisor);

#endif
