#pragma once

#include "harness/supervisor/calls.h"

/* A process is ending, or has ended: waits until it has, and forgets it. */
void life_process_ended(struct supervisor *supervisor, struct program_process *process);
