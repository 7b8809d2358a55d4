#include "harness/library_search/library_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/library_search/workload_draw.h"
#include "harness/scheduler/clock.h"
#include "harness/simulation/mix.h"

enum { REPORT_EVERY_NS = CLOCK_NS_PER_S / 2, UNPLAYED_MOST = 20 };

uint64_t library_search_seed(uint64_t seed, uint64_t number) {
    struct random random = random_split(seed, number);
    return random_next(&random);
}

/* --- one schedule --- */

static uint64_t library_digest(const struct library_world *world) {
    uint64_t digest = 0x9e3779b97f4a7c15u;
    for (size_t each = 0; each < world->event_count; each++) {
        const struct call_event *event = &world->events[each];
        const uint64_t words[] = {event->kind,
                                  (uint64_t)event->at_ns,
                                  event->call,
                                  event->outcome,
                                  (uint64_t)event->token,
                                  (uint64_t)event->client,
                                  (uint64_t)event->remaining_ms,
                                  (uint64_t)event->until_ns,
                                  event->asked.verb,
                                  (uint64_t)event->asked.thread};
        for (size_t word = 0; word < sizeof words / sizeof words[0]; word++) digest = mix(digest, words[word]);
    }
    return digest;
}

struct library_chooser {
    struct library_strategy *strategy; /* or: */
    struct library_replay *replay;
};

static void deviation_add(struct library_schedule *schedule, const struct library_world *world,
                          struct library_choice usual, struct library_choice instead) {
    if (schedule->count == LIBRARY_DEVIATIONS) return;
    schedule->deviations[schedule->count++] =
        (struct library_deviation){usual, library_steps_of(world, usual) + 1, instead};
}

static void steps_take(struct library_search *search, const struct library_chooser *chooser,
                       struct library_outcome *outcome) {
    struct library_world *world = search->world;
    struct library_choice choices[LIBRARY_CHOICES];
    for (int count;
         !world->reason[0] && world->steps < LIBRARY_STEPS_MOST && (count = library_choices(world, choices)) > 0;) {
        struct library_choice usual = library_usual(world, choices, count);
        struct library_choice choice = chooser->replay
                                           ? library_replay_choose(chooser->replay, world, choices, count)
                                           : library_strategy_choose(chooser->strategy, world, choices, count);
        if (!library_choice_same(choice, usual)) deviation_add(&search->schedule, world, usual, choice);
        if (choice.kind >= LIBRARY_FAULTS_FROM) outcome->faults |= (uint32_t)1 << choice.kind;
        if (!library_apply(world, choice)) return;
    }
}

static void library_outcome_judge(struct library_search *search, struct library_outcome *outcome) {
    struct library_world *world = search->world;
    outcome->digest = library_digest(world);
    outcome->broken_count =
        promises_judge(&world->offer.facts, world->events, world->event_count, outcome->broken, LIBRARY_BROKEN);
    for (int each = 0; each < outcome->broken_count; each++)
        outcome->promises |= (uint32_t)1 << outcome->broken[each].promise & search->settings->required;
}

/* search->schedule has the workload and no deviations. */
static struct library_outcome play(struct library_search *search, const struct library_chooser *chooser,
                                   uint64_t seed) {
    struct library_world *world = search->world;
    struct library_outcome outcome = {.played = false};
    if (search->in_session == 0) {
        library_session_end(world);
        search->tally.sessions++;
    }
    search->in_session++;
    if (library_begin(world, &search->schedule.workload, seed)) {
        steps_take(search, chooser, &outcome);
        outcome.fresh = library_end(world);
    }
    outcome.played = world->reason[0] == '\0';
    outcome.steps = world->steps;
    if (outcome.played) library_outcome_judge(search, &outcome);
    if (!outcome.fresh || !outcome.played) search->in_session = 0;
    return outcome;
}

struct library_outcome library_search_replay(struct library_search *search, const struct library_schedule *schedule,
                                             uint64_t seed, bool anew, bool *used) {
    struct library_replay replay = {.schedule = schedule};
    const struct library_chooser chooser = {.replay = &replay};
    if (anew) search->in_session = 0;
    search->schedule.workload = schedule->workload;
    search->schedule.count = 0;
    struct library_outcome outcome = play(search, &chooser, seed);
    if (used) memcpy(used, replay.used, sizeof replay.used);
    return outcome;
}

/* --- many --- */

static void library_group_add(struct library_tally *tally, const struct library_outcome *outcome, uint64_t number) {
    int each = 0;
    while (each < tally->group_count &&
           (tally->groups[each].promises != outcome->promises || tally->groups[each].faults != outcome->faults))
        each++;
    if (each == LIBRARY_GROUPS) return;
    if (each == tally->group_count)
        tally->groups[tally->group_count++] = (struct library_group){outcome->promises, outcome->faults, 0, number};
    tally->groups[each].schedules++;
    if (number < tally->groups[each].first) tally->groups[each].first = number;
}

static void library_tally_add(struct library_search *search, const struct library_outcome *outcome, uint64_t number) {
    struct library_tally *tally = &search->tally;
    uint32_t broken = 0;
    if (!outcome->played) {
        if (tally->unplayed++ == 0)
            snprintf(tally->unplayed_reason, sizeof tally->unplayed_reason, "%s", search->world->reason);
        return;
    }
    tally->schedules++;
    tally->steps += outcome->steps;
    tally->calls += (uint64_t)workload_calls(&search->schedule.workload);
    for (int each = 0; each < outcome->broken_count; each++) broken |= (uint32_t)1 << outcome->broken[each].promise;
    for (int promise = 0; promise < PROMISES; promise++) tally->broken[promise] += broken >> promise & 1;
    for (int kind = 0; kind < LIBRARY_CHOICE_KINDS; kind++) tally->faults[kind] += outcome->faults >> kind & 1;
    if (outcome->promises) library_group_add(tally, outcome, number);
}

static struct library_outcome draw_and_play(struct library_search *search, uint64_t number) {
    const struct library_search_settings *settings = search->settings;
    struct library_world *world = search->world;
    uint64_t seed = library_search_seed(settings->seed, number);
    struct library_strategy strategy;
    const struct library_chooser chooser = {.strategy = &strategy};
    workload_draw(&search->schedule.workload, &world->offer, world->settings.lease_ms, seed);
    search->schedule.count = 0;
    library_strategy_begin(&strategy, &settings->budget, world->settings.lease_ms, seed, number, &search->sorts,
                           search->aims);
    search->sorts.schedules++;
    return play(search, &chooser, seed);
}

static uint64_t library_session_take(struct library_search *search) {
    const struct library_search_settings *settings = search->settings;
    uint64_t taken = search->shared ? atomic_fetch_add(&search->shared->taken, 1) : search->taken++;
    return settings->first_session + taken * settings->stride;
}

/* The number of schedules before a session. */
static uint64_t library_session_begin(const struct library_search_settings *settings, uint64_t session) {
    uint64_t first = session < settings->short_sessions ? session : settings->short_sessions;
    return first * settings->short_session + (session - first) * settings->session;
}

static void events_keep(struct library_search *search) {
    const struct library_world *world = search->world;
    size_t size = world->event_count * sizeof *world->events;
    free(search->found_events);
    search->found_events = malloc(size);
    if (size && !search->found_events) abort();
    if (size) memcpy(search->found_events, world->events, size);
    search->found_event_count = world->event_count;
}

/* Whether new programs break one of the same promises in the schedule that was played last. The next schedule begins
 * with new ones again. */
static bool is_repeated(struct library_search *search, uint64_t seed) {
    uint32_t wanted = search->found_outcome.promises;
    struct library_outcome again = library_search_replay(search, &search->found, seed, true, NULL);
    search->in_session = 0;
    return again.played && again.promises & wanted;
}

static void unrepeated_add(struct library_tally *tally, const struct library_outcome *outcome, uint64_t number) {
    const char *sentence = "";
    for (int each = outcome->broken_count - 1; each >= 0; each--)
        if (outcome->promises >> outcome->broken[each].promise & 1) sentence = outcome->broken[each].sentence;
    if (tally->unrepeated++ == 0)
        snprintf(tally->unrepeated_reason, sizeof tally->unrepeated_reason, "schedule %llu: %s",
                 (unsigned long long)number, sentence);
}

/* Keeps the first schedule that breaks a required promise. What new programs do not show again breaks none: then only
 * that is counted. */
static void found_keep(struct library_search *search, struct library_outcome *outcome, uint64_t number) {
    bool first = search->found_outcome.promises == 0 || number < search->found_number;
    if (!outcome->promises || !first) return;
    search->found = search->schedule;
    search->found_outcome = *outcome;
    search->found_number = number;
    events_keep(search);
    if (!search->settings->keep_going && !is_repeated(search, library_search_seed(search->settings->seed, number))) {
        unrepeated_add(&search->tally, outcome, number);
        search->found_outcome = (struct library_outcome){.played = false};
        outcome->promises = 0;
        outcome->broken_count = 0;
        return;
    }
    if (!search->shared) return;
    uint64_t known = atomic_load(&search->shared->violated);
    while (number < known && !atomic_compare_exchange_weak(&search->shared->violated, &known, number)) continue;
}

static bool library_search_is_over(const struct library_search *search, uint64_t number) {
    bool found = search->found_outcome.promises || (search->shared && atomic_load(&search->shared->violated) < number);
    return (found && !search->settings->keep_going) ||
           (search->tally.schedules == 0 && search->tally.unplayed >= UNPLAYED_MOST);
}

bool library_search_run(struct library_search *search, void (*report)(const struct library_search *)) {
    const struct library_search_settings *settings = search->settings;
    int64_t began_ns = clock_real_mono_ns(), reported_ns = began_ns;
    int64_t until_ns = settings->seconds ? began_ns + settings->seconds * CLOCK_NS_PER_S : INT64_MAX;
    for (bool over = false; !over && clock_real_mono_ns() < until_ns;) {
        uint64_t session = library_session_take(search), number = library_session_begin(settings, session);
        uint64_t until = library_session_begin(settings, session + 1);
        search->in_session = 0;
        search->sorts = (struct message_sorts){.count = 0};
        search->aims = session >= settings->short_sessions;
        if (number >= settings->most) break;
        for (; number < until && number < settings->most && !over; number++) {
            struct library_outcome outcome = draw_and_play(search, number);
            found_keep(search, &outcome, number);
            library_tally_add(search, &outcome, number);
            if (search->digests) search->digests[number] = outcome.digest;
            over = library_search_is_over(search, number + 1) ||
                   (!settings->whole_sessions && clock_real_mono_ns() >= until_ns);
            if (clock_real_mono_ns() - reported_ns < REPORT_EVERY_NS) continue;
            reported_ns = clock_real_mono_ns();
            search->tally.commands = search->world->commands;
            report(search);
        }
    }
    search->tally.commands = search->world->commands;
    return search->found_outcome.promises != 0;
}

void library_search_close(struct library_search *search) {
    free(search->found_events);
    search->found_events = NULL;
}
