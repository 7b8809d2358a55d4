/* The watchdog of a live client: a thread of its process, which is a task with a place of its own on the shared page.
 * These are the environment's operations of the same names. */
#pragma once

#include "harness/environment/env.h"

bool live_watchdog_start(struct env *env, void (*run)(struct env *, void *), void *argument);
void live_watchdog_stop(struct env *env);
bool live_watchdog_stopping(const struct env *env);
