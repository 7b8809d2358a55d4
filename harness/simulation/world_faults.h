/* What each fault does to a world. */
#pragma once

#include "harness/simulation/world_state.h"

/* Injects a fault that world_allows, and records it. */
void world_fault_apply(struct world *world, struct choice fault);
/* Ends the pauses whose time is over, after time has passed. */
void world_pauses_end(struct world *world);
