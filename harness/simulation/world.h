/* The world of one schedule: clients as coroutines with their locks, real servers, and one virtual time. It makes no
 * choices itself (harness/search/strategy.h does).
 *
 * A client has two tasks, its worker and its watchdog (explored_task.h). Time passes only when no task can take a step,
 * up to the next moment at which one can. A paused client takes no steps, but a command that it has sent arrives. So a
 * schedule - the order of all steps and the faults between them - determines everything that happens. */
#pragma once

#include "harness/simulation/world_state.h"

/* Creates the history files and connects to the servers. False with *error. */
bool world_open(struct world *world, const struct world_settings *settings, struct history_error *error);
void world_close(struct world *world);
/* Makes world->search of a world that has these settings and need not be open. Its properties are those of the checkers
 * of a history; its places are the checkpoints that the struck clients have passed. */
void world_search_make(struct world *world, const struct world_settings *settings);

/* Begins a schedule: everything is as new, and `clients` clients (at most settings.clients) have opened their locks and
 * taken no step. `seed`: of their random numbers; `schedule`: its number, for the history. False: a lock could not be
 * opened. */
bool world_begin(struct world *world, int clients, uint64_t seed, uint64_t schedule);
/* An operation of struct search_world. */
bool world_apply(struct search_world *search, struct choice choice);
/* Ends the schedule and its history. Clients that are not done run to their end unrecorded. */
void world_end(struct world *world);
