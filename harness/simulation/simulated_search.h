/* The simulation of C locks as a world to search (harness/search/search_world.h). Its properties are those of the
 * checkers of a history; its places are the checkpoints that the struck clients have passed. */
#pragma once

#include "harness/search/search_world.h"
#include "harness/simulation/commands_json.h"
#include "harness/simulation/world.h"

struct simulated_search {
    struct search_world search; /* first member */
    struct world world;
    struct history_reader *reader;
    struct commands_json heard; /* what servers heard in the last schedule; its lists are NULL unless it is watched */
    struct command_witness witness;
};

/* Makes simulated->search of simulated->world, which has these settings and need not be open. */
void simulated_search_make(struct simulated_search *simulated, const struct world_settings *settings);
/* Opens the world and the history that its schedules are written to. False with *error. */
bool simulated_search_open(struct simulated_search *simulated, const struct world_settings *settings,
                           struct history_error *error);
void simulated_search_close(struct simulated_search *simulated);
