/* strategies: asks harness/search/strategy.h for many schedules of a small world that this program plays: every task
 * can always take a step, and every fault is allowed unless a case says otherwise.
 *
 * Prints one JSON line with what was chosen how often. Exit status: 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/search/strategy.h"
#include "tests/c/played_world.h"

enum { SEEDS = 4000, HORIZON = 40, TASKS = PLAYED_TASKS, LEASE_MS = PLAYED_LEASE_MS };
enum { EXHAUSTIVE_STEPS = 4, EXHAUSTIVE_CHOICES = 3 };

static uint64_t allowed_from;
static bool (*allows)(struct choice choice);

static bool strategies_allows(const struct search_world *world, struct choice choice) {
    (void)world;
    return played_world.steps >= allowed_from && (!allows || allows(choice));
}

/* Where each task is: the node that it talks to, or the resource; and the name of its situation. */
static struct {
    int node;
    uint64_t situation;
} tasks[TASKS];

static bool strategies_strikes_resource(const struct search_world *world, struct choice fault) {
    (void)world;
    return (int)fault.kind > CHOICE_LOSE_MESSAGE && tasks[fault.who].node == WORLD_RESOURCE;
}

static uint64_t strategies_situation(const struct search_world *world, struct choice step) {
    (void)world;
    return step.kind == CHOICE_TASK ? tasks[step.who].situation : 0;
}

static struct choice strategies_aimed(const struct search_world *world, struct choice fault, struct choice step) {
    (void)world;
    int node = tasks[step.who].node;
    if (choice_strikes(fault.kind, TARGET_CLIENT)) fault.who = step.who / TASKS_PER_CLIENT;
    else if (choice_strikes(fault.kind, TARGET_MESSAGE)) fault.who = step.who;
    else if (choice_strikes(fault.kind, TARGET_NODE) && node >= 0) fault.who = node;
    else if (choice_strikes(fault.kind, TARGET_REPLICA) && node >= 0)
        fault.who = replica_number(node, replica_server(fault.who));
    return fault;
}

static struct choice choices[TASKS];

static void world_reset(void) {
    played_operations.allows = strategies_allows;
    played_operations.strikes_resource = strategies_strikes_resource;
    played_operations.situation = strategies_situation;
    played_operations.aimed = strategies_aimed;
    played_world.steps = 0;
    played_world.current = 0;
    allowed_from = 0;
    allows = NULL;
    for (int task = 0; task < TASKS; task++) choices[task] = (struct choice){CHOICE_TASK, task, 0};
    for (int task = 0; task < TASKS; task++) tasks[task].node = 0;
}

static const char *separator = "{";

static void say(const char *name, const int64_t *counts, int count) {
    printf("%s\"%s\": [", separator, name);
    for (int each = 0; each < count; each++) printf("%s%" PRId64, each ? ", " : "", counts[each]);
    printf("]");
    separator = ", ";
}

/* --- the order of steps --- */

/* How often each task goes first, how many schedules have 0, 1, 2, 3 or more changes of task, and how many of these are
 * in each quarter of the horizon. */
static void say_pct(void) {
    int64_t first[TASKS] = {0}, changes[4] = {0}, moments[4] = {0}, back = 0;
    const struct fault_budget none = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct strategy strategy;
        int before = -1, changed = 0;
        bool demoted[TASKS] = {false};
        strategy_begin(&strategy, &played_world, STRATEGY_PCT, FAULTS_DRAWN, seed, &none, HORIZON, NULL);
        for (played_world.steps = 0; played_world.steps < HORIZON; played_world.steps++) {
            struct choice chosen = strategy_choose(&strategy, &played_world, choices, TASKS);
            if (before < 0) first[chosen.who]++;
            if (before >= 0 && chosen.who != before) {
                changed++;
                moments[played_world.steps * 4 / HORIZON]++;
                demoted[before] = true;
            }
            back += demoted[chosen.who];
            before = chosen.who;
        }
        changes[changed < 3 ? changed : 3]++;
    }
    say("pct_first", first, TASKS);
    say("pct_changes", changes, 4);
    say("pct_moments", moments, 4);
    say("pct_back", &back, 1);
}

static bool is_step_of_clock(void) {
    struct strategy strategy;
    const struct fault_budget none = {0};
    struct choice mixed[] = {{CHOICE_CLOCK, 0, 0}, {CHOICE_LATE, 0, 0}, {CHOICE_TASK, 5, 0}};
    strategy_begin(&strategy, &played_world, STRATEGY_PCT, FAULTS_DRAWN, 1, &none, HORIZON, NULL);
    return strategy_choose(&strategy, &played_world, mixed, 3).kind == CHOICE_TASK;
}

static void say_others(void) {
    int64_t uniform[TASKS] = {0}, usual[TASKS] = {0}, task_first = is_step_of_clock();
    const struct fault_budget none = {0};
    struct strategy strategy;
    strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, 1, &none, HORIZON, NULL);
    for (int each = 0; each < SEEDS; each++) uniform[strategy_choose(&strategy, &played_world, choices, TASKS).who]++;
    strategy_begin(&strategy, &played_world, STRATEGY_USUAL, FAULTS_DRAWN, 1, &none, HORIZON, NULL);
    played_world.current = 4;
    for (int each = 0; each < SEEDS; each++) usual[strategy_choose(&strategy, &played_world, choices, TASKS).who]++;
    say("uniform", uniform, TASKS);
    say("usual", usual, TASKS);
    say("task_first", &task_first, 1);
}

/* --- faults --- */

struct struck {
    int64_t per_schedule[STRATEGY_FAULTS + 1], whom[8], halves[7], backwards, quarters[4];
};

static void strike(struct struck *struck, struct choice fault) {
    struck->whom[fault.who < 7 ? fault.who : 7]++;
    int64_t amount = fault.amount < 0 ? -fault.amount : fault.amount;
    struck->halves[amount % (LEASE_MS / 2) == 0 && amount <= 3 * LEASE_MS ? amount / (LEASE_MS / 2) : 5]++;
    struck->backwards += fault.amount < 0;
    struck->quarters[played_world.steps * 4 / HORIZON]++;
}

static void say_faults(const char *name, enum choice_kind kind, int most) {
    struct struck struck = {0};
    struct fault_budget budget = {0};
    char words[64];
    budget.most[kind] = most;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct strategy strategy;
        int count = 0;
        strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, seed, &budget, HORIZON, NULL);
        for (played_world.steps = 0; played_world.steps < HORIZON; played_world.steps++) {
            struct choice chosen;
            while ((chosen = strategy_choose(&strategy, &played_world, choices, TASKS)).kind != CHOICE_TASK) {
                strike(&struck, chosen);
                count += chosen.kind == kind;
            }
        }
        struck.per_schedule[count]++;
    }
    const struct {
        const char *what;
        const int64_t *counts;
        int count;
    } rows[] = {{"per_schedule", struck.per_schedule, STRATEGY_FAULTS + 1},
                {"whom", struck.whom, 8},
                {"halves", struck.halves, 7},
                {"backwards", &struck.backwards, 1},
                {"quarters", struck.quarters, 4}};
    for (size_t each = 0; each < sizeof rows / sizeof rows[0]; each++) {
        snprintf(words, sizeof words, "%s_%s", name, rows[each].what);
        say(words, rows[each].counts, rows[each].count);
    }
}

/* At most two of three kinds in all: how many schedules have 0, 1, 2 or more faults, how often each kind strikes, and
 * how often a message of the two tasks that talk to the resource is struck. */
static void say_few(void) {
    const struct fault_budget budget = {
        .most = {[CHOICE_CRASH] = 1, [CHOICE_PAUSE] = 1, [CHOICE_DROP_REQUEST] = 1}, .total = 2, .spares_store = true};
    int64_t per_schedule[4] = {0}, kinds[3] = {0}, spared = 0;
    tasks[0].node = tasks[3].node = WORLD_RESOURCE;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct strategy strategy;
        int count = 0;
        strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, seed, &budget, HORIZON, NULL);
        for (played_world.steps = 0; played_world.steps < 2 * HORIZON; played_world.steps++) {
            struct choice chosen;
            while ((chosen = strategy_choose(&strategy, &played_world, choices, TASKS)).kind != CHOICE_TASK) {
                count++;
                kinds[chosen.kind == CHOICE_CRASH ? 0 : chosen.kind == CHOICE_PAUSE ? 1 : 2]++;
                spared += chosen.kind == CHOICE_DROP_REQUEST && (chosen.who == 0 || chosen.who == 3);
            }
        }
        per_schedule[count < 3 ? count : 3]++;
    }
    say("few_per_schedule", per_schedule, 4);
    say("few_kinds", kinds, 3);
    say("few_on_store", &spared, 1);
    world_reset();
}

/* A fault that is not allowed before a step strikes then, and once; QUIET comes after it. */
static void say_late(void) {
    struct strategy strategy;
    struct fault_budget budget = {.most = {[CHOICE_CRASH] = 1}};
    int64_t struck[2] = {-1, 0}, quiet = -1, seed = 0;
    do {
        strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, (uint64_t)seed++, &budget, HORIZON / 4,
                       NULL);
    } while (strategy.fault_count == 0);
    strategy.ends_quiet = true;
    allowed_from = HORIZON / 2;
    for (played_world.steps = 0; played_world.steps < HORIZON; played_world.steps++) {
        struct choice chosen = strategy_choose(&strategy, &played_world, choices, TASKS);
        if (chosen.kind == CHOICE_CRASH && struck[1]++ == 0) struck[0] = (int64_t)played_world.steps;
        if (chosen.kind == CHOICE_QUIET && quiet < 0) quiet = (int64_t)played_world.steps;
    }
    say("late_struck", struck, 2);
    say("late_quiet", &quiet, 1);
    world_reset();
}

/* --- aimed faults --- */

/* Of the six tasks, that of number 5 is in a situation of its own, which comes once in each course that is noted, and
 * that of number 4 in one which comes in the second course only, three times. Number 0 sends to a node and number 2 to
 * the resource; 1 and 3 do not send, so whom they sent to before makes no difference. Number 5 talks to node 1. */
static struct situations situations_of_two(bool spares_store) {
    struct situations situations = {.spares_store = spares_store};
    static const int order[] = {0, 1, 2, 3, 5};
    for (int task = 0; task < TASKS; task++) {
        bool sends = task == 0 || task == 2;
        uint64_t checkpoint = task == 5 ? 2 : task == 4 ? 3 : 1;
        tasks[task].node = task == 2 || task == 3 ? WORLD_RESOURCE : task == 5;
        tasks[task].situation = checkpoint << 8 | (uint64_t)sends << 4 | (uint64_t)(sends && task == 2) << 1 |
                                (uint64_t)(task % TASKS_PER_CLIENT);
    }
    for (int course = 0; course < 2; course++) {
        situations_begin(&situations);
        for (int step = 0; step < HORIZON; step++) {
            int who = step == HORIZON / 2 ? 5 : order[step % 4];
            if (course == 1 && step % (HORIZON / 3) == 1) who = 4;
            situations_note(&situations, &played_world, (struct choice){CHOICE_TASK, who, 0});
        }
    }
    return situations;
}

/* Whom a fault strikes that is aimed, before which of its task's steps, and how many schedules it strikes; the workers
 * are the tasks 0, 2 and 4. */
static void say_aimed(const char *name, enum choice_kind kind, bool spares_store) {
    struct fault_budget budget = {.spares_store = spares_store};
    const struct situations situations = situations_of_two(spares_store);
    int64_t whom[TASKS] = {0}, before[4] = {0}, strikes = 0, quiet = 0, late = 0;
    char words[64];
    budget.most[kind] = 1;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct strategy strategy;
        int64_t steps[TASKS] = {0};
        bool struck = false;
        strategy_begin(&strategy, &played_world, STRATEGY_UNIFORM, FAULTS_DRAWN, seed, &budget, HORIZON, &situations);
        strategy.ends_quiet = true;
        for (played_world.steps = 0; played_world.steps < 4 * HORIZON; played_world.steps++) {
            struct choice chosen = strategy_choose(&strategy, &played_world, choices, TASKS);
            if (chosen.kind == CHOICE_QUIET) {
                quiet++;
                break;
            }
            if (chosen.kind == CHOICE_TASK) {
                steps[chosen.who]++;
                continue;
            }
            late += played_world.steps > 2 * HORIZON;
            struck = true;
            whom[choice_strikes(kind, TARGET_REPLICA) ? replica_node(chosen.who) : chosen.who]++;
            if (chosen.who == 4 && kind == CHOICE_DROP_REQUEST) before[steps[4] < 3 ? steps[4] : 3]++;
        }
        strikes += struck;
    }
    const int64_t ends[] = {strikes, quiet, late};
    snprintf(words, sizeof words, "%s_whom", name);
    say(words, whom, TASKS);
    snprintf(words, sizeof words, "%s_before", name);
    say(words, before, 4);
    snprintf(words, sizeof words, "%s_ends", name);
    say(words, ends, 3);
}

static bool is_of_waiters(struct choice choice) {
    return choice.kind == CHOICE_QUIET || choice.who < 4;
}

static bool is_replica(struct choice choice) {
    if (choice.kind == CHOICE_QUIET) return true;
    return choice.who >= 0 && replica_node(choice.who) < PLAYED_NODES && replica_server(choice.who) <= PLAYED_REPLICAS;
}

static void say_aims(void) {
    say_aimed("aimed_message", CHOICE_DROP_REQUEST, false);
    say_aimed("aimed_client", CHOICE_PAUSE, false);
    say_aimed("aimed_spared", CHOICE_DROP_REQUEST, true);
    allows = is_of_waiters;
    say_aimed("aimed_fitting", CHOICE_DROP_REQUEST, false);
    allows = is_replica;
    say_aimed("aimed_replica", CHOICE_FAILOVER, false);
    world_reset();
}

/* --- all schedules --- */

static uint64_t hashed(const struct choice *taken) {
    uint64_t hash = 0;
    for (int step = 0; step < EXHAUSTIVE_STEPS; step++)
        hash = hash * 1000 + (uint64_t)taken[step].kind * 10 + (uint64_t)taken[step].who;
    return hash;
}

static int compare(const void *one, const void *other) {
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return (left > right) - (left < right);
}

/* The number of schedules of four steps with three choices each, how many of them differ, the most faults in one, and
 * the number of durations that are not three leases. */
static void say_all(const char *name, int bound, struct fault_budget budget) {
    struct exhaustive exhaustive = {.bound = bound, .budget = &budget};
    static uint64_t seen[10000];
    int64_t counts[4] = {0};
    do {
        struct choice taken[EXHAUSTIVE_STEPS];
        int64_t faults = 0;
        exhaustive_begin(&exhaustive);
        for (played_world.steps = 0; played_world.steps < EXHAUSTIVE_STEPS; played_world.steps++) {
            struct choice chosen = exhaustive_choose(&exhaustive, &played_world, choices, EXHAUSTIVE_CHOICES);
            taken[played_world.steps] = chosen;
            faults += (int)chosen.kind >= CHOICE_FAULTS_FROM;
            counts[3] += chosen.amount != (choice_has_amount(chosen.kind) ? 3 * LEASE_MS : 0);
        }
        if (faults > counts[2]) counts[2] = faults;
        seen[counts[0]++] = hashed(taken);
    } while (exhaustive_next(&exhaustive) && counts[0] < 10000);
    qsort(seen, (size_t)counts[0], sizeof seen[0], compare);
    for (int64_t each = 0; each < counts[0]; each++) counts[1] += each == 0 || seen[each] != seen[each - 1];
    exhaustive_free(&exhaustive);
    say(name, counts, 4);
}

/* --- replay --- */

static bool no_crash(struct choice choice) {
    return choice.kind != CHOICE_CRASH;
}

/* What is chosen at each of five steps where the usual choice is task 1. */
static void say_replay(void) {
    const struct choice usual = {CHOICE_TASK, 1, 0};
    struct deviation deviations[] = {{usual, 2, {CHOICE_PAUSE, 0, 500}},
                                     {usual, 3, {CHOICE_CRASH, 0, 0}},
                                     {usual, 3, {CHOICE_TASK, 2, 0}},
                                     {usual, 4, {CHOICE_TASK, 3, 0}},
                                     {{CHOICE_TASK, 0, 0}, 4, {CHOICE_TASK, 5, 0}}};
    struct schedule schedule = {.deviations = deviations, .count = 5, .room = 5};
    struct replay replay;
    int64_t kinds[10], whom[10];
    allows = no_crash;
    replay_begin(&replay, &schedule);
    for (int each = 0; each < 10; each++) {
        played_world.taken[CHOICE_TASK][usual.who] =
            (uint64_t)each / 2; /* each step is asked for twice: a deviation is used once */
        struct choice chosen = replay_choose(&replay, &played_world, usual);
        kinds[each] = chosen.kind == CHOICE_TASK ? 0 : chosen.kind == CHOICE_PAUSE ? 1 : 2;
        whom[each] = chosen.who;
    }
    replay_free(&replay);
    say("replay_kinds", kinds, 10);
    say("replay_whom", whom, 10);
    world_reset();
}

int main(void) {
    world_reset();
    say_pct();
    say_others();
    world_reset();
    say_faults("pause", CHOICE_PAUSE, 1);
    say_faults("restart", CHOICE_RESTART, 3);
    say_faults("failover", CHOICE_FAILOVER, 1);
    say_faults("clock", CHOICE_CLIENT_CLOCK_JUMP, 1);
    say_faults("reply", CHOICE_LOSE_REPLY, 1);
    say_faults("many", CHOICE_DROP_REQUEST, 40);
    say_few();
    say_late();
    say_aims();
    say_all("none", 0, (struct fault_budget){0});
    say_all("one", 1, (struct fault_budget){0});
    say_all("two", 2, (struct fault_budget){0});
    say_all("faults", 2, (struct fault_budget){.most = {[CHOICE_PAUSE] = 1}});
    say_all("failovers", 1, (struct fault_budget){.most = {[CHOICE_FAILOVER] = 1}});
    say_all("more_faults", 2, (struct fault_budget){.most = {[CHOICE_CRASH] = 2}});
    say_replay();
    printf("}\n");
    return 0;
}
