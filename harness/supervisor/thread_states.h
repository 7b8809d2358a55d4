/* What the threads of a program do, read from /proc: only where bookkeeping does not say, because a program seems to
 * run and makes no call. */
#pragma once

#include "harness/supervisor/supervisor.h"

struct blocked_thread {
    char call[80];  /* its name and number, and the thread's name */
    bool by_device; /* the kernel waits for a disk, or for memory: the call ends by itself */
};

/* Finds a thread whose call is not held and that sleeps all the same; one that no device will wake, if there is any.
 * False if no thread sleeps so. */
bool thread_states_find_blocked(const struct supervisor *supervisor, struct blocked_thread *blocked);

/* Whether there is a thread or a process that one of the program's threads has made and that has not made a call. */
bool thread_states_find_newborn(struct supervisor *supervisor);
