#include "harness/search/search.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/clock.h"

enum { REPORT_EVERY_NS = CLOCK_NS_PER_S / 2, UNPLAYED_MOST = 20 };

uint64_t search_seed(uint64_t seed, uint64_t number) {
    struct random random = random_split(seed, number);
    return random_next(&random);
}

/* --- one schedule --- */

/* What chooses the next step: exactly one is set. */
struct chooser {
    struct strategy *strategy;
    struct exhaustive *exhaustive;
    struct replay *replay;
    struct mutant *mutant;
};

static struct choice chosen_by(const struct chooser *chooser, const struct search_world *world,
                               const struct choice *choices, int count, struct choice usual) {
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

static void state_reach(struct search *search) {
    bool learns = search->settings->strategy == STRATEGY_NOVELTY;
    if (!search->shared && !learns) return;
    uint64_t state = search->world->operations->state(search->world);
    if (search->shared) state_count(search->shared, state);
    if (learns) novelty_reach(&search->novelty, state);
}

static void choice_count(struct search *search, struct choice chosen) {
    struct search_world *world = search->world;
    search->tally.faults[chosen.kind]++;
    if (!choice_is_fault(chosen.kind)) {
        int chain = choice_chain(world->space, chosen);
        world->taken[chosen.kind][chosen.who]++;
        if (chain >= 0) world->current = chain;
        return;
    }
    search->tally.struck[world->operations->place(world, chosen)][chosen.kind]++;
    search->faults |= (uint32_t)1 << chosen.kind;
    search->strikes++;
}

static void steps_take(struct search *search, const struct chooser *chooser) {
    struct search_world *world = search->world;
    const struct search_world_operations *operations = world->operations;
    struct choice choices[SEARCH_CHOICES];
    for (int count; world->steps < world->steps_most && (count = operations->choices(world, choices)) > 0;) {
        struct choice usual = search_usual(world, choices, count);
        struct choice chosen = chosen_by(chooser, world, choices, count, usual);
        if (!choice_same(chosen, usual))
            schedule_add(&search->schedule, (struct deviation){usual, world->taken[usual.kind][usual.who] + 1, chosen});
        if (search->notes && !choice_is_fault(chosen.kind)) situations_note(&search->situations, world, chosen);
        choice_count(search, chosen);
        if (!operations->apply(world, chosen)) return;
        state_reach(search);
    }
}

/* Programs that a schedule before has left as they should not be used again are ended before this one. */
static void session_renew(struct search *search) {
    if (!search->world->has_programs) return;
    if (search->in_session == 0) {
        search->world->operations->session_end(search->world);
        search->tally.sessions++;
    }
    search->in_session++;
}

static void violations_judge(const struct search *search, struct search_outcome *outcome) {
    const struct search_settings *settings = search->settings;
    for (int each = 0; each < search->world->property_count; each++) {
        bool is_required = settings->required[each] | settings->steadily[each];
        outcome->broken[each] = search_is_violated(settings, outcome, each);
        outcome->violates |= outcome->broken[each];
        if (is_required) outcome->shown[each] = outcome->broken[each];
    }
}

/* Plays search->schedule.workload; `chooser` says what happens in which order. */
static struct search_outcome schedule_play(struct search *search, const struct chooser *chooser, uint64_t seed,
                                           uint64_t number) {
    struct search_world *world = search->world;
    struct search_outcome outcome = {.played = false};
    if (search->settings->before_each) search->settings->before_each();
    session_renew(search);
    search->schedule.count = 0;
    search->faults = 0;
    search->strikes = 0;
    world->reason[0] = '\0';
    memset(world->taken, 0, sizeof world->taken);
    world->current = -1;
    world->steps = 0;
    if (world->operations->begin(world, &search->schedule.workload, seed, number)) {
        steps_take(search, chooser);
        outcome.steps = world->steps;
        outcome.cut_short = world->steps >= world->steps_most;
        outcome.faults = search->faults;
        outcome.strikes = search->strikes;
        world->operations->end(world, search->settings, &outcome);
        violations_judge(search, &outcome);
    } else assert(world->reason[0]); /* without one, nothing would pass for a schedule that was played */
    outcome.played = world->reason[0] == '\0';
    if (!outcome.fresh || !outcome.played || search->distrusts) search->in_session = 0;
    return outcome;
}

static struct search_outcome draw_with(struct search *search, const struct portfolio_turn *turn, uint64_t number) {
    struct strategy strategy;
    struct search_world *world = search->world;
    search->origin = turn->kind == STRATEGY_EXHAUSTIVE ? 0 : number;
    uint64_t seed = search_seed(search->settings->seed, search->origin);
    if (search->in_session == 0) session_renew(search); /* a session draws its settings with its first schedule */
    world->operations->workload_draw(world, &search->schedule.workload, seed);
    if (turn->kind == STRATEGY_EXHAUSTIVE) {
        exhaustive_begin(&search->exhaustive);
        return schedule_play(search, &(struct chooser){.exhaustive = &search->exhaustive}, seed, number);
    }
    bool aims = turn->aims && search->aims;
    strategy_begin(&strategy, world, turn->kind, turn->aims && !aims ? FAULTS_NONE : turn->plan, seed,
                   &search->settings->budget, search->horizon, aims ? &search->situations : NULL);
    strategy.ends_quiet = world->ends_quiet;
    search->notes = world->has_programs;
    if (search->notes) situations_begin(&search->situations);
    struct search_outcome outcome = schedule_play(search, &(struct chooser){.strategy = &strategy}, seed, number);
    search->notes = false;
    return outcome;
}

static struct search_outcome draw_from_portfolio(struct search *search, uint64_t turn, uint64_t number) {
    const struct search_world *world = search->world;
    return draw_with(search, &world->portfolio[turn % (uint64_t)world->portfolio_turns], number);
}

/* A schedule of the session that is changed. */
static struct search_outcome draw_changed(struct search *search, uint64_t number) {
    static struct mutant mutant;
    const struct search_settings *settings = search->settings;
    mutant_begin(&mutant, &search->novelty, search->world, search_seed(settings->seed, number), &settings->budget,
                 search->horizon);
    search->origin = mutant.origin;
    workload_copy(&search->schedule.workload, &mutant.schedule.workload);
    uint64_t seed = search_seed(settings->seed, mutant.origin);
    struct search_outcome outcome = schedule_play(search, &(struct chooser){.mutant = &mutant}, seed, number);
    mutant_free(&mutant);
    return outcome;
}

/* Every second schedule is drawn as in a portfolio; the others are changed. */
static struct search_outcome draw_novel(struct search *search, uint64_t number) {
    struct novelty *novelty = &search->novelty;
    novelty_schedule_begin(novelty);
    bool changes = number % 2 && novelty->count > 0;
    struct search_outcome outcome =
        changes ? draw_changed(search, number) : draw_from_portfolio(search, number / 2, number);
    if (outcome.played) novelty_schedule_end(novelty, &search->schedule, search->origin);
    return outcome;
}

static struct search_outcome search_draw(struct search *search, uint64_t number) {
    const struct portfolio_turn alone = {.kind = search->settings->strategy, .plan = FAULTS_DRAWN};
    if (alone.kind == STRATEGY_NOVELTY) return draw_novel(search, number);
    return alone.kind == STRATEGIES ? draw_from_portfolio(search, number, number) : draw_with(search, &alone, number);
}

struct search_outcome search_replay(struct search *search, const struct schedule *schedule, uint64_t seed,
                                    uint64_t number, bool anew, bool *used) {
    struct replay replay;
    if (anew) search->in_session = 0;
    workload_copy(&search->schedule.workload, &schedule->workload);
    replay_begin(&replay, schedule);
    struct search_outcome outcome = schedule_play(search, &(struct chooser){.replay = &replay}, seed, number);
    if (used) memcpy(used, replay.used, schedule->count * sizeof *used);
    replay_free(&replay);
    return outcome;
}

/* --- before many --- */

/* The usual course by the random numbers of a schedule. */
static struct search_outcome usual_course(struct search *search, uint64_t number) {
    static struct schedule usual;
    uint64_t seed = search_seed(search->settings->seed, number);
    search->world->operations->workload_draw(search->world, &usual.workload, seed);
    assert(usual.count == 0);
    return search_replay(search, &usual, seed, 0, false, NULL);
}

bool search_begin(struct search *search) {
    const struct search_world *world = search->world;
    search->situations = (struct situations){.spares_store = search->settings->budget.spares_store};
    search->exhaustive =
        (struct exhaustive){.bound = search->settings->deviations, .budget = &search->settings->budget};
    if (world->rehearses) (void)usual_course(search, UINT64_MAX); /* whose random numbers no schedule has */
    struct search_outcome outcome = {.played = true, .steps = world->horizon};
    search->notes = true;
    for (int course = 0; course < world->usual_courses && outcome.played; course++) {
        situations_begin(&search->situations);
        struct search_outcome of = usual_course(search, course ? UINT64_MAX - (uint64_t)course : 0);
        if (course == 0) outcome = of;
    }
    search->notes = false;
    search->aims = world->usual_courses > 0;
    search->horizon = outcome.steps > 0 ? outcome.steps : 1;
    memset(&search->tally, 0, sizeof search->tally);
    search->commands_before = world->operations->commands(world);
    return outcome.played;
}

/* --- sessions --- */

/* The number of schedules before a session. */
static uint64_t session_first(const struct search_settings *settings, uint64_t session) {
    uint64_t first = session < settings->short_sessions ? session : settings->short_sessions;
    return first * settings->short_session + (session - first) * settings->session;
}

static void session_begin(struct search *search, uint64_t session) {
    search->in_session = 0;
    search->distrusts = false;
    if (search->settings->strategy == STRATEGY_NOVELTY) novelty_free(&search->novelty);
    if (!search->world->has_programs) return;
    search->situations = (struct situations){.spares_store = search->settings->budget.spares_store};
    search->aims = session >= search->settings->short_sessions;
}

/* Runs the schedules of a session that were tried already, so that the next ones are what they would have been. */
static bool session_catch_up(struct search *search, uint64_t from, uint64_t until) {
    static struct search_tally tally;
    tally = search->tally;
    bool played = true;
    for (; from < until && played; from++) played = search_draw(search, from).played;
    search->tally = tally;
    return played;
}

/* --- what was found --- */

/* Whether new programs show one of the same violations in the schedule that was played last. The next schedule begins
 * with new ones again. */
static bool is_repeated(struct search *search) {
    uint64_t seed = search_seed(search->settings->seed, search->found_origin);
    struct search_outcome again = search_replay(search, &search->found, seed, search->found_number, true, NULL);
    search->in_session = 0;
    for (int each = 0; each < search->world->property_count; each++)
        if (again.played && again.broken[each] && search->found_outcome.broken[each]) return true;
    return false;
}

static void unrepeated_add(struct search_tally *tally, struct search_outcome *outcome, uint64_t number) {
    if (tally->unrepeated++ == 0)
        snprintf(tally->unrepeated_reason, sizeof tally->unrepeated_reason, "schedule %llu: %.200s",
                 (unsigned long long)number + 1, outcome->sentence);
    for (int each = 0; each < SEARCH_PROPERTIES; each++) {
        outcome->broken[each] = outcome->shown[each] = false;
        if (outcome->status[each] == VERDICT_VIOLATED) outcome->status[each] = VERDICT_HOLDS;
    }
    outcome->violates = false;
}

/* Keeps the first schedule that violates. What new programs do not show again violates nothing: it is only counted. */
static void found_keep(struct search *search, struct search_outcome *outcome, uint64_t number) {
    bool first = !search->violated || number < search->found_number;
    if (!outcome->violates || !first) return;
    search->violated = true;
    schedule_copy(&search->found, &search->schedule);
    search->found_number = number;
    search->found_origin = search->origin;
    search->found_outcome = *outcome;
    search->world->operations->keep(search->world);
    if (search->world->has_programs && !search->settings->keep_going && !is_repeated(search)) {
        search->violated = false;
        search->distrusts = search->world->acts_itself;
        unrepeated_add(&search->tally, outcome, number);
        return;
    }
    if (!search->shared) return;
    uint64_t known = atomic_load(&search->shared->violated);
    while (number < known && !atomic_compare_exchange_weak(&search->shared->violated, &known, number)) continue;
}

/* --- many --- */

static void group_add(struct search_tally *tally, const struct search_outcome *outcome, uint64_t number) {
    uint32_t properties = 0;
    int each = 0;
    for (int property = 0; property < SEARCH_PROPERTIES; property++)
        properties |= (uint32_t)outcome->shown[property] << property;
    if (!properties) return;
    while (each < tally->group_count &&
           (tally->groups[each].properties != properties || tally->groups[each].faults != outcome->faults))
        each++;
    if (each == SEARCH_GROUPS) return;
    if (each == tally->group_count)
        tally->groups[tally->group_count++] = (struct search_group){properties, outcome->faults, 0, number};
    tally->groups[each].schedules++;
}

static void tally_add(struct search *search, const struct search_outcome *outcome, uint64_t number) {
    struct search_tally *tally = &search->tally;
    if (!outcome->played) {
        if (tally->unplayed++ == 0) memcpy(tally->unplayed_reason, search->world->reason, sizeof search->world->reason);
        return;
    }
    group_add(tally, outcome, number);
    tally->schedules++;
    tally->steps += outcome->steps;
    tally->calls += (uint64_t)workload_calls(&search->schedule.workload);
    tally->cut_short += outcome->cut_short;
    for (int each = 0; each < search->world->property_count; each++) {
        tally->count[each][outcome->status[each]] += outcome->applies[each];
        tally->broken[each] += outcome->broken[each];
    }
    if (outcome->inapplicable_reason[0] && tally->inapplicable++ == 0)
        memcpy(tally->inapplicable_reason, outcome->inapplicable_reason, sizeof tally->inapplicable_reason);
}

static bool search_is_over(const struct search *search, uint64_t next) {
    if (!search->settings->keep_going &&
        (search->violated || (search->shared && atomic_load(&search->shared->violated) < next)))
        return true;
    return search->tally.schedules == 0 && search->tally.unplayed >= UNPLAYED_MOST;
}

/* A lock of C that cannot be opened once will not be opened by other schedules either. */
static bool gives_up(struct search *search, bool played) {
    if (played || search->world->has_programs) return false;
    search->gave_up = true;
    if (search->shared) atomic_store(&search->shared->taken, search->settings->most);
    return true;
}

static bool one_more(struct search *search, uint64_t number) {
    const struct search_settings *settings = search->settings;
    struct search_outcome outcome = search_draw(search, number);
    if (gives_up(search, outcome.played)) return false;
    found_keep(search, &outcome, number);
    tally_add(search, &outcome, number);
    search->tally.commands = search->world->operations->commands(search->world) - search->commands_before;
    uint64_t place = number - settings->first;
    uint64_t digest = outcome.played ? outcome.digest : UINT64_MAX;
    if (search->digests) search->digests[settings->session == 1 ? place / settings->stride : place] = digest;
    search->exhausted = settings->strategy == STRATEGY_EXHAUSTIVE && !exhaustive_next(&search->exhaustive);
    return !search->exhausted && !search_is_over(search, number + 1);
}

bool search_run(struct search *search, void (*report)(const struct search *)) {
    const struct search_settings *settings = search->settings;
    int64_t now_ns = clock_real_mono_ns(), reported_ns = now_ns;
    int64_t until_ns = settings->seconds ? now_ns + settings->seconds * CLOCK_NS_PER_S : INT64_MAX;
    for (bool more = true; more && now_ns < until_ns;) {
        uint64_t taken = search->shared ? atomic_fetch_add(&search->shared->taken, 1) : search->taken++;
        uint64_t session = settings->first_session + taken * settings->stride;
        uint64_t number = session_first(settings, session);
        uint64_t until = session_first(settings, session + 1);
        if (number >= settings->most || search_is_over(search, number)) break;
        session_begin(search, session);
        if (number < settings->first) {
            if (gives_up(search, session_catch_up(search, number, settings->first))) return false;
            number = settings->first;
        }
        for (; more && number < until && number < settings->most; number++) {
            more = one_more(search, number);
            now_ns = clock_real_mono_ns();
            if (!settings->whole_sessions && now_ns >= until_ns) more = false;
            if (now_ns - reported_ns < REPORT_EVERY_NS) continue;
            reported_ns = now_ns;
            report(search);
        }
    }
    return search->violated;
}

void search_free(struct search *search) {
    schedule_free(&search->schedule);
    schedule_free(&search->found);
    exhaustive_free(&search->exhaustive);
    novelty_free(&search->novelty);
}
