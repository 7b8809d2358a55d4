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
#include "tests/c/played_world.h"

enum { SESSIONS = 200, ORDER = 5, TASKS = PLAYED_TASKS };

static const int SECRET[ORDER] = {4, 1, 3, 0, 2};

static bool novelty_allows(const struct search_world *world, struct choice choice) {
    (void)world;
    return choice.kind == CHOICE_TASK; /* no fault strikes */
}

static struct choice choices[TASKS];
static uint64_t sum;

/* Plays one schedule. Returns how far it followed the secret order. */
static int play(struct novelty *novelty, struct schedule *schedule, struct strategy *strategy, struct mutant *mutant) {
    int followed = 0;
    memset(played_world.taken, 0, sizeof played_world.taken);
    played_world.current = 0;
    schedule->count = 0;
    for (played_world.steps = 0; played_world.steps < ORDER; played_world.steps++) {
        struct choice usual = search_usual(&played_world, choices, TASKS);
        struct choice chosen = mutant ? mutant_choose(mutant, &played_world, choices, TASKS, usual)
                                      : strategy_choose(strategy, &played_world, choices, TASKS);
        if (!choice_same(chosen, usual))
            schedule_add(schedule, (struct deviation){usual, played_world.taken[CHOICE_TASK][usual.who] + 1, chosen});
        if (followed == (int)played_world.steps && chosen.who == SECRET[followed]) followed++;
        sum = sum * 31 + (uint64_t)chosen.who;
        played_world.taken[CHOICE_TASK][chosen.who]++;
        played_world.current = chosen.who;
        novelty_reach(novelty, (uint64_t)followed);
    }
    return followed;
}

static bool session_finds(uint64_t session, bool learns) {
    struct novelty novelty = {0};
    struct schedule schedule = {.workload.clients = PLAYED_CLIENTS};
    const struct fault_budget nothing = {.total = 0};
    bool found = false;
    for (uint64_t each = 0; each < NOVELTY_SESSION; each++) {
        struct strategy strategy;
        struct mutant mutant;
        uint64_t seed = session * NOVELTY_SESSION + each;
        bool changes = learns && each % 2 && novelty.count > 0;
        novelty_schedule_begin(&novelty);
        if (changes) mutant_begin(&mutant, &novelty, &played_world, seed, &nothing, ORDER);
        else strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, seed, &nothing, ORDER, NULL);
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
    played_operations.allows = novelty_allows;
    for (int task = 0; task < TASKS; task++) choices[task] = (struct choice){CHOICE_TASK, task, 0};
    int drawn = sessions_that_find(false), learned = sessions_that_find(true);
    uint64_t first = sum;
    int again = sessions_that_find(true);
    printf("{\"sessions\": %d, \"drawn\": %d, \"learned\": %d, \"again\": %d, \"sums\": [%" PRIu64 ", %" PRIu64 "]}\n",
           SESSIONS, drawn, learned, again, first, sum);
    return 0;
}
