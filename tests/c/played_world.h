/* A world to search that a test plays: three clients of a C lock, whose tasks can always take a step, on two nodes with
 * two replicas each. A test changes what it is about. */
#pragma once

#include "harness/search/search_world.h"
#include "harness/simulation/world.h"

enum { PLAYED_CLIENTS = 3, PLAYED_TASKS = TASKS_PER_CLIENT * PLAYED_CLIENTS, PLAYED_NODES = 2, PLAYED_REPLICAS = 2 };
enum { PLAYED_LEASE_MS = 1000 };

static int played_target_count(enum choice_kind kind) {
    if (choice_strikes(kind, TARGET_NODE)) return PLAYED_NODES;
    if (choice_strikes(kind, TARGET_REPLICA)) return PLAYED_NODES * PLAYED_REPLICAS;
    return choice_strikes(kind, TARGET_CLIENT) ? PLAYED_CLIENTS : PLAYED_TASKS;
}

static int played_target_at(enum choice_kind kind, int place) {
    return choice_strikes(kind, TARGET_REPLICA) ? replica_number(place % PLAYED_NODES, place / PLAYED_NODES + 1)
                                                : place;
}

/* A message of the worker, in three of four, or of the watchdog. */
static int played_target_draw(const struct search_world *world, enum choice_kind kind, struct random *random) {
    (void)world;
    if (!choice_strikes(kind, TARGET_MESSAGE))
        return played_target_at(kind, (int)random_below(random, (uint64_t)played_target_count(kind)));
    int client = (int)random_below(random, PLAYED_CLIENTS);
    return client * TASKS_PER_CLIENT + (random_below(random, 4) == 0);
}

static int played_targets(const struct search_world *world, enum choice_kind kind, int *targets) {
    (void)world;
    for (int place = 0; place < played_target_count(kind); place++) targets[place] = played_target_at(kind, place);
    return played_target_count(kind);
}

static struct choice played_step_draw(const struct search_world *world, struct random *random, bool main) {
    (void)world;
    int client = (int)random_below(random, PLAYED_CLIENTS);
    bool watchdog = !main && random_below(random, 8) == 0;
    return (struct choice){CHOICE_TASK, client * TASKS_PER_CLIENT + watchdog, 0};
}

static struct search_world_operations played_operations = {
    .target_draw = played_target_draw, .targets = played_targets, .step_draw = played_step_draw};

static struct search_world played_world = {.operations = &played_operations,
                                           .space = &SIMULATED_CHOICES,
                                           .property_count = SEARCH_PROPERTIES,
                                           .lease_ms = PLAYED_LEASE_MS,
                                           .deviates_of = 1};
