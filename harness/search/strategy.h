/* What chooses the steps of a schedule: random numbers from a seed, an enumeration of all schedules with few
 * deviations, or a given schedule.
 *
 * PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding
 * Bugs" (ASPLOS 2010): random task priorities that change at a few random moments. With n tasks, k steps and depth d
 * one schedule finds an error of depth d with a probability of at least 1 / (n k^(d-1)). The guarantee covers the order
 * of steps; the moments of faults are drawn uniformly. */
#pragma once

#include "harness/search/situations.h"

enum {
    STRATEGY_DEPTH = 3,
    STRATEGY_FAULTS = 16,
    STRATEGY_CLIENTS = 16,
    STRATEGY_CHAINS = TASKS_PER_CLIENT * STRATEGY_CLIENTS
};

/* How many faults of each kind one schedule may have. */
struct fault_budget {
    int most[CHOICE_KINDS];
    uint32_t rare;     /* bit n: enum choice_kind n is drawn only in the turns of a portfolio with FAULTS_RARE */
    int total;         /* and of all kinds together, whose number is drawn; 0: each kind is drawn by itself */
    bool spares_store; /* commands to the resource are not lost, held, repeated or refused */
};

struct strategy {
    enum strategy_kind kind;
    struct random random;
    bool spares_store;
    const struct situations *situations; /* faults are aimed at them; NULL: they strike at a step */
    /* By task of a C lock, or by client of hosted programs: who has the highest goes first; steps of nobody come last.
     */
    uint64_t priority[STRATEGY_CHAINS];
    uint64_t changes[STRATEGY_DEPTH - 1], lowest;
    struct planned_fault {
        enum choice_kind kind;
        uint64_t step;  /* of the schedule: the fault does not strike before; an aimed one not later */
        struct aim aim; /* without a name: none */
        bool done;
    } faults[STRATEGY_FAULTS];
    int fault_count;
    bool ends_quiet; /* choose CHOICE_QUIET after the last fault */
    /* STRATEGY_EXCHANGE: in which situation, or at which step, and whether it has happened. */
    struct aim exchange_aim; /* without a name: exchange_step counts */
    uint64_t exchange_step;
    bool has_exchanged;
};

/* Draws what can be drawn in advance. `horizon`: the approximate number of steps of a schedule. `situations`: to aim
 * faults at; the caller's; NULL: they strike at any step. */
void strategy_begin(struct strategy *strategy, const struct search_world *world, enum strategy_kind kind,
                    enum fault_plan plan, uint64_t seed, const struct fault_budget *budget, uint64_t horizon,
                    const struct situations *situations);
struct choice strategy_choose(struct strategy *strategy, const struct search_world *world, const struct choice *choices,
                              int count);

/* Draws a fault's target and duration. The world may not allow the fault now. */
struct choice strategy_fault_draw(struct strategy *strategy, const struct search_world *world, enum choice_kind kind);

/* Enumerates all schedules with at most `bound` deviations: delay-bounded scheduling (Emmi, Qadeer, Rakamaric 2011),
 * with faults as delays. A duration is always three leases, which is longer than a poller's longest sleep. */
struct exhaustive {
    int bound;
    const struct fault_budget *budget;
    /* The current schedule: the option taken at each choice; 0 is the usual one. */
    struct exhaustive_point {
        uint32_t taken, options;
    } * points;
    size_t count, room;
    size_t at; /* index of the next choice */
    int deviations, faults[CHOICE_KINDS];
};

/* Returns to the first choice of the current schedule. */
void exhaustive_begin(struct exhaustive *exhaustive);
struct choice exhaustive_choose(struct exhaustive *exhaustive, const struct search_world *world,
                                const struct choice *choices, int count);
/* Advances to the next schedule, after the current one was run to its end. False: it was the last. */
bool exhaustive_next(struct exhaustive *exhaustive);
void exhaustive_free(struct exhaustive *exhaustive);

/* A schedule that is being repeated. */
struct replay {
    const struct schedule *schedule;
    bool *used; /* for each deviation, whether it took effect; owned */
};

void replay_begin(struct replay *replay, const struct schedule *schedule);
void replay_free(struct replay *replay);
/* Chooses the deviation that is due, else the usual choice. A deviation that the world does not allow stays unused. */
struct choice replay_choose(struct replay *replay, const struct search_world *world, struct choice usual);
