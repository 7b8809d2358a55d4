/* What chooses the steps of a schedule: random numbers from a seed, an enumeration of all schedules with few
 * deviations, or a given schedule.
 *
 * PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding
 * Bugs" (ASPLOS 2010): random task priorities that change at a few random moments. With n tasks, k steps and depth d
 * one schedule finds an error of depth d with a probability of at least 1 / (n k^(d-1)). The guarantee covers the order
 * of steps; the moments of faults are drawn uniformly. */
#ifndef LOCKSTORM_EXPLORER_STRATEGY_H
#define LOCKSTORM_EXPLORER_STRATEGY_H

#include "harness/explorer/schedule.h"
#include "harness/explorer/situations.h"
#include "harness/scheduler/random.h"
#include "harness/simulation/world_state.h"

enum strategy_kind {
    STRATEGY_UNIFORM,
    STRATEGY_PCT,
    STRATEGY_USUAL,
    STRATEGY_EXHAUSTIVE,
    STRATEGY_NOVELTY, /* novelty.h */
    STRATEGIES
};
enum { STRATEGY_DEPTH = 3, STRATEGY_FAULTS = 16 };

/* How many faults of each kind one schedule may have. */
struct fault_budget {
    int most[CHOICE_KINDS];
    int total;         /* and of all kinds together, whose number is drawn; 0: each kind is drawn by itself */
    bool spares_store; /* commands to the resource are not lost, held, repeated or refused */
};

struct strategy {
    enum strategy_kind kind;
    struct random random;
    int64_t lease_ms;
    bool spares_store;
    const struct situations *situations; /* faults are aimed at them; NULL: they strike at a step */
    uint64_t priority[WORLD_TASKS];      /* the task with the highest goes first; other steps come after all tasks */
    uint64_t changes[STRATEGY_DEPTH - 1], lowest;
    struct planned_fault {
        enum choice_kind kind;
        uint64_t step;  /* of the schedule: the fault does not strike before; an aimed one not later */
        struct aim aim; /* without a name: none */
        bool done;
    } faults[STRATEGY_FAULTS];
    int fault_count;
    bool ends_quiet; /* choose CHOICE_QUIET after the last fault */
};

/* Draws what can be drawn in advance. `horizon`: the approximate number of steps of a schedule. `situations`: of the
 * usual course, to aim faults at; the caller's; NULL: they strike at any step. */
void strategy_begin(struct strategy *strategy, enum strategy_kind kind, uint64_t seed,
                    const struct fault_budget *budget, int64_t lease_ms, uint64_t horizon,
                    const struct situations *situations);
struct choice strategy_choose(struct strategy *strategy, const struct world *world, const struct choice *choices,
                              int count);

/* Draws a fault's target and duration. The world may not allow the fault now. */
struct choice strategy_fault_draw(struct strategy *strategy, const struct world *world, enum choice_kind kind);

/* Enumerates all schedules with at most `bound` deviations: delay-bounded scheduling (Emmi, Qadeer, Rakamaric 2011),
 * with faults as delays. A duration is always three leases, which is longer than a poller's longest sleep. */
struct exhaustive {
    int bound;
    int64_t lease_ms;
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
struct choice exhaustive_choose(struct exhaustive *exhaustive, const struct world *world, const struct choice *choices,
                                int count);
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
struct choice replay_choose(struct replay *replay, const struct world *world, struct choice usual);

#endif
