/* What the explorer itself writes into a history: names, parameters, and faults with their targets. */
#pragma once

#include "harness/simulation/world_state.h"

/* Writes the records that all schedules share, and sets world->prefix and world->names. */
void world_prefix_write(struct world *world);
/* Appends a record of the driver. */
void world_record(struct world *world, struct history_record record);
/* Appends the start, proof or end of a fault; `target` is a name in the history. */
void world_fault_record(struct world *world, enum history_kind kind, enum choice_kind fault, uint32_t target);
