/* What a search needs of the world whose schedules it runs: the simulation of C locks (harness/simulation), or hosted
 * programs (harness/library). A search knows no more of either, so what it can do it can do with both. */
#pragma once

#include <jansson.h>

#include "checkers/engine/checker.h"
#include "harness/scheduler/random.h"
#include "harness/search/schedule.h"

enum { SEARCH_PROPERTIES = 24, SEARCH_PLACES = 33, SEARCH_CHOICES = 544, SEARCH_TARGETS = 256, SEARCH_REASON = 256 };
enum { EXCHANGE_AIMS = 32 };

struct search_settings;
struct search_world;

/* What one schedule came to. */
struct search_outcome {
    bool played;    /* to its end; false: the world's reason says why not */
    bool fresh;     /* the world's programs, if it has any, can be used again */
    bool cut_short; /* it took as many steps as a schedule may */
    uint64_t steps;
    uint32_t faults; /* that struck: bit n for enum choice_kind n */
    int strikes;     /* of faults */
    uint64_t digest; /* of its history: equal for equal histories of two schedules */
    bool violates;   /* a required property */
    /* By property: */
    bool broken[SEARCH_PROPERTIES]; /* a required one is violated */
    bool shown[SEARCH_PROPERTIES];  /* it is violated; of a required property only the required sorts count */
    enum verdict_status status[SEARCH_PROPERTIES];
    uint32_t sorts[SEARCH_PROPERTIES]; /* bit n: a violation of sort n */
    bool applies[SEARCH_PROPERTIES];
    char inapplicable_reason[SEARCH_REASON]; /* why no property can be said to hold; empty: nothing is in the way */
    char sentence[SEARCH_REASON];            /* about the first required property that is violated; may be empty */
};

/* Whether the schedules of a turn have faults: as many as are drawn, which may be none; none; at least one; or one of
 * the rare kinds. Without rare kinds, FAULTS_RARE is FAULTS_SOME. */
enum fault_plan { FAULTS_DRAWN, FAULTS_NONE, FAULTS_SOME, FAULTS_RARE };
enum strategy_kind {
    STRATEGY_UNIFORM,
    STRATEGY_PCT,
    STRATEGY_USUAL,
    STRATEGY_EXHAUSTIVE,
    STRATEGY_NOVELTY,  /* novelty.h */
    STRATEGY_EXCHANGE, /* the usual course, but for one moment in which somebody else goes first */
    STRATEGIES         /* the world's portfolio */
};
struct portfolio_turn {
    enum strategy_kind kind;
    enum fault_plan plan;
    bool aims; /* faults are aimed at situations */
};

/* No slot is NULL. `world`: the one that has these operations. */
struct search_world_operations {
    /* Draws what the clients of a schedule do, from the seed of its random numbers. */
    void (*workload_draw)(struct search_world *world, struct workload *workload, uint64_t seed);
    /* Begins a schedule: everything is as new, and no step was taken. `number`: of the schedule. False: with the
     * world's reason. */
    bool (*begin)(struct search_world *world, const struct workload *workload, uint64_t seed, uint64_t number);
    /* Writes the steps that can be taken now, at most SEARCH_CHOICES; returns their number, 0 at the end. */
    int (*choices)(struct search_world *world, struct choice *choices);
    /* Whether a choice - a step or a fault - can be made now. */
    bool (*allows)(const struct search_world *world, struct choice choice);
    /* Whether a fault that is allowed strikes a command to the protected resource. */
    bool (*strikes_resource)(const struct search_world *world, struct choice fault);
    /* Makes a choice that is allowed. False: the schedule cannot go on, with the world's reason. */
    bool (*apply)(struct search_world *world, struct choice choice);
    /* Ends the schedule, judges it, and fills in `outcome` but for faults, strikes, violates and broken; `shown` as if
     * no property was required. */
    void (*end)(struct search_world *world, const struct search_settings *settings, struct search_outcome *outcome);

    /* --- for strategies --- */
    /* Draws the client, node, ... that a fault of this kind strikes. The world may not allow it now. */
    int (*target_draw)(const struct search_world *world, enum choice_kind fault, struct random *random);
    /* Writes all targets that a fault of this kind has now; returns their number, at most SEARCH_TARGETS. */
    int (*targets)(const struct search_world *world, enum choice_kind fault, int *targets);
    /* A step that somebody may come to take, for a deviation. `main`: no step of a client's watchdog. */
    struct choice (*step_draw)(const struct search_world *world, struct random *random, bool main);
    /* The situation of the one that takes a step, as a digest of its name; 0: it has no situation. */
    uint64_t (*situation)(const struct search_world *world, struct choice step);
    /* The same fault, but of what a step concerns: its task or connection, its client, the node that it talks to. */
    struct choice (*aimed)(const struct search_world *world, struct choice fault, struct choice step);
    /* A digest of what can be seen of the state: without the time. */
    uint64_t (*state)(const struct search_world *world);

    /* --- for results --- */
    /* Where a choice strikes, as an index below SEARCH_PLACES, and its name; NULL: there is no such place. */
    int (*place)(const struct search_world *world, struct choice choice);
    const char *(*place_name)(const struct search_world *world, int place);
    uint64_t (*commands)(const struct search_world *world); /* that servers have executed */
    /* The next schedule begins with new programs. */
    void (*session_end)(struct search_world *world);
    /* From here on what servers hear is noted too, for describe. `played`: the schedule as it is played, whose last
     * deviation is the one that takes effect. */
    void (*watch)(struct search_world *world, const struct schedule *played);
    /* Keeps what describe adds of the last schedule, until the world is closed. */
    void (*keep)(struct search_world *world);
    /* Adds to a result what the world says of itself. */
    void (*introduce)(const struct search_world *world, json_t *result);
    /* Adds to what was found, or to a replay, what only this world has to say of its last schedule, or of the one that
     * it has kept. */
    void (*describe)(const struct search_world *world, bool kept, json_t *result);
};

struct search_world {
    const struct search_world_operations *operations;
    const struct choice_space *space;
    int property_count;
    const char *(*property_name)(int property);
    uint64_t steps; /* taken in the schedule that runs; the world counts them */
    /* The same by what takes them: choice.kind and choice.who. */
    uint64_t taken[CHOICE_FAULTS_FROM][SEARCH_TARGETS];
    int current; /* the choice_chain that took the last one; -1: none */
    uint64_t steps_most;
    int64_t lease_ms;
    /* Situations at which an exchange is aimed, as there is a reason to believe that it matters there. */
    uint64_t exchange_aims[EXCHANGE_AIMS];
    int exchange_aim_count;
    const struct portfolio_turn *portfolio;
    int portfolio_turns;
    int deviates_of;   /* STRATEGY_UNIFORM draws one of so many steps; the others are the usual ones */
    int usual_courses; /* run before a search, to measure the horizon and to note situations; 0: none */
    uint64_t horizon;  /* steps of a schedule, about, if no usual course measures it */
    bool rehearses;    /* one more schedule comes before these */
    bool ends_quiet;   /* schedules end with CHOICE_QUIET: liveness is judged */
    bool has_programs; /* which outlive a schedule: sessions are counted, and what was found is repeated anew */
    bool acts_itself;  /* programs do something between schedules, so what they did before may matter to the next one */
    bool lease_of_object;       /* an acquire has the lease that the first one of its lock object had */
    char reason[SEARCH_REASON]; /* why a schedule could not be played; empty: it could */
};

/* The step that is taken where a schedule has no deviation: of the choices one of the chain that took the last step,
 * else the first one. */
static inline struct choice search_usual(const struct search_world *world, const struct choice *choices, int count) {
    for (int each = 0; each < count && world->current >= 0; each++)
        if (choice_chain(world->space, choices[each]) == world->current) return choices[each];
    return choices[0];
}
