#pragma once

#include "harness/supervisor/calls.h"

/* Makes those threads ready that wait at a word which has changed since: a thread has ended, for which the kernel
 * clears a word and wakes who waits there. True: there were some. */
bool futex_recheck(struct supervisor *supervisor);

/* Of a mutex with priority inheritance: its word holds the id of the thread that has it. */
call_handler futex_lock_inheriting, futex_unlock_inheriting;
/* Gives it to this waiter if its owner has ended. */
bool futex_inherit(struct held_call *held);
