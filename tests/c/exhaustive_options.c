/* exhaustive_options: in a world in which as much as possible can happen at once, does the exhaustive strategy have an
 * option for each of it? Prints {"options": N, "possible": N}; exit status 1 if they differ. */
#include <stdio.h>
#include <string.h>

#include "harness/search/strategy.h"
#include "harness/simulation/world.h"

static struct world simulated;

/* All commands of all clients are on their way, and messages have arrived for all of them. */
static void everything_happens(void) {
    static struct shared_page page;
    struct world *world = &simulated;
    world->page = &page;
    world->settings.nodes = WORLD_NODES;
    world->settings.replicas = WORLD_REPLICAS;
    world->client_count = WORLD_CLIENTS;
    for (int number = 0; number < WORLD_TASKS; number++) {
        struct explored_task *task = world_task(world, number);
        world->clients[number / TASKS_PER_CLIENT].work.place = &page.tasks[number];
        task->number = number;
        task->state = EXPLORED_TASK_SENDING;
        task->command.kind = COMMAND_REQUEST;
        task->listeners[0].pushes.count = 1;
    }
}

/* A target of a fault has a number below WORLD_TASKS, whatever the fault strikes. */
static int possible_faults(int64_t amount) {
    int count = 0;
    for (int each = 0; each < SIMULATED_CHOICES.fault_count; each++)
        for (int who = 0; who < WORLD_TASKS; who++) {
            enum choice_kind kind = SIMULATED_CHOICES.faults[each];
            count += world_allows(&simulated.search, (struct choice){kind, who, choice_has_amount(kind) ? amount : 0});
        }
    return count;
}

int main(void) {
    static struct fault_budget budget;
    struct choice choices[WORLD_CHOICES];
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++) budget.most[kind] = 1;
    struct exhaustive exhaustive = {.bound = 1, .budget = &budget};
    const struct world_settings settings = {.lease_ms = 1000};
    world_search_make(&simulated, &settings);
    everything_happens();
    int steps = world_choices(&simulated.search, choices);
    exhaustive_begin(&exhaustive);
    (void)exhaustive_choose(&exhaustive, &simulated.search, choices, steps);
    int options = (int)exhaustive.points[0].options, possible = steps + possible_faults(3000);
    printf("{\"options\": %d, \"possible\": %d}\n", options, possible);
    exhaustive_free(&exhaustive);
    return options != possible;
}
