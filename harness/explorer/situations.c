#include "harness/explorer/situations.h"

#include "harness/simulation/mix.h"
#include "harness/simulation/world_choices.h"

/* By the checkpoint's name: the processes of one search number checkpoints in different orders. */
uint64_t situation_name(const struct world *world, int number) {
    const struct explored_task *task = world_task_const(world, number);
    bool to_resource = task->state == EXPLORED_TASK_SENDING && task->node == WORLD_RESOURCE;
    uint64_t name = mix(0, (uint64_t)task->state << 8 | (uint64_t)(number % TASKS_PER_CLIENT) << 4 | to_resource);
    for (const char *letter = world->checkpoints[task->checkpoint]; letter && *letter; letter++)
        name = mix(name, (unsigned char)*letter);
    return name ? name : 1;
}

/* The fault of a kind that strikes a task, or its client, or the node that it talks to. */
static bool may_strike(const struct situations *situations, const struct world *world, int task,
                       enum choice_kind kind) {
    struct choice fault = {kind, task, choice_has_amount(kind) ? world->settings.lease_ms : 0};
    if (choice_strikes_node(kind)) fault.who = 0;
    else if (choice_strikes_replica(kind)) fault.who = replica_number(0, 1);
    else if (choice_strikes_client(kind)) fault.who = task / TASKS_PER_CLIENT;
    return world_allows(world, fault) && !(situations->spares_store && world_strikes_store(world, fault));
}

void situations_note(struct situations *situations, const struct world *world, int task) {
    uint64_t name = situation_name(world, task);
    int each = 0;
    while (each < situations->count && situations->of[each].name != name) each++;
    if (each == SITUATIONS_MOST) return;
    struct situation *situation = &situations->of[each];
    if (each == situations->count) {
        *situation = (struct situation){.name = name};
        situations->count++;
    }
    situation->steps++;
    situation->courses += situation->latest != situations->courses;
    situation->latest = situations->courses;
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        if (may_strike(situations, world, task, (enum choice_kind)kind)) situation->kinds |= (uint32_t)1 << kind;
}

struct aim situations_draw(const struct situations *situations, enum choice_kind kind, struct random *random) {
    const struct situation *fitting[SITUATIONS_MOST];
    int count = 0;
    for (int each = 0; each < situations->count; each++)
        if (situations->of[each].kinds >> kind & 1) fitting[count++] = &situations->of[each];
    if (count == 0) return (struct aim){0};
    const struct situation *drawn = fitting[random_below(random, (uint64_t)count)];
    return (struct aim){drawn->name, random_below(random, (drawn->steps + drawn->courses - 1) / drawn->courses)};
}
