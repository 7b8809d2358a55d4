/* A program's image just after exec, before its first instruction: what makes its clocks and its random numbers those
 * of the trial. */
#pragma once

#include "harness/supervisor/calls.h"

/* Starts words[0], found on PATH, as the supervisor's child under the filter. True: supervisor->listener and ->root are
 * set, and its first call, of execve, is about to come. False with the reason. */
bool image_start(struct supervisor *supervisor, char *const *words);

/* Lets an execve happen, and prepares the new image: the random bytes that it finds beside its stack come from the
 * seed, and its vDSO is patched, or hidden where it cannot be. */
call_handler image_exec;
