#include "harness/explorer/search.h"

#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/explorer/mix.h"

enum { TELL_EVERY_NS = CLOCK_NS_PER_S / 2, LOOK_EVERY = 16 };
enum { FEWEST = 2, FAULT_STEPS_MOST = 40 }; /* what a story with a single fault is looked for in */

uint64_t search_seed(uint64_t seed, uint64_t number) {
    struct random random = random_split(seed, number);
    return random_next(&random);
}

/* --- one schedule --- */

static uint64_t mixed_in(uint64_t digest, const struct history_record *record) {
    uint64_t words[sizeof *record / sizeof digest];
    memcpy(words, record, sizeof words);
    for (size_t each = 0; each < sizeof words / sizeof words[0]; each++) digest = mix(digest, words[each]);
    return digest;
}

/* Of all that is not the same in every schedule, but for its number: equal histories of two schedules are equal. */
static uint64_t digest_of(struct history_reader *reader, uint64_t prefix) {
    const struct history_record *records;
    uint64_t digest = 0x9e3779b97f4a7c15u, index = 0;
    history_reader_rewind(reader);
    for (uint64_t count; (count = history_reader_batch(reader, &records)) > 0;)
        for (uint64_t each = 0; each < count; each++, index++)
            if (index > prefix) digest = mixed_in(digest, &records[each]);
    return digest;
}

static void outcome_judge(struct search *search, struct search_outcome *outcome) {
    struct judgement judgement;
    bool whole = judge(&judgement, search->reader, (struct check_reading){0});
    if (!whole) abort(); /* nobody else writes */
    for (int each = 0; each < judgement.checkers; each++) {
        outcome->status[each] = judgement.at_work[each].verdict.status;
        outcome->applies[each] = judgement.at_work[each].verdict.applies;
        outcome->violates |= search->settings->required[each] && outcome->status[each] == VERDICT_VIOLATED;
    }
    outcome->grants = judgement.check.granted;
    memcpy(outcome->unfit, judgement.unfit, sizeof outcome->unfit);
    judge_close(&judgement);
}

static struct search_outcome outcome_of(struct search *search) {
    const struct world *world = search->world;
    struct search_outcome outcome = {
        .opened = true, .steps = world->steps, .cut_short = world->steps >= WORLD_STEPS_MOST};
    outcome.faults = search->faults;
    outcome.digest = digest_of(search->reader, world->prefix);
    outcome_judge(search, &outcome);
    return outcome;
}

/* How the next step is chosen: by exactly one of them. */
struct chooser {
    struct strategy *strategy;
    struct exhaustive *exhaustive;
    struct replay *replay;
};

static struct choice chosen_by(const struct chooser *chooser, const struct world *world, const struct choice *choices,
                               int count, struct choice usual) {
    if (chooser->replay) return replay_choose(chooser->replay, world, usual);
    if (chooser->exhaustive) return exhaustive_choose(chooser->exhaustive, world, choices, count);
    return strategy_choose(chooser->strategy, world, choices, count);
}

static void state_note(struct search_shared *shared, uint64_t state) {
    uint64_t rest = state << SEARCH_REGISTER_BITS;
    uint8_t rank = (uint8_t)(rest ? __builtin_clzll(rest) + 1 : 64 - SEARCH_REGISTER_BITS + 1);
    _Atomic uint8_t *noted = &shared->states[state >> (64 - SEARCH_REGISTER_BITS)];
    uint8_t known = atomic_load_explicit(noted, memory_order_relaxed);
    while (rank > known && !atomic_compare_exchange_weak(noted, &known, rank)) continue;
}

static void choice_note(struct search *search, struct choice chosen) {
    search->tally.faults[chosen.kind]++;
    if ((int)chosen.kind < CHOICE_FAULTS_FROM) return;
    search->tally.struck[world_checkpoint(search->world, chosen)][chosen.kind]++;
    search->faults |= (uint32_t)1 << chosen.kind;
}

static void run(struct search *search, const struct chooser *chooser) {
    struct world *world = search->world;
    struct choice choices[WORLD_CHOICES];
    search->schedule.count = 0;
    search->faults = 0;
    for (int count; world->steps < WORLD_STEPS_MOST && (count = world_choices(world, choices)) > 0;) {
        struct choice usual = world_usual(world, choices, count);
        struct choice chosen = chosen_by(chooser, world, choices, count, usual);
        if (!choice_same(chosen, usual))
            schedule_add(&search->schedule, (struct deviation){usual, world_steps_of(world, usual) + 1, chosen});
        choice_note(search, chosen);
        world_do(world, chosen);
        if (search->shared) state_note(search->shared, world_state(world));
    }
    world_end(world);
}

static bool begin(struct search *search, int clients, uint64_t seed, uint64_t number) {
    if (search->settings->before_each) search->settings->before_each();
    return world_begin(search->world, clients, seed, number);
}

uint64_t search_origin(const struct search *search, uint64_t number) {
    return search->settings->strategy == STRATEGY_EXHAUSTIVE ? 0 : number;
}

static struct search_outcome draw_with(struct search *search, enum strategy_kind kind, uint64_t number) {
    struct strategy strategy;
    struct world *world = search->world;
    uint64_t seed = search_seed(search->settings->seed, search_origin(search, number));
    if (!begin(search, world->settings.clients, seed, number)) return (struct search_outcome){0};
    if (kind == STRATEGY_EXHAUSTIVE) {
        exhaustive_begin(&search->exhaustive);
        run(search, &(struct chooser){.exhaustive = &search->exhaustive});
        return outcome_of(search);
    }
    strategy_begin(&strategy, kind, seed, &search->settings->budget, world->settings.lease_ms, search->horizon);
    strategy.ends_quiet = world->settings.bound_ms > 0;
    run(search, &(struct chooser){.strategy = &strategy});
    return outcome_of(search);
}

struct search_outcome search_draw(struct search *search, uint64_t number) {
    enum strategy_kind kind = search->settings->strategy;
    if (kind == STRATEGIES) kind = number % 2 ? STRATEGY_PCT : STRATEGY_UNIFORM;
    return draw_with(search, kind, number);
}

struct search_outcome search_follow(struct search *search, const struct schedule *schedule, int clients, uint64_t seed,
                                    uint64_t number, bool *used) {
    struct replay replay;
    if (!begin(search, clients, seed, number)) return (struct search_outcome){0};
    replay_begin(&replay, schedule);
    run(search, &(struct chooser){.replay = &replay});
    if (used) memcpy(used, replay.used, schedule->count * sizeof *used);
    replay_free(&replay);
    return outcome_of(search);
}

/* --- many --- */

bool search_begin(struct search *search) {
    static const struct schedule nothing = {0};
    struct search_outcome outcome = search_follow(search, &nothing, search->world->settings.clients,
                                                  search_seed(search->settings->seed, 0), 0, NULL);
    search->exhaustive = (struct exhaustive){.bound = search->settings->bound,
                                             .lease_ms = search->world->settings.lease_ms,
                                             .budget = &search->settings->budget};
    search->horizon = outcome.steps > 0 ? outcome.steps : 1;
    memset(&search->tally, 0, sizeof search->tally);
    for (int node = 0; node < search->world->settings.nodes; node++)
        for (int server = 0; server < WORLD_SERVERS; server++) search->world->nodes[node].servers[server].commands = 0;
    return outcome.opened;
}

static uint64_t commands_of(const struct world *world) {
    uint64_t commands = 0;
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 0; server < WORLD_SERVERS; server++) commands += world->nodes[node].servers[server].commands;
    return commands;
}

static void group_add(struct search_tally *tally, const struct search_outcome *outcome, uint64_t number) {
    uint32_t properties = 0;
    int each = 0;
    for (int place = 0; place < CHECKERS_MOST; place++)
        properties |= (uint32_t)(outcome->status[place] == VERDICT_VIOLATED) << place;
    if (!properties) return;
    while (each < tally->group_count &&
           (tally->groups[each].properties != properties || tally->groups[each].faults != outcome->faults))
        each++;
    if (each == SEARCH_GROUPS) return;
    if (each == tally->group_count)
        tally->groups[tally->group_count++] = (struct search_group){properties, outcome->faults, 0, number};
    tally->groups[each].schedules++;
}

static void tally_add(struct search_tally *tally, const struct search_outcome *outcome, uint64_t number) {
    group_add(tally, outcome, number);
    tally->schedules++;
    tally->steps += outcome->steps;
    tally->grants += outcome->grants;
    tally->cut_short += outcome->cut_short;
    for (int each = 0; each < CHECKERS_MOST; each++)
        if (outcome->applies[each]) tally->count[each][outcome->status[each]]++;
    if (outcome->unfit[0] && tally->unfit++ == 0)
        memcpy(tally->unfit_reason, outcome->unfit, sizeof tally->unfit_reason);
}

static void violated_tell(struct search_shared *shared, uint64_t number) {
    uint64_t known = shared ? atomic_load(&shared->violated) : 0;
    while (shared && number < known && !atomic_compare_exchange_weak(&shared->violated, &known, number)) continue;
}

/* Whoever is free takes the next one, so at any end all are done up to some number. */
static uint64_t take(struct search *search) {
    return search->shared ? atomic_fetch_add(&search->shared->taken, 1) : search->taken++;
}

bool search_all(struct search *search, uint64_t *number, void (*tell)(const struct search *)) {
    const struct search_settings *settings = search->settings;
    int64_t began_ns = clock_real_mono_ns(), told_ns = began_ns;
    bool violated = false;
    for (;;) {
        uint64_t place = take(search), each = settings->first + place * settings->stride;
        if (each >= settings->most) break;
        if (!settings->goes_on && search->shared && each > atomic_load(&search->shared->violated)) break;
        struct search_outcome outcome = search_draw(search, each);
        tally_add(&search->tally, &outcome, each);
        search->tally.commands = commands_of(search->world);
        if (search->digests) search->digests[place] = outcome.digest;
        if (outcome.violates && !violated) {
            violated = true;
            *number = each;
            schedule_copy(&search->found, &search->schedule);
            search->found_outcome = outcome;
            violated_tell(search->shared, each);
        }
        if (violated && !settings->goes_on) break;
        search->exhausted = settings->strategy == STRATEGY_EXHAUSTIVE && !exhaustive_next(&search->exhaustive);
        if (search->exhausted) break;
        if (search->tally.schedules % LOOK_EVERY) continue;
        int64_t now_ns = clock_real_mono_ns();
        if (now_ns - told_ns > TELL_EVERY_NS) tell(search), told_ns = now_ns;
        if (settings->seconds && now_ns - began_ns > settings->seconds * CLOCK_NS_PER_S) break;
    }
    return violated;
}

/* --- smaller --- */

/* A violation that is made smaller: `best` is the smallest schedule known. */
struct shrink {
    struct search *search;
    uint64_t number, seed;
    const struct search_outcome *wanted;
    struct schedule best, trial;
    int clients;
    int64_t runs_left;
};

static bool shows_the_same(const struct shrink *shrink, const struct search_outcome *outcome) {
    for (int each = 0; each < CHECKERS_MOST; each++) {
        bool was = shrink->search->settings->required[each] && shrink->wanted->status[each] == VERDICT_VIOLATED;
        if (was && outcome->status[each] == VERDICT_VIOLATED) return true;
    }
    return false;
}

/* Runs the trial; if it still violates, what came up of it is the best from now on. */
static bool shrink_try(struct shrink *shrink, int clients) {
    if (shrink->runs_left-- <= 0) return false;
    struct search_outcome outcome =
        search_follow(shrink->search, &shrink->trial, clients, shrink->seed, shrink->number, NULL);
    if (!shows_the_same(shrink, &outcome)) return false;
    schedule_copy(&shrink->best, &shrink->search->schedule);
    shrink->clients = clients;
    return true;
}

/* Without `length` deviations from `from` on. */
static void trial_without(struct shrink *shrink, size_t from, size_t length) {
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++)
        if (each < from || each >= from + length) schedule_add(&shrink->trial, shrink->best.deviations[each]);
}

/* Delta debugging (Zeller 1999): large pieces first, then smaller ones, down to single deviations. */
static bool shrink_deviations(struct shrink *shrink) {
    bool smaller_one = false;
    for (size_t length = shrink->best.count; length > 0; length /= 2) {
        for (size_t from = 0; from < shrink->best.count;) {
            trial_without(shrink, from, length);
            if (shrink_try(shrink, shrink->clients)) smaller_one = true;
            else from += length;
        }
    }
    return smaller_one;
}

static int client_of(struct choice choice) {
    if (choice_strikes_client(choice.kind)) return choice.who;
    return choice.kind == CHOICE_TASK || choice.kind >= CHOICE_MUTE ? choice.who / 2 : -1;
}

/* Everybody behind a client that is not there any more moves up. */
static struct choice moved_up(struct choice choice, int gone) {
    if (client_of(choice) > gone) choice.who -= choice_strikes_client(choice.kind) ? 1 : 2;
    return choice;
}

static void trial_without_client(struct shrink *shrink, int gone) {
    shrink->trial.count = 0;
    for (size_t each = 0; each < shrink->best.count; each++) {
        struct deviation deviation = shrink->best.deviations[each];
        if (client_of(deviation.usual) == gone || client_of(deviation.instead) == gone) continue;
        deviation.usual = moved_up(deviation.usual, gone);
        deviation.instead = moved_up(deviation.instead, gone);
        schedule_add(&shrink->trial, deviation);
    }
}

static bool shrink_clients(struct shrink *shrink) {
    for (int gone = shrink->clients - 1; gone >= 0 && shrink->clients > 1; gone--) {
        trial_without_client(shrink, gone);
        if (shrink_try(shrink, shrink->clients - 1)) return true;
    }
    return false;
}

/* The only fault of a schedule, or NULL. */
static const struct choice *only_fault(const struct schedule *schedule) {
    const struct choice *found = NULL;
    for (size_t each = 0; each < schedule->count; each++) {
        const struct choice *instead = &schedule->deviations[each].instead;
        if ((int)instead->kind < CHOICE_FAULTS_FROM) continue;
        if (found) return NULL;
        found = instead;
    }
    return found;
}

/* One fault tells a story by itself, if it strikes in the usual course of fewer clients: before a step of a client's
 * worker, its own if it strikes a client. */
static bool shrink_to_fault(struct shrink *shrink) {
    const struct choice *fault = only_fault(&shrink->best);
    if (!fault || (shrink->best.count == 1 && shrink->clients <= (int)FEWEST)) return false;
    struct choice struck = *fault;
    int clients = shrink->clients < FEWEST ? shrink->clients : FEWEST;
    for (uint64_t step = 1; step <= FAULT_STEPS_MOST; step++) {
        for (int client = 0; client < clients; client++) {
            if (choice_strikes_client(struck.kind)) struck.who = client;
            else if (!choice_strikes_node(struck.kind) && !choice_strikes_replica(struck.kind)) struck.who = 2 * client;
            shrink->trial.count = 0;
            schedule_add(&shrink->trial, (struct deviation){{CHOICE_TASK, 2 * client, 0}, step, struck});
            if (shrink_try(shrink, clients)) return true;
        }
    }
    return false;
}

/* One lease and a half instead of three. */
static bool shrink_amounts(struct shrink *shrink) {
    int64_t lease_ms = shrink->search->world->settings.lease_ms;
    for (size_t each = 0; each < shrink->best.count; each++) {
        int64_t amount = shrink->best.deviations[each].instead.amount;
        if (amount <= lease_ms * 2) continue;
        schedule_copy(&shrink->trial, &shrink->best);
        shrink->trial.deviations[each].instead.amount = amount / 2;
        if (shrink_try(shrink, shrink->clients)) return true;
    }
    return false;
}

void search_free(struct search *search) {
    schedule_free(&search->schedule);
    schedule_free(&search->found);
    exhaustive_free(&search->exhaustive);
}

void search_shrink(struct search *search, uint64_t number, int *clients) {
    struct shrink shrink = {.search = search,
                            .number = number,
                            .seed = search_seed(search->settings->seed, search_origin(search, number)),
                            .wanted = &search->found_outcome,
                            .clients = *clients,
                            .runs_left = search->settings->shrink_runs};
    schedule_copy(&shrink.best, &search->found);
    (void)shrink_to_fault(&shrink);
    while (shrink.runs_left > 0 && (shrink_clients(&shrink) || shrink_deviations(&shrink) || shrink_amounts(&shrink)))
        continue;
    schedule_copy(&search->schedule, &shrink.best);
    *clients = shrink.clients;
    schedule_free(&shrink.best);
    schedule_free(&shrink.trial);
}
