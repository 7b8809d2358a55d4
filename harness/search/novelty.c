#include "harness/search/novelty.h"

#include <stdlib.h>
#include <string.h>

#include "harness/scheduler/grown.h"

enum {
    CHANGE_STREAM = 2000, /* of random numbers */
    ROOM_FIRST = 1024,
    CANDIDATES = 4,   /* the rarest one is changed */
    CHANGES_MOST = 3, /* in one schedule */
    SHIFT_MOST = 4,   /* steps */
};

/* --- states --- */

static struct novelty_state *state_place(struct novelty_state *states, size_t room, uint64_t digest) {
    size_t at = digest & (room - 1);
    while (states[at].schedules && states[at].digest != digest) at = (at + 1) & (room - 1);
    return &states[at];
}

static void states_grow(struct novelty *novelty) {
    size_t room = novelty->state_room ? 2 * novelty->state_room : ROOM_FIRST;
    struct novelty_state *states = calloc(room, sizeof *states);
    if (!states) abort();
    for (size_t each = 0; each < novelty->state_room; each++)
        if (novelty->states[each].schedules)
            *state_place(states, room, novelty->states[each].digest) = novelty->states[each];
    free(novelty->states);
    novelty->states = states;
    novelty->state_room = room;
}

void novelty_reach(struct novelty *novelty, uint64_t state) {
    if (2 * novelty->state_count >= novelty->state_room) states_grow(novelty);
    struct novelty_state *known = state_place(novelty->states, novelty->state_room, state);
    bool is_new = known->schedules == 0;
    if (is_new) {
        novelty->state_count++;
        novelty->fresh_states[novelty->fresh_count++ % NOVELTY_STATES_KEPT] = state;
    }
    if (!is_new && known->last == novelty->run) return;
    *known = (struct novelty_state){state, known->schedules + 1, novelty->run};
}

/* In how many schedules the rarest of its states occurred. */
static uint64_t rarity(const struct novelty *novelty, const struct novelty_entry *entry) {
    uint64_t least = UINT64_MAX;
    for (int each = 0; each < entry->state_count; each++) {
        uint64_t schedules = state_place(novelty->states, novelty->state_room, entry->states[each])->schedules;
        least = schedules < least ? schedules : least;
    }
    return least;
}

/* --- a session --- */

void novelty_free(struct novelty *novelty) {
    for (size_t each = 0; each < novelty->count; each++) schedule_free(&novelty->entries[each].schedule);
    free(novelty->entries);
    free(novelty->states);
    *novelty = (struct novelty){.run = 0};
}

void novelty_schedule_begin(struct novelty *novelty) {
    novelty->run++;
    novelty->fresh_count = 0;
}

void novelty_schedule_end(struct novelty *novelty, const struct schedule *schedule, uint64_t origin) {
    if (novelty->fresh_count == 0) return;
    novelty->entries = grown(novelty->entries, novelty->count + 1, &novelty->room, sizeof *novelty->entries);
    struct novelty_entry *entry = &novelty->entries[novelty->count++];
    memset(&entry->schedule, 0, sizeof entry->schedule);
    memcpy(entry->states, novelty->fresh_states, sizeof entry->states);
    entry->picked = 0;
    entry->origin = origin;
    entry->state_count = novelty->fresh_count < NOVELTY_STATES_KEPT ? (int)novelty->fresh_count : NOVELTY_STATES_KEPT;
    schedule_copy(&entry->schedule, schedule);
}

/* Of a few that are drawn, the one with the rarest states, counting each change as one more schedule that was there. */
static struct novelty_entry *entry_pick(struct novelty *novelty, struct random *random) {
    struct novelty_entry *best = NULL;
    for (int each = 0; each < CANDIDATES; each++) {
        struct novelty_entry *drawn = &novelty->entries[random_below(random, novelty->count)];
        if (!best || rarity(novelty, drawn) + drawn->picked < rarity(novelty, best) + best->picked) best = drawn;
    }
    best->picked++;
    return best;
}

/* --- changes --- */

static struct deviation *deviation_draw(struct mutant *mutant) {
    struct schedule *schedule = &mutant->schedule;
    return schedule->count ? &schedule->deviations[random_below(&mutant->tail.random, schedule->count)] : NULL;
}

static void deviation_drop(struct mutant *mutant) {
    struct deviation *dropped = deviation_draw(mutant);
    if (dropped) *dropped = mutant->schedule.deviations[--mutant->schedule.count];
}

static void deviation_shift(struct mutant *mutant) {
    struct deviation *shifted = deviation_draw(mutant);
    if (!shifted) return;
    uint64_t by = 1 + random_below(&mutant->tail.random, SHIFT_MOST);
    bool back = random_below(&mutant->tail.random, 2) && shifted->step > by;
    shifted->step = back ? shifted->step - by : shifted->step + by;
}

/* A place in the course of any client. */
static struct deviation place_draw(struct mutant *mutant, const struct search_world *world, uint64_t horizon) {
    struct random *random = &mutant->tail.random;
    struct choice step = world->operations->step_draw(world, random, false);
    uint64_t steps = horizon / (uint64_t)mutant->schedule.workload.clients + 1;
    return (struct deviation){.usual = step, .step = 1 + random_below(random, steps)};
}

static void step_add(struct mutant *mutant, const struct search_world *world, uint64_t horizon) {
    struct deviation added = place_draw(mutant, world, horizon);
    added.instead = world->operations->step_draw(world, &mutant->tail.random, true);
    if (!choice_same(added.instead, added.usual)) schedule_add(&mutant->schedule, added);
}

static enum choice_kind kind_draw(struct mutant *mutant, const struct search_world *world) {
    enum choice_kind kinds[CHOICE_KINDS];
    uint64_t count = 0;
    for (int each = 0; each < world->space->fault_count; each++)
        if (mutant->budget->most[world->space->faults[each]]) kinds[count++] = world->space->faults[each];
    return count ? kinds[random_below(&mutant->tail.random, count)] : CHOICE_NONE;
}

static void fault_place(struct mutant *mutant, const struct search_world *world, enum choice_kind kind,
                        uint64_t horizon) {
    if (kind == CHOICE_NONE) return;
    struct deviation placed = place_draw(mutant, world, horizon);
    placed.instead = strategy_fault_draw(&mutant->tail, world, kind);
    schedule_add(&mutant->schedule, placed);
}

/* Puts a fault somewhere else, with a target and a duration that are drawn anew; without one, adds one of any kind.
 */
static void fault_move(struct mutant *mutant, const struct search_world *world, uint64_t horizon) {
    struct schedule *schedule = &mutant->schedule;
    enum choice_kind kind = kind_draw(mutant, world);
    uint64_t from = schedule->count ? random_below(&mutant->tail.random, schedule->count) : 0;
    for (size_t each = 0; each < schedule->count; each++) {
        struct deviation *moved = &schedule->deviations[(from + each) % schedule->count];
        if (!choice_is_fault(moved->instead.kind)) continue;
        kind = moved->instead.kind;
        *moved = schedule->deviations[--schedule->count];
        break;
    }
    fault_place(mutant, world, kind, horizon);
}

/* The beginning of the schedule, and the end of another one. */
static void splice(struct mutant *mutant, struct novelty *novelty) {
    struct schedule *schedule = &mutant->schedule;
    const struct schedule *other = &entry_pick(novelty, &mutant->tail.random)->schedule;
    schedule->count = random_below(&mutant->tail.random, schedule->count + 1);
    for (size_t each = random_below(&mutant->tail.random, other->count + 1); each < other->count; each++)
        if (other->deviations[each].instead.kind != CHOICE_QUIET) schedule_add(schedule, other->deviations[each]);
}

static void change(struct mutant *mutant, struct novelty *novelty, const struct search_world *world, uint64_t horizon) {
    switch (random_below(&mutant->tail.random, 8)) {
    case 0:
    case 1: mutant->cut = random_below(&mutant->tail.random, horizon); break;
    case 2: deviation_drop(mutant); break;
    case 3: deviation_shift(mutant); break;
    case 4: step_add(mutant, world, horizon); break;
    case 5: fault_move(mutant, world, horizon); break;
    case 6: fault_place(mutant, world, kind_draw(mutant, world), horizon); break;
    default: splice(mutant, novelty); break;
    }
}

void mutant_begin(struct mutant *mutant, struct novelty *novelty, const struct search_world *world, uint64_t seed,
                  const struct fault_budget *budget, uint64_t horizon) {
    memset(mutant, 0, sizeof *mutant);
    mutant->cut = UINT64_MAX;
    mutant->budget = budget;
    struct random random = random_split(seed, CHANGE_STREAM);
    enum strategy_kind kind = random_below(&random, 2) ? STRATEGY_PCT : STRATEGY_UNIFORM;
    strategy_begin(&mutant->tail, world, kind, FAULTS_DRAWN, random_next(&random), budget, horizon, NULL);
    const struct novelty_entry *parent = entry_pick(novelty, &mutant->tail.random);
    mutant->origin = parent->origin;
    workload_copy(&mutant->schedule.workload, &parent->schedule.workload);
    for (size_t each = 0; each < parent->schedule.count; each++)
        if (parent->schedule.deviations[each].instead.kind != CHOICE_QUIET)
            schedule_add(&mutant->schedule, parent->schedule.deviations[each]);
    uint64_t changes = 1 + random_below(&mutant->tail.random, CHANGES_MOST);
    for (; changes > 0; changes--) change(mutant, novelty, world, horizon);
    for (int each = 0; each < mutant->tail.fault_count; each++) /* those of the part that is not drawn */
        mutant->tail.faults[each].done = mutant->tail.faults[each].step < mutant->cut;
    replay_begin(&mutant->replay, &mutant->schedule);
}

/* --- while it runs --- */

static bool is_spent(const struct mutant *mutant, enum choice_kind kind) {
    const struct fault_budget *budget = mutant->budget;
    return mutant->faults[kind] >= budget->most[kind] || (budget->total && mutant->fault_count >= budget->total);
}

/* Whether no fault comes any more: one whose place was passed does not. */
static bool mutant_faults_over(const struct mutant *mutant, const struct search_world *world) {
    bool drawn = world->steps >= mutant->cut;
    for (size_t each = 0; each < mutant->schedule.count && !drawn; each++) {
        const struct deviation *deviation = &mutant->schedule.deviations[each];
        struct choice usual = deviation->usual;
        bool comes = !mutant->replay.used[each] && world->taken[usual.kind][usual.who] < deviation->step;
        if (comes && choice_is_fault(deviation->instead.kind) && !is_spent(mutant, deviation->instead.kind))
            return false;
    }
    for (int each = 0; each < mutant->tail.fault_count; each++) {
        const struct planned_fault *planned = &mutant->tail.faults[each];
        if (mutant->cut != UINT64_MAX && !planned->done && !is_spent(mutant, planned->kind)) return false;
    }
    return true;
}

struct choice mutant_choose(struct mutant *mutant, const struct search_world *world, const struct choice *choices,
                            int count, struct choice usual) {
    static const struct choice QUIET = {.kind = CHOICE_QUIET};
    if (world->ends_quiet && world->operations->allows(world, QUIET) && mutant_faults_over(mutant, world)) return QUIET;
    struct choice chosen = world->steps >= mutant->cut ? strategy_choose(&mutant->tail, world, choices, count)
                                                       : replay_choose(&mutant->replay, world, usual);
    if (!choice_is_fault(chosen.kind)) return chosen;
    bool spared = mutant->budget->spares_store && world->operations->strikes_resource(world, chosen);
    if (spared || is_spent(mutant, chosen.kind)) return usual;
    mutant->faults[chosen.kind]++;
    mutant->fault_count++;
    return chosen;
}

void mutant_free(struct mutant *mutant) {
    replay_free(&mutant->replay);
    schedule_free(&mutant->schedule);
}
