#include "harness/search/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/grown.h"

enum { RANDOM_STREAM = 1000, BACKWARDS_OF = 4, AIMED_UNTIL = 2, EXCHANGES_FREE_OF = 4 };

/* --- drawn in advance --- */

static void fault_plan(struct strategy *strategy, enum choice_kind kind, uint64_t horizon) {
    if (strategy->fault_count == STRATEGY_FAULTS) return;
    struct planned_fault *fault = &strategy->faults[strategy->fault_count++];
    *fault = (struct planned_fault){.kind = kind, .step = random_below(&strategy->random, horizon)};
    if (!strategy->situations) return;
    fault->aim = situations_draw(strategy->situations, kind, &strategy->random);
    if (fault->aim.name) fault->step = AIMED_UNTIL * horizon;
}

static bool is_rare(const struct fault_budget *budget, enum choice_kind kind) {
    return budget->rare >> kind & 1;
}

/* A few of many kinds; where a schedule may be without faults, one of eight is. */
static void faults_plan_few(struct strategy *strategy, const struct choice_space *space, enum fault_plan plan,
                            const struct fault_budget *budget, uint64_t horizon) {
    enum choice_kind kinds[CHOICE_KINDS];
    int kind_count = 0;
    bool rare = plan == FAULTS_RARE && budget->rare;
    for (int each = 0; each < space->fault_count; each++)
        if (budget->most[space->faults[each]] && is_rare(budget, space->faults[each]) == rare)
            kinds[kind_count++] = space->faults[each];
    if (kind_count == 0 || (plan == FAULTS_DRAWN && random_below(&strategy->random, 8) == 0)) return;
    uint64_t wanted = 1 + random_below(&strategy->random, (uint64_t)budget->total);
    if (rare) wanted = 1;
    for (; wanted > 0; wanted--)
        fault_plan(strategy, kinds[random_below(&strategy->random, (uint64_t)kind_count)], horizon);
}

static void faults_plan_each(struct strategy *strategy, const struct choice_space *space,
                             const struct fault_budget *budget, uint64_t horizon) {
    for (int each = 0; each < space->fault_count; each++) {
        enum choice_kind kind = space->faults[each];
        if (budget->most[kind] == 0)
            continue; /* draws nothing, so that a new kind of fault leaves old seeds as they are */
        uint64_t wanted = random_below(&strategy->random, (uint64_t)budget->most[kind] + 1);
        if (budget->most[kind] == 1) wanted = random_below(&strategy->random, 8) > 0; /* 7 times in 8 */
        for (; wanted > 0; wanted--) fault_plan(strategy, kind, horizon);
    }
}

/* One exchange in four is aimed nowhere: the reasons for aims may be wrong. */
static void exchange_plan(struct strategy *strategy, const struct search_world *world, uint64_t horizon) {
    strategy->exchange_step = random_below(&strategy->random, horizon);
    if (world->exchange_aim_count == 0 || random_below(&strategy->random, EXCHANGES_FREE_OF) == 0) return;
    uint64_t drawn = random_below(&strategy->random, (uint64_t)world->exchange_aim_count);
    strategy->exchange_aim.name = world->exchange_aims[drawn];
    strategy->exchange_aim.skip = random_below(&strategy->random, 2);
}

void strategy_begin(struct strategy *strategy, const struct search_world *world, enum strategy_kind kind,
                    enum fault_plan plan, uint64_t seed, const struct fault_budget *budget, uint64_t horizon,
                    const struct situations *situations) {
    *strategy = (struct strategy){.kind = kind,
                                  .random = random_split(seed, RANDOM_STREAM),
                                  .situations = situations,
                                  .spares_store = budget->spares_store};
    if (plan != FAULTS_NONE && budget->total) faults_plan_few(strategy, world->space, plan, budget, horizon);
    else if (plan != FAULTS_NONE) faults_plan_each(strategy, world->space, budget, horizon);
    if (kind == STRATEGY_EXCHANGE) exchange_plan(strategy, world, horizon);
    if (kind != STRATEGY_PCT) return;
    for (int chain = 0; chain < STRATEGY_CHAINS; chain++)
        strategy->priority[chain] = random_next(&strategy->random) | (uint64_t)1 << 63;
    for (int each = 0; each < STRATEGY_DEPTH - 1; each++)
        strategy->changes[each] = random_below(&strategy->random, horizon);
    strategy->lowest = (uint64_t)1 << 62;
}

/* --- faults --- */

/* Half a lease is harmless, one and a half outlast a lease, three outlast everything. */
static int64_t duration_ms(struct strategy *strategy, int64_t lease_ms) {
    int64_t halves[] = {1, 3, 3, 6};
    int64_t half_ms = lease_ms > 1 ? lease_ms / 2 : 1;
    return halves[random_below(&strategy->random, 4)] * half_ms;
}

struct choice strategy_fault_draw(struct strategy *strategy, const struct search_world *world, enum choice_kind kind) {
    struct choice fault = {.kind = kind, .who = world->operations->target_draw(world, kind, &strategy->random)};
    if (choice_has_amount(kind)) fault.amount = duration_ms(strategy, world->lease_ms);
    if (choice_sets_clock(kind) && random_below(&strategy->random, BACKWARDS_OF) == 0) fault.amount = -fault.amount;
    return fault;
}

static bool planned_may_strike(const struct strategy *strategy, const struct search_world *world, struct choice fault) {
    return world->operations->allows(world, fault) &&
           !(strategy->spares_store && world->operations->strikes_resource(world, fault));
}

static bool fault_due(struct strategy *strategy, const struct search_world *world, struct choice *fault) {
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

/* Whether a fault has struck, or what it is aimed at has not come in time. */
static bool planned_is_over(const struct planned_fault *planned, const struct search_world *world) {
    return planned->done || (planned->aim.name && world->steps > planned->step);
}

/* Whether a fault is aimed at the step that would be next. */
static bool fault_aimed(struct strategy *strategy, const struct search_world *world, struct choice step,
                        struct choice *fault) {
    uint64_t name = world->operations->situation(world, step);
    for (int each = 0; each < strategy->fault_count && name; each++) {
        struct planned_fault *planned = &strategy->faults[each];
        if (planned_is_over(planned, world) || planned->aim.name != name) continue;
        if (planned->aim.skip > 0) {
            planned->aim.skip--;
            continue;
        }
        *fault = world->operations->aimed(world, strategy_fault_draw(strategy, world, planned->kind), step);
        if (!planned_may_strike(strategy, world, *fault)) continue;
        planned->done = true;
        return true;
    }
    return false;
}

static bool faults_over(const struct strategy *strategy, const struct search_world *world) {
    for (int each = 0; each < strategy->fault_count; each++)
        if (!planned_is_over(&strategy->faults[each], world)) return false;
    return true;
}

/* --- steps --- */

static const struct choice QUIET = {.kind = CHOICE_QUIET};

static uint64_t priority_of(const struct strategy *strategy, const struct search_world *world, struct choice step) {
    int chain = choice_chain(world->space, step);
    return chain >= 0 ? strategy->priority[chain] : 1;
}

static struct choice by_priority(struct strategy *strategy, const struct search_world *world,
                                 const struct choice *choices, int count) {
    int best = 0;
    for (int each = 1; each < count; each++)
        if (priority_of(strategy, world, choices[each]) > priority_of(strategy, world, choices[best])) best = each;
    for (int each = 0; each < STRATEGY_DEPTH - 1; each++) {
        int chain = choice_chain(world->space, choices[best]);
        if (strategy->changes[each] > world->steps || chain < 0) continue;
        strategy->priority[chain] = --strategy->lowest;
        strategy->changes[each] = UINT64_MAX;
        return by_priority(strategy, world, choices, count);
    }
    return choices[best];
}

static bool exchange_is_due(struct strategy *strategy, const struct search_world *world, struct choice usual) {
    struct aim *aim = &strategy->exchange_aim;
    if (strategy->has_exchanged) return false;
    if (!aim->name) return world->steps >= strategy->exchange_step;
    return world->operations->situation(world, usual) == aim->name && aim->skip-- == 0;
}

/* Somebody else, who goes on from here by the usual course, goes first. */
static struct choice exchange_choose(struct strategy *strategy, const struct search_world *world,
                                     const struct choice *choices, int count) {
    struct choice usual = search_usual(world, choices, count), others[SEARCH_CHOICES];
    int other_count = 0;
    for (int each = 0; each < count; each++)
        if (choice_chain(world->space, choices[each]) != choice_chain(world->space, usual))
            others[other_count++] = choices[each];
    if (other_count == 0 || !exchange_is_due(strategy, world, usual)) return usual;
    strategy->has_exchanged = true;
    return others[random_below(&strategy->random, (uint64_t)other_count)];
}

static struct choice step_choose(struct strategy *strategy, const struct search_world *world,
                                 const struct choice *choices, int count) {
    if (strategy->kind == STRATEGY_PCT) return by_priority(strategy, world, choices, count);
    if (strategy->kind == STRATEGY_EXCHANGE) return exchange_choose(strategy, world, choices, count);
    bool is_usual = strategy->kind == STRATEGY_USUAL ||
                    (world->deviates_of > 1 && random_below(&strategy->random, (uint64_t)world->deviates_of) > 0);
    if (is_usual) return search_usual(world, choices, count);
    return choices[random_below(&strategy->random, (uint64_t)count)];
}

struct choice strategy_choose(struct strategy *strategy, const struct search_world *world, const struct choice *choices,
                              int count) {
    struct choice fault;
    if (strategy->ends_quiet && faults_over(strategy, world) && world->operations->allows(world, QUIET)) return QUIET;
    if (strategy->fault_count > 0 && fault_due(strategy, world, &fault)) return fault;
    struct choice step = step_choose(strategy, world, choices, count);
    bool aims = strategy->situations && strategy->fault_count > 0;
    return aims && fault_aimed(strategy, world, step, &fault) ? fault : step;
}

/* --- exhaustive --- */

/* Every step, and every kind of fault on each of its targets. */
enum { OPTIONS_MOST = SEARCH_CHOICES + CHOICE_KINDS * SEARCH_TARGETS };

void exhaustive_begin(struct exhaustive *exhaustive) {
    exhaustive->at = 0;
    exhaustive->deviations = 0;
    memset(exhaustive->faults, 0, sizeof exhaustive->faults);
}

static int exhaustive_fault_options(const struct exhaustive *exhaustive, const struct search_world *world,
                                    enum choice_kind kind, struct choice *options, int count) {
    int targets[SEARCH_TARGETS];
    if (exhaustive->faults[kind] >= exhaustive->budget->most[kind] || is_rare(exhaustive->budget, kind)) return count;
    int target_count = world->operations->targets(world, kind, targets);
    for (int each = 0; each < target_count; each++) {
        struct choice fault = {kind, targets[each], choice_has_amount(kind) ? world->lease_ms * 3 : 0};
        if (world->operations->allows(world, fault)) options[count++] = fault;
    }
    return count;
}

static int options_of(const struct exhaustive *exhaustive, const struct search_world *world,
                      const struct choice *choices, int count, struct choice *options) {
    int found = 1;
    options[0] = search_usual(world, choices, count);
    if (exhaustive->deviations >= exhaustive->bound) return found;
    for (int each = 0; each < count; each++)
        if (!choice_same(choices[each], options[0])) options[found++] = choices[each];
    for (int each = 0; each < world->space->fault_count; each++)
        found = exhaustive_fault_options(exhaustive, world, world->space->faults[each], options, found);
    return found;
}

struct choice exhaustive_choose(struct exhaustive *exhaustive, const struct search_world *world,
                                const struct choice *choices, int count) {
    struct choice options[OPTIONS_MOST];
    int found = options_of(exhaustive, world, choices, count, options);
    if (exhaustive->at == exhaustive->count) {
        exhaustive->points =
            grown(exhaustive->points, exhaustive->count + 1, &exhaustive->room, sizeof *exhaustive->points);
        exhaustive->points[exhaustive->count++] = (struct exhaustive_point){.options = (uint32_t)found};
    }
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

struct choice replay_choose(struct replay *replay, const struct search_world *world, struct choice usual) {
    uint64_t step = world->taken[usual.kind][usual.who] + 1;
    for (size_t each = 0; each < replay->schedule->count; each++) {
        const struct deviation *deviation = &replay->schedule->deviations[each];
        if (replay->used[each] || deviation->step != step || !choice_same(deviation->usual, usual)) continue;
        if (!world->operations->allows(world, deviation->instead)) continue;
        replay->used[each] = true;
        return deviation->instead;
    }
    return usual;
}
