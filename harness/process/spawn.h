/* Starts processes that are bound to their parent: a bound process cannot outlive the thread that started it
 * (PR_SET_PDEATHSIG), and a Ctrl-C at the terminal does not reach it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Called in a child before it runs its program: binds it to `parent`. False with errno, or with errno unchanged when
 * `parent` has died already.
 *
 * `near`: the child stays in the parent's session, in a process group of its own; otherwise it gets a session. Linux
 * shares the processor out among sessions first (sched_autogroup), so processes that wait for each other many thousand
 * times a second belong in one: on a busy core that was seen to be thirty times as fast, and Linux 6.18 was seen to run
 * one session on both cores for minutes while others waited (docs/decisions/0098-one-session.md). In real time each
 * process has a session, and so a share of a busy machine. */
bool spawn_bind(pid_t parent, bool near);

/* Starts the program words[0] (found on PATH) with these words, bound to the calling thread. `variables` (NAME=VALUE)
 * are added to this process's environment, or replace what it has; both arrays end with NULL. Its standard input is
 * empty, its output and errors go to the descriptor `output`, its signals have their default actions. Of the other
 * descriptors it gets those in `kept`, by the same numbers. Returns its process id, or -1 with errno. */
pid_t spawn_process(char *const *words, char *const *variables, int output, const int *kept, int kept_count, bool near);
