#include "harness/library_search/library_strategy.h"

enum { RANDOM_STREAM = 3000, HORIZON = 80, BACKWARDS_OF = 4, CHANGES = 2, DEVIATES_OF = 4 };

/* --- drawn in advance --- */

static void library_faults_plan(struct library_strategy *strategy, const struct library_budget *budget) {
    enum library_choice_kind kinds[LIBRARY_CHOICE_KINDS];
    int kind_count = 0;
    for (int kind = (int)LIBRARY_FAULTS_FROM; kind < LIBRARY_CHOICE_KINDS; kind++)
        if (budget->allowed[kind]) kinds[kind_count++] = (enum library_choice_kind)kind;
    if (kind_count == 0 || budget->total == 0) return;
    uint64_t wanted = 1 + random_below(&strategy->random, (uint64_t)budget->total);
    for (uint64_t each = 0; each < wanted && each < LIBRARY_FAULTS_MOST; each++) {
        strategy->faults[each].kind = kinds[random_below(&strategy->random, (uint64_t)kind_count)];
        strategy->faults[each].step = random_below(&strategy->random, HORIZON);
        strategy->faults[each].done = false;
        strategy->fault_count++;
    }
}

static void faults_aim(struct library_strategy *strategy) {
    for (int each = 0; each < strategy->fault_count; each++) {
        struct library_planned *fault = &strategy->faults[each];
        fault->is_aimed = message_sorts_draw(strategy->sorts, fault->kind, &strategy->random, &fault->aim);
    }
}

void library_strategy_begin(struct library_strategy *strategy, const struct library_budget *budget, int64_t lease_ms,
                            uint64_t seed, uint64_t number, struct message_sorts *sorts, bool aims) {
    *strategy =
        (struct library_strategy){.random = random_split(seed, RANDOM_STREAM), .lease_ms = lease_ms, .sorts = sorts};
    strategy->order = (enum library_order)(number % LIBRARY_ORDERS);
    bool strikes = number / LIBRARY_ORDERS % 2, strikes_aimed = aims && number / LIBRARY_ORDERS % 4 == 2;
    if (strikes || strikes_aimed) library_faults_plan(strategy, budget);
    if (strikes_aimed) faults_aim(strategy);
    for (int client = 0; client < LIBRARY_CLIENTS; client++)
        strategy->priority[client] = random_next(&strategy->random) | (uint64_t)1 << 63;
    for (int each = 0; each < CHANGES; each++) strategy->changes[each] = random_below(&strategy->random, HORIZON);
    strategy->lowest = (uint64_t)1 << 62;
}

/* --- faults --- */

static int64_t library_duration_ms(struct library_strategy *strategy) {
    static const int64_t HALVES[] = {1, 3, 3, 6};
    return HALVES[random_below(&strategy->random, 4)] * (strategy->lease_ms > 1 ? strategy->lease_ms / 2 : 1);
}

static struct library_choice fault_draw(struct library_strategy *strategy, const struct library_world *world,
                                        enum library_choice_kind kind) {
    struct library_choice fault = {.kind = kind};
    bool jumps = kind == LIBRARY_CLOCK_JUMP || kind == LIBRARY_CLIENT_CLOCK_JUMP;
    uint64_t clients = (uint64_t)world->workload.clients;
    if (library_strikes_server(kind)) fault.who = (int)random_below(&strategy->random, (uint64_t)world->settings.nodes);
    else fault.who = (int)random_below(&strategy->random, clients);
    if (!library_strikes_server(kind) && !library_strikes_client(kind)) {
        int links = world->clients[fault.who].links_used;
        fault.who = library_link_number(fault.who, links ? (int)random_below(&strategy->random, (uint64_t)links) : 0);
    }
    if (library_has_amount(kind)) fault.amount = library_duration_ms(strategy);
    if (jumps && random_below(&strategy->random, BACKWARDS_OF) == 0) fault.amount = -fault.amount;
    return fault;
}

static bool library_fault_due(struct library_strategy *strategy, const struct library_world *world,
                              struct library_choice *fault) {
    for (int each = 0; each < strategy->fault_count; each++) {
        const struct library_planned *planned = &strategy->faults[each];
        if (planned->done || planned->is_aimed || planned->step > world->steps) continue;
        *fault = fault_draw(strategy, world, strategy->faults[each].kind);
        if (!library_allows(world, *fault)) continue; /* another target is drawn before the next step */
        strategy->faults[each].done = true;
        return true;
    }
    return false;
}

/* Whether a fault is aimed at the message of the step that would be next. */
static bool fault_aimed_at(struct library_strategy *strategy, const struct library_world *world,
                           struct library_choice step, const struct message_aim *message,
                           struct library_choice *fault) {
    for (int each = 0; each < strategy->fault_count; each++) {
        struct library_planned *planned = &strategy->faults[each];
        bool fits = planned->aim.sort == message->sort && planned->aim.is_answer == message->is_answer;
        if (planned->done || !planned->is_aimed || !fits) continue;
        if (planned->aim.skip > 0 && planned->aim.skip--) continue;
        *fault = (struct library_choice){.kind = planned->kind, .who = step.who};
        if (library_strikes_client(planned->kind)) fault->who /= LIBRARY_LINKS;
        if (library_has_amount(planned->kind)) fault->amount = library_duration_ms(strategy);
        planned->done = library_allows(world, *fault);
        if (planned->done) return true;
    }
    return false;
}

/* --- steps --- */

static int chain_client(struct library_choice choice) {
    if (choice.kind == LIBRARY_CLOCK) return 0;
    return choice.who / (choice.kind == LIBRARY_CALL ? WORKLOAD_THREADS : LIBRARY_LINKS);
}

static struct library_choice library_by_priority(struct library_strategy *strategy, const struct library_world *world,
                                                 const struct library_choice *choices, int count) {
    int best = 0;
    for (int each = 1; each < count; each++)
        if (strategy->priority[chain_client(choices[each])] > strategy->priority[chain_client(choices[best])])
            best = each;
    for (int each = 0; each < CHANGES; each++) {
        if (strategy->changes[each] > world->steps || choices[best].kind == LIBRARY_CLOCK) continue;
        strategy->priority[chain_client(choices[best])] = --strategy->lowest;
        strategy->changes[each] = UINT64_MAX;
        return library_by_priority(strategy, world, choices, count);
    }
    return choices[best];
}

static struct library_choice library_step_choose(struct library_strategy *strategy, const struct library_world *world,
                                                 const struct library_choice *choices, int count) {
    if (strategy->order == ORDER_USUAL ||
        (strategy->order == ORDER_UNIFORM && random_below(&strategy->random, DEVIATES_OF) > 0))
        return library_usual(world, choices, count);
    if (strategy->order == ORDER_PCT) return library_by_priority(strategy, world, choices, count);
    return choices[random_below(&strategy->random, (uint64_t)count)];
}

struct library_choice library_strategy_choose(struct library_strategy *strategy, const struct library_world *world,
                                              const struct library_choice *choices, int count) {
    struct library_choice fault;
    struct message_aim message;
    if (library_fault_due(strategy, world, &fault)) return fault;
    struct library_choice step = library_step_choose(strategy, world, choices, count);
    if (!message_sort_of(world, step, &message)) return step;
    if (fault_aimed_at(strategy, world, step, &message, &fault)) return fault;
    message_sorts_note(strategy->sorts, &message);
    return step;
}

/* --- replay --- */

static bool can_happen(const struct library_world *world, struct library_choice choice,
                       const struct library_choice *choices, int count) {
    if (choice.kind >= LIBRARY_FAULTS_FROM) return library_allows(world, choice);
    for (int each = 0; each < count; each++)
        if (library_choice_same(choices[each], choice)) return true;
    return false;
}

struct library_choice library_replay_choose(struct library_replay *replay, const struct library_world *world,
                                            const struct library_choice *choices, int count) {
    struct library_choice usual = library_usual(world, choices, count);
    uint64_t step = library_steps_of(world, usual) + 1;
    for (int each = 0; each < replay->schedule->count; each++) {
        const struct library_deviation *deviation = &replay->schedule->deviations[each];
        if (replay->used[each] || deviation->step != step || !library_choice_same(deviation->usual, usual)) continue;
        if (!can_happen(world, deviation->instead, choices, count)) continue;
        replay->used[each] = true;
        return deviation->instead;
    }
    return usual;
}
