/* A process on a leash cannot outlive the thread that started it, and a Ctrl-C at the terminal does not reach it. */
#ifndef LOCKSTORM_LEASH_H
#define LOCKSTORM_LEASH_H

#include <stdbool.h>
#include <sys/types.h>

/* In a child, before it runs its program: puts it on the leash. False with errno, or when `parent` has died already.
 *
 * `near`: it stays in the parent's session, in a process group of its own; otherwise it gets a session. Linux shares
 * the processor out among sessions first (sched_autogroup), so processes that answer each other many thousand times a
 * second belong in one: on a busy core they were seen thirty times as fast. */
bool leash_take(pid_t parent, bool near);

/* Starts the program words[0] (found on PATH) with these words and this environment, both ended by NULL, on a leash.
 * Its standard input is empty, its output and errors go to the descriptor `output`, signals are as they usually are. Of
 * the other descriptors it gets those of `kept`, by the same numbers. Its process id, or -1 with errno. */
pid_t leash_start(char *const *words, char *const *environment, int output, const int *kept, int kept_count, bool near);

#endif
