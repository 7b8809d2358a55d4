/* What can happen next in a world. Nothing here changes it. */
#pragma once

#include "harness/simulation/world_state.h"

extern const struct choice_space SIMULATED_CHOICES;

/* Writes the steps that can be taken now, at most WORLD_CHOICES, and returns their number. CHOICE_CLOCK occurs only
 * alone. 0: nothing can happen any more. */
int world_choices(const struct world *world, struct choice *choices);
/* Whether a choice - a step or a fault - can be made now. */
bool world_allows(const struct world *world, struct choice choice);
/* Whether a fault that the world allows strikes a command on its way to the resource. */
static inline bool world_strikes_store(const struct world *world, struct choice fault) {
    return (int)fault.kind > CHOICE_LOSE_MESSAGE && world_task_const(world, fault.who)->command.node == WORLD_RESOURCE;
}
/* The next moment at which anything can change; or INT64_MAX. */
int64_t world_next_deadline_ns(const struct world *world);
