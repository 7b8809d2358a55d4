/* novelty: plays harness/search/novelty.h in a small world that this program plays. Six tasks can always take a step;
 * a schedule has as many steps as a secret order of tasks, and its state is how far it has followed that order. A
 * schedule that guesses finds the whole order once in 6^5.
 *
 * Prints one JSON line: in how many of SESSIONS sessions the whole order was found, by sessions that learn and by as
 * many drawn schedules; and the sum of the changed schedules' choices, twice, to compare. Exit status: 0. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness/search/novelty.h"
#include "harness/simulation/world_choices.h"

enum { SESSIONS = 200, ORDER = 5, CLIENTS = 3, TASKS = TASKS_PER_CLIENT * CLIENTS };

static const int SECRET[ORDER] = {4, 1, 3, 0, 2};
static struct world world; /* only its settings, clients and steps are used */
static uint64_t steps_of[TASKS];

bool world_allows(const struct world *asked, struct choice choice) {
    return asked == &world && choice.kind == CHOICE_TASK;
}

struct choice world_usual_choice(const struct world *asked, const struct choice *choices, int count) {
    return choices[asked->current < count ? asked->current : 0];
}

uint64_t world_steps_of(const struct world *asked, struct choice choice) {
    return asked == &world ? steps_of[choice.who] : 0;
}

const struct explored_task *world_task_const(const struct world *asked, int number) {
    (void)asked, (void)number;
    return NULL; /* no fault strikes */
}

static struct choice choices[TASKS];
static uint64_t sum;

/* Plays one schedule. Returns how far it followed the secret order. */
static int play(struct novelty *novelty, struct schedule *schedule, struct strategy *strategy, struct mutant *mutant) {
    int followed = 0;
    memset(steps_of, 0, sizeof steps_of);
    world.current = 0;
    schedule->count = 0;
    for (world.steps = 0; world.steps < ORDER; world.steps++) {
        struct choice usual = world_usual_choice(&world, choices, TASKS);
        struct choice chosen = mutant ? mutant_choose(mutant, &world, choices, TASKS, usual)
                                      : strategy_choose(strategy, &world, choices, TASKS);
        if (!choice_same(chosen, usual))
            schedule_add(schedule, (struct deviation){usual, steps_of[usual.who] + 1, chosen});
        if (followed == (int)world.steps && chosen.who == SECRET[followed]) followed++;
        sum = sum * 31 + (uint64_t)chosen.who;
        steps_of[chosen.who]++;
        world.current = chosen.who;
        novelty_reach(novelty, (uint64_t)followed);
    }
    return followed;
}

static bool session_finds(uint64_t session, bool learns) {
    struct novelty novelty = {0};
    struct schedule schedule = {0};
    const struct fault_budget nothing = {.total = 0};
    bool found = false;
    for (uint64_t each = 0; each < NOVELTY_SESSION; each++) {
        struct strategy strategy;
        struct mutant mutant;
        uint64_t seed = session * NOVELTY_SESSION + each;
        bool changes = learns && each % 2 && novelty.count > 0;
        novelty_schedule_begin(&novelty);
        if (changes) mutant_begin(&mutant, &novelty, &world, seed, &nothing, ORDER);
        else strategy_begin(&strategy, STRATEGY_UNIFORM, seed, &nothing, 1000, ORDER, NULL);
        found |= play(&novelty, &schedule, &strategy, changes ? &mutant : NULL) == ORDER;
        novelty_schedule_end(&novelty, &schedule, seed);
        if (changes) mutant_free(&mutant);
    }
    schedule_free(&schedule);
    novelty_free(&novelty);
    return found;
}

static int sessions_that_find(bool learns) {
    int found = 0;
    sum = 0;
    for (uint64_t session = 0; session < SESSIONS; session++) found += session_finds(session, learns);
    return found;
}

int main(void) {
    world.settings.clients = world.client_count = CLIENTS;
    for (int task = 0; task < TASKS; task++) choices[task] = (struct choice){CHOICE_TASK, task, 0};
    int drawn = sessions_that_find(false), learned = sessions_that_find(true);
    uint64_t first = sum;
    int again = sessions_that_find(true);
    printf("{\"sessions\": %d, \"drawn\": %d, \"learned\": %d, \"again\": %d, \"sums\": [%" PRIu64 ", %" PRIu64 "]}\n",
           SESSIONS, drawn, learned, again, first, sum);
    return 0;
}
