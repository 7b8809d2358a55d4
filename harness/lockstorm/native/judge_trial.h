/* Judges the history of a trial within the driver's process, which saves starting the program `check` for it. */
#pragma once

#include "harness/history/history.h"

/* The verdict that `check` prints about a binary history, as JSON; `require`: as its option, or NULL. NULL with a
 * reason for a damaged file or an unknown property. The caller frees it with free. */
char *trial_verdict(const char *path, const char *require, struct history_error *error);
