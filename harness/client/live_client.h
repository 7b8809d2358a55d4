/* The life of a client in real processes: it opens its lock, does the steps that the driver gives it, and closes. */
#pragma once

#include "harness/client/client_arguments.h"
#include "harness/scheduler/actor.h"

enum { LIVE_CLIENT_NOT_OPENED = 3 }; /* the exit status when a node did not answer */

/* Runs the client with the actor and the task of its arguments until STEP_EXIT; the arguments and `files`, its history
 * and its page, are valid until then. `carrier`: runs its tasks, NULL: they are threads. UNKNOWN: a node did not answer
 * while the lock was opened, which was said on standard error. */
enum outcome live_client_run(const struct client_arguments *arguments, const struct lock_type *type,
                             const struct actor *files, struct task_carrier *carrier);
