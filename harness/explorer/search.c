#include "harness/explorer/search.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"
#include "harness/simulation/mix.h"
#include "harness/simulation/world.h"
#include "harness/simulation/world_choices.h"

enum { REPORT_EVERY_NS = CLOCK_NS_PER_S / 2, CLOCK_EVERY = 16 };
enum { USUAL_COURSES = 8 }; /* of which situations are noted where clients do not do the same in each */

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

/* The digest of a history without the records that all schedules share and without the schedule's number: equal
 * histories of two schedules have equal digests. */
static uint64_t history_digest(struct history_reader *reader, uint64_t prefix) {
    const struct history_record *records;
    uint64_t digest = 0x9e3779b97f4a7c15u, index = 0;
    history_reader_rewind(reader);
    for (uint64_t count; (count = history_reader_batch(reader, &records)) > 0;)
        for (uint64_t each = 0; each < count; each++, index++)
            if (index > prefix) digest = mixed_in(digest, &records[each]);
    return digest;
}

static uint32_t sorts_of(const struct verdict *verdict) {
    uint32_t sorts = 0;
    for (int sort = 0; sort < VERDICT_PARTS; sort++) sorts |= (uint32_t)(verdict->sorts[sort] > 0) << sort;
    return sorts;
}

/* An order of grants is promised only to clients whose requests arrive in theirs. */
static bool checker_is_judged(const struct schedule_search *search, int checker) {
    return search->world->settings.in_order || strcmp(CHECKER_TABLE[checker]->property, "fairness") != 0;
}

static void outcome_judge(struct schedule_search *search, struct search_outcome *outcome) {
    struct judgement judgement;
    bool whole = judge(&judgement, search->reader, (struct check_reading){0});
    if (!whole) abort(); /* this process alone writes the history */
    for (int each = 0; each < judgement.checkers; each++) {
        outcome->status[each] = judgement.at_work[each].verdict.status;
        outcome->sorts[each] = sorts_of(&judgement.at_work[each].verdict);
        bool counts = CHECKER_TABLE[each]->advisory || outcome->status[each] != VERDICT_INCONCLUSIVE;
        outcome->applies[each] =
            judgement.at_work[each].verdict.applies || (counts && search->settings->required[each]);
        outcome->broken[each] = search_is_violated(search->settings, outcome, each);
        outcome->violates |= outcome->broken[each];
        bool asked = outcome->applies[each] || (CHECKER_TABLE[each]->advisory && checker_is_judged(search, each));
        bool violated = asked && outcome->status[each] == VERDICT_VIOLATED;
        outcome->shown[each] =
            search->settings->required[each] | search->settings->steadily[each] ? outcome->broken[each] : violated;
    }
    memcpy(outcome->inapplicable_reason, judgement.inapplicable_reason, sizeof outcome->inapplicable_reason);
    judge_close(&judgement);
}

static struct search_outcome search_outcome_of(struct schedule_search *search) {
    const struct world *world = search->world;
    struct search_outcome outcome = {
        .opened = true, .steps = world->steps, .cut_short = world->steps >= WORLD_STEPS_MOST};
    outcome.faults = search->faults;
    outcome.strikes = search->strikes;
    outcome.digest = history_digest(search->reader, world->prefix);
    outcome_judge(search, &outcome);
    return outcome;
}

/* What chooses the next step: exactly one is set. */
struct chooser {
    struct strategy *strategy;
    struct exhaustive *exhaustive;
    struct replay *replay;
    struct mutant *mutant;
};

static struct choice chosen_by(const struct chooser *chooser, const struct world *world, const struct choice *choices,
                               int count, struct choice usual) {
    if (chooser->mutant) return mutant_choose(chooser->mutant, world, choices, count, usual);
    if (chooser->replay) return replay_choose(chooser->replay, world, usual);
    if (chooser->exhaustive) return exhaustive_choose(chooser->exhaustive, world, choices, count);
    return strategy_choose(chooser->strategy, world, choices, count);
}

static void state_count(struct search_shared *shared, uint64_t state) {
    uint64_t rest = state << SEARCH_REGISTER_BITS;
    uint8_t rank = (uint8_t)(rest ? __builtin_clzll(rest) + 1 : 64 - SEARCH_REGISTER_BITS + 1);
    _Atomic uint8_t *noted = &shared->states[state >> (64 - SEARCH_REGISTER_BITS)];
    uint8_t known = atomic_load_explicit(noted, memory_order_relaxed);
    while (rank > known && !atomic_compare_exchange_weak(noted, &known, rank)) continue;
}

static void state_reach(struct schedule_search *search) {
    bool learns = search->settings->strategy == STRATEGY_NOVELTY;
    if (!search->shared && !learns) return;
    uint64_t state = world_state_digest(search->world);
    if (search->shared) state_count(search->shared, state);
    if (learns) novelty_reach(&search->novelty, state);
}

static void choice_count(struct schedule_search *search, struct choice chosen) {
    search->tally.faults[chosen.kind]++;
    if ((int)chosen.kind < CHOICE_FAULTS_FROM) return;
    search->tally.struck[world_checkpoint(search->world, chosen)][chosen.kind]++;
    search->faults |= (uint32_t)1 << chosen.kind;
    search->strikes++;
}

static void schedule_run(struct schedule_search *search, const struct chooser *chooser) {
    struct world *world = search->world;
    struct choice choices[WORLD_CHOICES];
    search->schedule.count = 0;
    search->faults = 0;
    search->strikes = 0;
    for (int count; world->steps < WORLD_STEPS_MOST && (count = world_choices(world, choices)) > 0;) {
        struct choice usual = world_usual_choice(world, choices, count);
        struct choice chosen = chosen_by(chooser, world, choices, count, usual);
        if (!choice_same(chosen, usual))
            schedule_add(&search->schedule, (struct deviation){usual, world_steps_of(world, usual) + 1, chosen});
        if (search->is_usual && chosen.kind == CHOICE_TASK) situations_note(&search->situations, world, chosen.who);
        choice_count(search, chosen);
        world_apply(world, chosen);
        state_reach(search);
    }
    world_end(world);
}

static bool schedule_begin(struct schedule_search *search, int clients, uint64_t seed, uint64_t number) {
    if (search->settings->before_each) search->settings->before_each();
    return world_begin(search->world, clients, seed, number);
}

/* `aims`: faults are aimed at situations of the usual course. */
static struct search_outcome draw_with(struct schedule_search *search, enum strategy_kind kind, bool aims,
                                       uint64_t number) {
    struct strategy strategy;
    struct world *world = search->world;
    search->origin = kind == STRATEGY_EXHAUSTIVE ? 0 : number;
    uint64_t seed = search_seed(search->settings->seed, search->origin);
    if (!schedule_begin(search, world->settings.clients, seed, number)) return (struct search_outcome){0};
    if (kind == STRATEGY_EXHAUSTIVE) {
        exhaustive_begin(&search->exhaustive);
        schedule_run(search, &(struct chooser){.exhaustive = &search->exhaustive});
        return search_outcome_of(search);
    }
    strategy_begin(&strategy, kind, seed, &search->settings->budget, world->settings.lease_ms, search->horizon,
                   aims ? &search->situations : NULL);
    strategy.ends_quiet = world->settings.bound_ms > 0;
    schedule_run(search, &(struct chooser){.strategy = &strategy});
    return search_outcome_of(search);
}

/* A schedule of the session that is changed. */
static struct search_outcome draw_changed(struct schedule_search *search, uint64_t number) {
    const struct search_settings *settings = search->settings;
    struct mutant mutant;
    mutant_begin(&mutant, &search->novelty, search->world, search_seed(settings->seed, number), &settings->budget,
                 search->horizon);
    search->origin = mutant.origin;
    uint64_t seed = search_seed(settings->seed, mutant.origin);
    bool opened = schedule_begin(search, search->world->settings.clients, seed, number);
    if (opened) schedule_run(search, &(struct chooser){.mutant = &mutant});
    mutant_free(&mutant);
    return opened ? search_outcome_of(search) : (struct search_outcome){0};
}

/* The portfolio: uniform and PCT in turn, and of each in turn without and with aimed faults. */
static struct search_outcome draw_mixed(struct schedule_search *search, uint64_t turn, uint64_t number) {
    return draw_with(search, turn % 2 ? STRATEGY_PCT : STRATEGY_UNIFORM, turn % 4 >= 2, number);
}

/* Every second schedule is drawn as in a portfolio; the others are changed. */
static struct search_outcome draw_novel(struct schedule_search *search, uint64_t number) {
    struct novelty *novelty = &search->novelty;
    if (number % NOVELTY_SESSION == 0) novelty_session_begin(novelty);
    novelty_schedule_begin(novelty);
    bool changes = number % 2 && novelty->count > 0;
    struct search_outcome outcome = changes ? draw_changed(search, number) : draw_mixed(search, number / 2, number);
    if (outcome.opened) novelty_schedule_end(novelty, &search->schedule, search->origin);
    return outcome;
}

static struct search_outcome search_draw(struct schedule_search *search, uint64_t number) {
    enum strategy_kind kind = search->settings->strategy;
    if (kind == STRATEGY_NOVELTY) return draw_novel(search, number);
    return kind == STRATEGIES ? draw_mixed(search, number, number) : draw_with(search, kind, false, number);
}

struct search_outcome search_replay(struct schedule_search *search, const struct schedule *schedule, int clients,
                                    uint64_t seed, uint64_t number, bool *used) {
    struct replay replay;
    if (!schedule_begin(search, clients, seed, number)) return (struct search_outcome){0};
    replay_begin(&replay, schedule);
    schedule_run(search, &(struct chooser){.replay = &replay});
    if (used) memcpy(used, replay.used, schedule->count * sizeof *used);
    replay_free(&replay);
    return search_outcome_of(search);
}

/* --- many --- */

/* The usual course, whose situations are noted, by the random numbers of a schedule. */
static struct search_outcome usual_course(struct schedule_search *search, uint64_t number) {
    static const struct schedule nothing = {0};
    search->is_usual = true;
    situations_begin(&search->situations);
    struct search_outcome outcome = search_replay(search, &nothing, search->world->settings.clients,
                                                  search_seed(search->settings->seed, number), 0, NULL);
    search->is_usual = false;
    return outcome;
}

bool search_begin(struct schedule_search *search) {
    static const struct schedule nothing = {0};
    search->situations = (struct situations){.spares_store = search->settings->budget.spares_store};
    if (search->world->settings.bound_ms) /* with random numbers that no schedule has: client_traces.h */
        (void)search_replay(search, &nothing, search->world->settings.clients,
                            search_seed(search->settings->seed, UINT64_MAX), 0, NULL);
    struct search_outcome outcome = usual_course(search, 0);
    for (uint64_t other = 1; other < USUAL_COURSES && search->world->settings.varied && outcome.opened; other++)
        (void)usual_course(search, UINT64_MAX - other);
    search->exhaustive = (struct exhaustive){.bound = search->settings->deviations,
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
    for (int place = 0; CHECKER_TABLE[place]; place++) {
        properties |= (uint32_t)outcome->shown[place] << place;
    }
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
    tally->cut_short += outcome->cut_short;
    for (int each = 0; each < CHECKERS_MOST; each++)
        tally->count[each][outcome->status[each]] += outcome->applies[each];
    for (int each = 0; each < CHECKERS_MOST; each++) tally->broken[each] += outcome->broken[each];
    if (outcome->inapplicable_reason[0] && tally->inapplicable++ == 0)
        memcpy(tally->inapplicable_reason, outcome->inapplicable_reason, sizeof tally->inapplicable_reason);
}

static void violated_announce(struct search_shared *shared, uint64_t number) {
    uint64_t known = shared ? atomic_load(&shared->violated) : 0;
    while (shared && number < known && !atomic_compare_exchange_weak(&shared->violated, &known, number)) continue;
}

static uint64_t number_next(struct schedule_search *search) {
    return search->shared ? atomic_fetch_add(&search->shared->taken, 1) : search->taken++;
}

/* Runs the schedules of a session that were tried already, so that the next ones are what they would have been. */
static bool session_catch_up(struct schedule_search *search, uint64_t from, uint64_t until) {
    struct search_tally tally = search->tally;
    bool opened = true;
    for (; from < until && opened; from++) opened = search_draw(search, from).opened;
    search->tally = tally;
    return opened;
}

/* Takes the next session. False: a lock could not be opened. */
static bool session_take(struct schedule_search *search) {
    const struct search_settings *settings = search->settings;
    uint64_t session = settings->first / NOVELTY_SESSION + number_next(search), from = session * NOVELTY_SESSION;
    search->session_next = from > settings->first ? from : settings->first;
    search->session_end = from + NOVELTY_SESSION;
    return from >= settings->most || session_catch_up(search, from, search->session_next);
}

/* Every process takes the next number, or the next session, so the schedules that were run have no gap whenever the
 * search ends. */
static bool number_take(struct schedule_search *search, uint64_t *number) {
    const struct search_settings *settings = search->settings;
    if (settings->strategy != STRATEGY_NOVELTY) {
        *number = settings->first + number_next(search) * settings->stride;
        return true;
    }
    bool opened = search->session_next < search->session_end || session_take(search);
    *number = search->session_next++;
    return opened;
}

/* Whether a search may end by its time limit: never in the middle of a session. */
static bool may_pause(const struct schedule_search *search) {
    return search->session_next == search->session_end;
}

static void search_give_up(struct schedule_search *search, uint64_t *number, uint64_t unopened) {
    search->unopened = true;
    *number = unopened;
    if (search->shared) atomic_store(&search->shared->taken, search->settings->most);
}

bool search_run(struct schedule_search *search, uint64_t *number, void (*report)(const struct schedule_search *)) {
    const struct search_settings *settings = search->settings;
    int64_t began_ns = clock_real_mono_ns(), reported_ns = began_ns;
    bool violated = false;
    for (;;) {
        uint64_t each;
        if (!number_take(search, &each)) {
            search_give_up(search, number, each);
            return false;
        }
        if (each >= settings->most) break;
        if (!settings->keep_going && search->shared && each > atomic_load(&search->shared->violated)) break;
        struct search_outcome outcome = search_draw(search, each);
        if (!outcome.opened) {
            search_give_up(search, number, each);
            return false;
        }
        tally_add(&search->tally, &outcome, each);
        search->tally.commands = commands_of(search->world);
        if (search->digests) search->digests[(each - settings->first) / settings->stride] = outcome.digest;
        if (outcome.violates && !violated) {
            violated = true;
            *number = each;
            schedule_copy(&search->found, &search->schedule);
            search->found_origin = search->origin;
            search->found_outcome = outcome;
            violated_announce(search->shared, each);
        }
        if (violated && !settings->keep_going) break;
        search->exhausted = settings->strategy == STRATEGY_EXHAUSTIVE && !exhaustive_next(&search->exhaustive);
        if (search->exhausted) break;
        if (search->tally.schedules % CLOCK_EVERY && !(search->session_end && may_pause(search))) continue;
        int64_t now_ns = clock_real_mono_ns();
        if (now_ns - reported_ns > REPORT_EVERY_NS) report(search), reported_ns = now_ns;
        if (settings->seconds && may_pause(search) && now_ns - began_ns > settings->seconds * CLOCK_NS_PER_S) break;
    }
    return violated;
}

void search_free(struct schedule_search *search) {
    schedule_free(&search->schedule);
    schedule_free(&search->found);
    exhaustive_free(&search->exhaustive);
    novelty_free(&search->novelty);
}
