/* The turns of a program's threads, from its start to its end. */
#pragma once

#include "harness/supervisor/supervisor.h"

/* Starts words[0], found on PATH. The caller has filled in `clock` and `random`, and ends with turns_end. False
 * with the reason. */
bool turns_begin(struct supervisor *supervisor, char *const *words);
void turns_end(struct supervisor *supervisor);

/* Lets the program run until it is quiet, with what has come for it and what is due by now. False: it has ended, or
 * cannot be supervised any further (`reason`). */
bool turns_run(struct supervisor *supervisor);
/* Whether something has come for the quiet program: at a descriptor, or because a process was killed. */
bool turns_have_news(const struct supervisor *supervisor);
/* The program's monotonic clock when it goes on by itself; INT64_MAX: never. */
int64_t turns_deadline_ns(const struct supervisor *supervisor);
