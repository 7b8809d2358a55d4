#ifndef LOCKSTORM_CALLS_FUTEX_H
#define LOCKSTORM_CALLS_FUTEX_H

#include "harness/supervisor/calls.h"

/* Makes those threads ready that wait at a word which has changed since: a thread has ended, for which the kernel
 * clears a word and wakes who waits there. True: there were some. */
bool futex_recheck(struct supervisor *supervisor);

#endif
