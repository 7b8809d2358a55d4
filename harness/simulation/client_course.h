/* What a client of the explorer does with its lock: turns, each of them an acquire, a read-modify-write of a counter
 * with work in between, and a release. What world_settings.varied names is drawn from the schedule's seed, from a
 * stream of its own: the random numbers of the lock stay the same. */
#pragma once

#include "harness/simulation/world_state.h"

/* Before the client takes a step. */
void client_course_begin(struct explored_client *client, uint64_t seed);
/* Called by the client's own code, when its lock is open. */
void client_course_run(struct explored_client *client);
