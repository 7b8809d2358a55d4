#include "harness/simulation/world.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Writes a text once: written twice, it would get two indexes and be two names. */
static uint32_t name_index(struct world *world, const char *words) {
    struct world_names *names = &world->names;
    for (int each = 0; each < names->text_count; each++)
        if (strcmp(names->texts[each].words, words) == 0) return names->texts[each].index;
    assert(names->text_count < WORLD_TEXTS && strlen(words) < WORLD_TEXT);
    struct world_text *new = &names->texts[names->text_count++];
    strcpy(new->words, words);
    new->index =
        history_text(world->history, words, strlen(words), world_now_ns(world), shared_page_wall_ns(world->page));
    return new->index;
}

void world_record(struct world *world, struct history_record record) {
    actor_append(&world->driver, record);
}

static void parameter(struct world *world, const char *name, int64_t value) {
    uint32_t key = name_index(world, name);
    world_record(world, (struct history_record){.kind = HISTORY_PARAMETER, .name = key, .value = value});
}

static void parameter_text(struct world *world, const char *name, const char *words) {
    uint32_t key = name_index(world, name), value = name_index(world, words);
    world_record(world, (struct history_record){
                            .kind = HISTORY_PARAMETER, .name = key, .value = value, .flags = HISTORY_FLAG_TEXT});
}

static void names_write(struct world *world) {
    struct world_names *names = &world->names;
    char name[WORLD_TEXT];
    names->store = name_index(world, "store");
    names->stranger = name_index(world, "stranger");
    names->resource = name_index(world, WORLD_LOCK_NAME);
    names->schedule = name_index(world, "schedule");
    names->quiet = name_index(world, "quiet");
    if (world->settings.bound_ms) names->bound = name_index(world, "bound_ms");
    for (int each = 0; each < SIMULATED_CHOICES.fault_count; each++) {
        enum choice_kind kind = SIMULATED_CHOICES.faults[each];
        names->fault[kind] = name_index(world, choice_fault_name(kind));
    }
    for (int node = 0; node < world->settings.nodes; node++) {
        snprintf(name, sizeof name, "redis-%d", node + 1);
        names->servers[node][0] = name_index(world, name);
        for (int server = 1; server <= world->settings.replicas; server++) {
            snprintf(name, sizeof name, "redis-%d-replica-%d", node + 1, server);
            names->servers[node][server] = name_index(world, name);
        }
    }
    for (int each = 0; each < world->settings.clients; each++) {
        snprintf(name, sizeof name, "client-%d", each + 1);
        world->clients[each].name = name_index(world, name);
    }
    for (int each = 0; world->settings.bound_ms && each < world->settings.clients; each++) {
        snprintf(name, sizeof name, "entries of client-%d", each + 1);
        world->clients[each].entries_name = name_index(world, name);
        snprintf(name, sizeof name, "subscriptions of client-%d", each + 1);
        world->clients[each].subscriptions_name = name_index(world, name);
    }
}

void world_prefix_write(struct world *world) {
    const struct world_settings *settings = &world->settings;
    world_record(world, (struct history_record){.kind = HISTORY_CLOCK, .value = world_now_ns(world)});
    world->driver.id = name_index(world, "driver");
    parameter_text(world, "scenario", "explore");
    parameter_text(world, "lock", settings->lock->name);
    parameter_text(world, "store", resource_mode_name(settings->store));
    parameter_text(world, "time", "virtual");
    parameter(world, "seed", (int64_t)settings->seed);
    parameter(world, "control", 0);
    parameter(world, "lease_ms", settings->lease_ms);
    if (settings->bound_ms) parameter(world, "bound_ms", settings->bound_ms);
    if (settings->in_order) parameter(world, "order_ms", 0);
    names_write(world);
    world->prefix = history_count(world->history);
}

void world_fault_record(struct world *world, enum history_kind kind, enum choice_kind fault, uint32_t target) {
    enum outcome outcome = kind == HISTORY_FAULT_PROVE ? OUTCOME_OK : OUTCOME_UNKNOWN;
    world_record(world, (struct history_record){.kind = (uint8_t)kind,
                                                .outcome = (uint8_t)outcome,
                                                .name = world->names.fault[fault],
                                                .value = target});
}
