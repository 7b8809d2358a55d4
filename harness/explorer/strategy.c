#include "harness/explorer/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "harness/simulation/world_choices.h"

enum { RANDOM_STREAM = 1000, BACKWARDS_OF = 4, AIMED_UNTIL = 2 };

/* --- drawn in advance --- */

static void fault_plan(struct strategy *strategy, enum choice_kind kind, uint64_t horizon) {
    if (strategy->fault_count == STRATEGY_FAULTS) return;
    struct planned_fault *fault = &strategy->faults[strategy->fault_count++];
    *fault = (struct planned_fault){.kind = kind, .step = random_below(&strategy->random, horizon)};
    if (!strategy->situations) return;
    fault->aim = situations_draw(strategy->situations, kind, &strategy->random);
    if (fault->aim.name) fault->step = AIMED_UNTIL * horizon;
}

/* A few of many kinds: none at all in one schedule of eight. */
static void faults_plan_few(struct strategy *strategy, const struct fault_budget *budget, uint64_t horizon) {
    enum choice_kind kinds[CHOICE_KINDS];
    int kind_count = 0;
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        if (budget->most[kind]) kinds[kind_count++] = (enum choice_kind)kind;
    if (kind_count == 0 || random_below(&strategy->random, 8) == 0) return;
    uint64_t wanted = 1 + random_below(&strategy->random, (uint64_t)budget->total);
    for (; wanted > 0; wanted--)
        fault_plan(strategy, kinds[random_below(&strategy->random, (uint64_t)kind_count)], horizon);
}

static void faults_plan(struct strategy *strategy, const struct fault_budget *budget, uint64_t horizon) {
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++) {
        if (budget->most[kind] == 0)
            continue; /* draws nothing, so that a new kind of fault leaves old seeds as they are */
        uint64_t wanted = random_below(&strategy->random, (uint64_t)budget->most[kind] + 1);
        if (budget->most[kind] == 1) wanted = random_below(&strategy->random, 8) > 0; /* 7 times in 8 */
        for (; wanted > 0; wanted--) fault_plan(strategy, (enum choice_kind)kind, horizon);
    }
}

void strategy_begin(struct strategy *strategy, enum strategy_kind kind, uint64_t seed,
                    const struct fault_budget *budget, int64_t lease_ms, uint64_t horizon,
                    const struct situations *situations) {
    *strategy = (struct strategy){
        .kind = kind, .random = random_split(seed, RANDOM_STREAM), .lease_ms = lease_ms, .situations = situations};
    strategy->spares_store = budget->spares_store;
    if (budget->total) faults_plan_few(strategy, budget, horizon);
    else faults_plan(strategy, budget, horizon);
    if (kind != STRATEGY_PCT) return;
    for (int task = 0; task < WORLD_TASKS; task++)
        strategy->priority[task] = random_next(&strategy->random) | (uint64_t)1 << 63;
    for (int each = 0; each < STRATEGY_DEPTH - 1; each++)
        strategy->changes[each] = random_below(&strategy->random, horizon);
    strategy->lowest = (uint64_t)1 << 62;
}

/* --- faults --- */

/* Half a lease is harmless, one and a half outlast a lease, three outlast everything. */
static int64_t duration_ms(struct strategy *strategy) {
    int64_t halves[] = {1, 3, 3, 6};
    int64_t half_ms = strategy->lease_ms > 1 ? strategy->lease_ms / 2 : 1;
    return halves[random_below(&strategy->random, 4)] * half_ms;
}

static int target_count(const struct world *world, enum choice_kind kind) {
    if (choice_strikes_node(kind)) return world->settings.nodes;
    if (choice_strikes_replica(kind)) return world->settings.nodes * world->settings.replicas;
    return choice_strikes_client(kind) ? world->client_count : TASKS_PER_CLIENT * world->client_count;
}

static int target_at(const struct world *world, enum choice_kind kind, int place) {
    int nodes = world->settings.nodes;
    return choice_strikes_replica(kind) ? replica_number(place % nodes, place / nodes + 1) : place;
}

struct choice strategy_fault_draw(struct strategy *strategy, const struct world *world, enum choice_kind kind) {
    struct choice fault = {.kind = kind};
    bool of_task = kind >= CHOICE_LOSE_MESSAGE;
    int targets = of_task ? world->client_count : target_count(world, kind);
    int place = targets > 0 ? (int)random_below(&strategy->random, (uint64_t)targets) : 0;
    if (of_task) place = place * TASKS_PER_CLIENT + (random_below(&strategy->random, 4) == 0);
    fault.who = target_at(world, kind, place);
    if (choice_has_amount(kind)) fault.amount = duration_ms(strategy);
    if (choice_sets_clock(kind) && random_below(&strategy->random, BACKWARDS_OF) == 0) fault.amount = -fault.amount;
    return fault;
}

static bool planned_may_strike(const struct strategy *strategy, const struct world *world, struct choice fault) {
    return world_allows(world, fault) && !(strategy->spares_store && world_strikes_store(world, fault));
}

static bool fault_due(struct strategy *strategy, const struct world *world, struct choice *fault) {
    for (int each = 0; each < strategy->fault_count; each++) {
        struct planned_fault *planned = &strategy->faults[each];
        if (planned->done || planned->aim.name || planned->step > world->steps) continue;
        *fault = strategy_fault_draw(strategy, world, planned->kind);
        if (!planned_may_strike(strategy, world, *fault)) continue; /* another target is drawn before the next step */
        planned->done = true;
        return true;
    }
    return false;
}

/* The fault of a kind that strikes a task, its client, or the node that it talks to. */
static struct choice fault_at(struct strategy *strategy, const struct world *world, enum choice_kind kind, int task) {
    struct choice fault = strategy_fault_draw(strategy, world, kind);
    int node = world_task_const(world, task)->node;
    if (choice_strikes_client(kind)) fault.who = task / TASKS_PER_CLIENT;
    else if (kind >= CHOICE_LOSE_MESSAGE) fault.who = task;
    else if (choice_strikes_node(kind) && node >= 0) fault.who = node;
    else if (choice_strikes_replica(kind) && node >= 0) fault.who = replica_number(node, replica_server(fault.who));
    return fault;
}

/* Whether a fault has struck, or what it is aimed at has not come in time. */
static bool planned_is_over(const struct planned_fault *planned, const struct world *world) {
    return planned->done || (planned->aim.name && world->steps > planned->step);
}

/* Whether a fault is aimed at the step that a task would take next. */
static bool fault_aimed(struct strategy *strategy, const struct world *world, int task, struct choice *fault) {
    uint64_t name = situation_name(world, task);
    for (int each = 0; each < strategy->fault_count; each++) {
        struct planned_fault *planned = &strategy->faults[each];
        if (planned_is_over(planned, world) || planned->aim.name != name) continue;
        if (planned->aim.skip > 0) {
            planned->aim.skip--;
            continue;
        }
        *fault = fault_at(strategy, world, planned->kind, task);
        if (!planned_may_strike(strategy, world, *fault)) continue;
        planned->done = true;
        return true;
    }
    return false;
}

static bool faults_over(const struct strategy *strategy, const struct world *world) {
    for (int each = 0; each < strategy->fault_count; each++)
        if (!planned_is_over(&strategy->faults[each], world)) return false;
    return true;
}

/* --- steps --- */

static const struct choice QUIET = {.kind = CHOICE_QUIET};

static uint64_t priority_of(const struct strategy *strategy, struct choice choice) {
    return choice.kind == CHOICE_TASK ? strategy->priority[choice.who] : 1;
}

static struct choice by_priority(struct strategy *strategy, const struct world *world, const struct choice *choices,
                                 int count) {
    int best = 0;
    for (int each = 1; each < count; each++)
        if (priority_of(strategy, choices[each]) > priority_of(strategy, choices[best])) best = each;
    for (int each = 0; each < STRATEGY_DEPTH - 1; each++) {
        if (strategy->changes[each] > world->steps || choices[best].kind != CHOICE_TASK) continue;
        strategy->priority[choices[best].who] = --strategy->lowest;
        strategy->changes[each] = UINT64_MAX;
        return by_priority(strategy, world, choices, count);
    }
    return choices[best];
}

static struct choice step_choose(struct strategy *strategy, const struct world *world, const struct choice *choices,
                                 int count) {
    if (strategy->kind == STRATEGY_PCT) return by_priority(strategy, world, choices, count);
    if (strategy->kind == STRATEGY_USUAL) return world_usual_choice(world, choices, count);
    return choices[random_below(&strategy->random, (uint64_t)count)];
}

struct choice strategy_choose(struct strategy *strategy, const struct world *world, const struct choice *choices,
                              int count) {
    struct choice fault;
    if (strategy->ends_quiet && faults_over(strategy, world) && world_allows(world, QUIET)) return QUIET;
    if (strategy->fault_count > 0 && fault_due(strategy, world, &fault)) return fault;
    struct choice step = step_choose(strategy, world, choices, count);
    bool aims = strategy->situations && strategy->fault_count > 0 && step.kind == CHOICE_TASK;
    return aims && fault_aimed(strategy, world, step.who, &fault) ? fault : step;
}

/* --- exhaustive --- */

/* Every step, and every kind of fault on each of its targets, of which there are at most as many as tasks. */
enum { OPTIONS_MOST = WORLD_CHOICES + CHOICE_KINDS * WORLD_TASKS };
_Static_assert((int)WORLD_REPLICAS *WORLD_NODES <= (int)WORLD_TASKS, "no fault has more targets than there are tasks");

void exhaustive_begin(struct exhaustive *exhaustive) {
    exhaustive->at = 0;
    exhaustive->deviations = 0;
    memset(exhaustive->faults, 0, sizeof exhaustive->faults);
}

static int exhaustive_fault_options(const struct exhaustive *exhaustive, const struct world *world,
                                    enum choice_kind kind, struct choice *options, int count) {
    if (exhaustive->faults[kind] >= exhaustive->budget->most[kind]) return count;
    for (int place = 0; place < target_count(world, kind); place++) {
        struct choice fault = {kind, target_at(world, kind, place),
                               choice_has_amount(kind) ? exhaustive->lease_ms * 3 : 0};
        if (world_allows(world, fault)) options[count++] = fault;
    }
    return count;
}

static int options_of(const struct exhaustive *exhaustive, const struct world *world, const struct choice *choices,
                      int count, struct choice *options) {
    int found = 1;
    options[0] = world_usual_choice(world, choices, count);
    if (exhaustive->deviations >= exhaustive->bound) return found;
    for (int each = 0; each < count; each++)
        if (!choice_same(choices[each], options[0])) options[found++] = choices[each];
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        found = exhaustive_fault_options(exhaustive, world, (enum choice_kind)kind, options, found);
    return found;
}

static void point_add(struct exhaustive *exhaustive, int options) {
    if (exhaustive->count == exhaustive->room) {
        exhaustive->room = exhaustive->room ? exhaustive->room * 2 : 256;
        exhaustive->points = realloc(exhaustive->points, exhaustive->room * sizeof *exhaustive->points);
        if (!exhaustive->points) abort();
    }
    exhaustive->points[exhaustive->count++] = (struct exhaustive_point){.options = (uint32_t)options};
}

struct choice exhaustive_choose(struct exhaustive *exhaustive, const struct world *world, const struct choice *choices,
                                int count) {
    struct choice options[OPTIONS_MOST];
    int found = options_of(exhaustive, world, choices, count, options);
    if (exhaustive->at == exhaustive->count) point_add(exhaustive, found);
    uint32_t taken = exhaustive->points[exhaustive->at++].taken;
    exhaustive->deviations += taken > 0;
    exhaustive->faults[options[taken].kind]++;
    return options[taken];
}

bool exhaustive_next(struct exhaustive *exhaustive) {
    while (exhaustive->count > 0) {
        struct exhaustive_point *last = &exhaustive->points[exhaustive->count - 1];
        if (++last->taken < last->options) return true;
        exhaustive->count--;
    }
    return false;
}

void exhaustive_free(struct exhaustive *exhaustive) {
    free(exhaustive->points);
    exhaustive->points = NULL;
}

/* --- replay --- */

void replay_begin(struct replay *replay, const struct schedule *schedule) {
    replay->schedule = schedule;
    replay->used = calloc(schedule->count + 1, sizeof *replay->used);
    if (!replay->used) abort();
}

void replay_free(struct replay *replay) {
    free(replay->used);
    replay->used = NULL;
}

struct choice replay_choose(struct replay *replay, const struct world *world, struct choice usual) {
    uint64_t step = world_steps_of(world, usual) + 1;
    for (size_t each = 0; each < replay->schedule->count; each++) {
        const struct deviation *deviation = &replay->schedule->deviations[each];
        if (replay->used[each] || deviation->step != step || !choice_same(deviation->usual, usual)) continue;
        if (!world_allows(world, deviation->instead)) continue;
        replay->used[each] = true;
        return deviation->instead;
    }
    return usual;
}
