#include "harness/simulation/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkers/engine/judge.h"
#include "harness/search/mix.h"
#include "harness/search/search.h"

enum { USUAL_COURSES = 8 }; /* whose situations are noted, where clients do not do the same in each */

_Static_assert((int)CHECKERS_MOST <= (int)SEARCH_PROPERTIES, "each checker is a property");
_Static_assert((int)WORLD_CHECKPOINTS < (int)SEARCH_PLACES, "each checkpoint is a place, and the beginning is one");
_Static_assert((int)WORLD_CHOICES <= (int)SEARCH_CHOICES, "all steps fit into a search's list");
_Static_assert((int)WORLD_TASKS <= (int)SEARCH_TARGETS && (int)WORLD_REPLICAS * WORLD_NODES <= (int)SEARCH_TARGETS,
               "all targets of a fault fit into a search's list");

/* Uniform and PCT in turn, and of each in turn without and with aimed faults. */
static const struct portfolio_turn PORTFOLIO[] = {{STRATEGY_UNIFORM, FAULTS_DRAWN, false},
                                                  {STRATEGY_PCT, FAULTS_DRAWN, false},
                                                  {STRATEGY_UNIFORM, FAULTS_DRAWN, true},
                                                  {STRATEGY_PCT, FAULTS_DRAWN, true}};

/* --- a schedule --- */

static void simulated_workload_draw(struct search_world *search, struct workload *workload, uint64_t seed) {
    (void)seed; /* each client draws what it does by itself (client_course.h) */
    workload->clients = world_of(search)->settings.clients;
}

static bool simulated_begin(struct search_world *search, const struct workload *workload, uint64_t seed,
                            uint64_t number) {
    bool opened = world_begin((struct world *)search, workload->clients, seed, number);
    if (!opened)
        snprintf(search->reason, sizeof search->reason, "the lock could not be opened in schedule %llu",
                 (unsigned long long)number + 1);
    return opened;
}

static bool simulated_strikes_resource(const struct search_world *search, struct choice fault) {
    return (int)fault.kind > CHOICE_LOSE_MESSAGE &&
           world_task_const(world_of(search), fault.who)->command.node == WORLD_RESOURCE;
}

/* --- its verdicts --- */

static const char *checker_property(int checker) {
    return CHECKER_TABLE[checker]->property;
}

static uint64_t mixed_in(uint64_t digest, const struct history_record *record) {
    uint64_t words[sizeof *record / sizeof digest];
    memcpy(words, record, sizeof words);
    for (size_t each = 0; each < sizeof words / sizeof words[0]; each++) digest = mix(digest, words[each]);
    return digest;
}

/* The digest of a history without the records that all schedules share and without the schedule's number. */
static uint64_t history_digest(struct history_reader *reader, uint64_t prefix) {
    const struct history_record *records;
    uint64_t digest = 0x9e3779b97f4a7c15u, index = 0;
    history_reader_rewind(reader);
    for (uint64_t count; (count = history_reader_batch(reader, &records)) > 0;)
        for (uint64_t each = 0; each < count; each++, index++)
            if (index > prefix) digest = mixed_in(digest, &records[each]);
    return digest;
}

/* An order of grants is promised only to clients whose requests arrive in theirs. */
static bool checker_is_judged(const struct world *world, int checker) {
    return world->settings.in_order || strcmp(CHECKER_TABLE[checker]->property, "fairness") != 0;
}

static void simulated_end(struct search_world *search, const struct search_settings *settings,
                          struct search_outcome *outcome) {
    struct world *world = (struct world *)search;
    struct judgement judgement;
    world_end(world);
    outcome->fresh = true;
    outcome->digest = history_digest(world->reader, world->prefix);
    bool whole = judge(&judgement, world->reader, (struct check_reading){0});
    if (!whole) abort(); /* this process alone writes the history */
    for (int each = 0; each < judgement.checkers; each++) {
        const struct verdict *verdict = &judgement.at_work[each].verdict;
        bool advisory = CHECKER_TABLE[each]->advisory;
        outcome->status[each] = verdict->status;
        outcome->sorts[each] = 0;
        for (int sort = 0; sort < VERDICT_PARTS; sort++)
            outcome->sorts[each] |= (uint32_t)(verdict->sorts[sort] > 0) << sort;
        bool counts = advisory || verdict->status != VERDICT_INCONCLUSIVE;
        outcome->applies[each] = verdict->applies || (counts && settings->required[each]);
        bool is_asked = outcome->applies[each] || (advisory && checker_is_judged(world, each));
        outcome->shown[each] = is_asked && verdict->status == VERDICT_VIOLATED;
    }
    snprintf(outcome->inapplicable_reason, sizeof outcome->inapplicable_reason, "%s", judgement.inapplicable_reason);
    judge_close(&judgement);
}

/* --- for strategies --- */

static int replica_at(const struct world *world, int place) {
    int nodes = world->settings.nodes;
    return replica_number(place % nodes, place / nodes + 1);
}

static int target_count(const struct world *world, enum choice_kind kind) {
    if (choice_strikes(kind, TARGET_NODE)) return world->settings.nodes;
    if (choice_strikes(kind, TARGET_REPLICA)) return world->settings.nodes * world->settings.replicas;
    return choice_strikes(kind, TARGET_CLIENT) ? world->client_count : TASKS_PER_CLIENT * world->client_count;
}

static int simulated_target_draw(const struct search_world *search, enum choice_kind kind, struct random *random) {
    const struct world *world = world_of(search);
    bool of_task = choice_strikes(kind, TARGET_MESSAGE);
    int targets = of_task ? world->client_count : target_count(world, kind);
    int place = targets > 0 ? (int)random_below(random, (uint64_t)targets) : 0;
    if (of_task) return place * TASKS_PER_CLIENT + (random_below(random, 4) == 0);
    return choice_strikes(kind, TARGET_REPLICA) ? replica_at(world, place) : place;
}

static int simulated_targets(const struct search_world *search, enum choice_kind kind, int *targets) {
    const struct world *world = world_of(search);
    int count = target_count(world, kind);
    for (int place = 0; place < count; place++)
        targets[place] = choice_strikes(kind, TARGET_REPLICA) ? replica_at(world, place) : place;
    return count;
}

static struct choice simulated_step_draw(const struct search_world *search, struct random *random, bool main) {
    int client = (int)random_below(random, (uint64_t)world_of(search)->settings.clients);
    bool watchdog = !main && random_below(random, 8) == 0;
    return (struct choice){CHOICE_TASK, client * TASKS_PER_CLIENT + watchdog, 0};
}

static uint64_t simulated_situation(const struct search_world *search, struct choice step) {
    const struct world *world = world_of(search);
    if (step.kind != CHOICE_TASK) return 0;
    const struct explored_task *task = world_task_const(world, step.who);
    bool to_resource = task->state == EXPLORED_TASK_SENDING && task->command.node == WORLD_RESOURCE;
    uint64_t name = mix(0, (uint64_t)task->state << 8 | (uint64_t)(step.who % TASKS_PER_CLIENT) << 4 | to_resource);
    name = mix_name(name, world->checkpoints[task->checkpoint]);
    return name ? name : 1;
}

static struct choice simulated_aimed(const struct search_world *search, struct choice fault, struct choice step) {
    int task = step.who, node = world_task_const(world_of(search), task)->command.node;
    if (choice_strikes(fault.kind, TARGET_CLIENT)) fault.who = task / TASKS_PER_CLIENT;
    else if (choice_strikes(fault.kind, TARGET_MESSAGE)) fault.who = task;
    else if (choice_strikes(fault.kind, TARGET_NODE) && node >= 0) fault.who = node;
    else if (choice_strikes(fault.kind, TARGET_REPLICA) && node >= 0)
        fault.who = replica_number(node, replica_server(fault.who));
    return fault;
}

/* --- for results --- */

/* The checkpoint behind which a fault strikes. */
static int simulated_place(const struct search_world *search, struct choice choice) {
    const struct world *world = world_of(search);
    int task = choice.who;
    if (choice_strikes(choice.kind, TARGET_CLIENT)) task *= TASKS_PER_CLIENT;
    /* A fault of a server strikes no task: the one that took the last step stands for it. */
    if (choice_strikes(choice.kind, TARGET_NODE) || choice_strikes(choice.kind, TARGET_REPLICA)) task = search->current;
    return task < 0 ? 0 : world_task_const(world, task)->checkpoint;
}

static const char *simulated_place_name(const struct search_world *search, int place) {
    const struct world *world = world_of(search);
    if (place > world->checkpoint_count) return NULL;
    return place ? world->checkpoints[place] : "start";
}

static uint64_t simulated_commands(const struct search_world *search) {
    const struct world *world = world_of(search);
    uint64_t commands = 0;
    for (int node = 0; node < world->settings.nodes; node++)
        for (int server = 0; server < WORLD_SERVERS; server++) commands += world->nodes[node].servers[server].commands;
    return commands;
}

/* Nothing outlives a schedule, and one that is replayed says the same again. */
static void simulated_keep_nothing(struct search_world *search) {
    (void)search;
}

static void simulated_watch(struct search_world *search, const struct schedule *played) {
    struct world *world = (struct world *)search;
    world->heard = commands_json_new(played);
}

static void simulated_introduce(const struct search_world *search, json_t *result) {
    (void)search, (void)result; /* the caller has named the lock */
}

static void simulated_describe(const struct search_world *search, bool kept, json_t *result) {
    const struct world *world = world_of(search);
    if (kept || !world->heard) return;
    json_object_set_new(result, "commands", json_deep_copy(world->heard->list)); /* more schedules may follow */
    json_object_set_new(result, "strikes", json_deep_copy(world->heard->strikes));
    json_object_set_new(result, "deviations", json_deep_copy(world->heard->orders));
}

static const struct search_world_operations OPERATIONS = {
    .workload_draw = simulated_workload_draw,
    .begin = simulated_begin,
    .choices = world_choices,
    .allows = world_allows,
    .strikes_resource = simulated_strikes_resource,
    .apply = world_apply,
    .end = simulated_end,
    .target_draw = simulated_target_draw,
    .targets = simulated_targets,
    .step_draw = simulated_step_draw,
    .situation = simulated_situation,
    .aimed = simulated_aimed,
    .state = world_state,
    .place = simulated_place,
    .place_name = simulated_place_name,
    .commands = simulated_commands,
    .session_end = simulated_keep_nothing,
    .watch = simulated_watch,
    .keep = simulated_keep_nothing,
    .introduce = simulated_introduce,
    .describe = simulated_describe,
};

/* --- from its opening to its closing --- */

void world_search_make(struct world *world, const struct world_settings *settings) {
    int checkers = 0;
    while (CHECKER_TABLE[checkers]) checkers++;
    world->search = (struct search_world){.operations = &OPERATIONS,
                                          .space = &SIMULATED_CHOICES,
                                          .property_count = checkers,
                                          .property_name = checker_property,
                                          .steps_most = WORLD_STEPS_MOST,
                                          .lease_ms = settings->lease_ms,
                                          .portfolio = PORTFOLIO,
                                          .portfolio_turns = sizeof PORTFOLIO / sizeof PORTFOLIO[0],
                                          .deviates_of = 1,
                                          .usual_courses = settings->varied ? USUAL_COURSES : 1,
                                          .rehearses = settings->bound_ms > 0, /* client_traces.h */
                                          .ends_quiet = settings->bound_ms > 0};
}
