/* Who chooses: from a seed - uniformly, or by priorities that change at a few random moments (PCT) -, all schedules in
 * turn that differ little from the usual course, or a schedule.
 *
 * PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding
 * Bugs" (ASPLOS 2010). With n tasks, k steps and depth d one schedule finds an error of depth d with a probability of
 * at least 1 / (n k^(d-1)). Its guarantee is about the order of steps; the moments of faults are drawn uniformly. */
#ifndef LOCKSTORM_EXPLORER_STRATEGY_H
#define LOCKSTORM_EXPLORER_STRATEGY_H

#include "harness/explorer/schedule.h"

enum strategy_kind { STRATEGY_UNIFORM, STRATEGY_PCT, STRATEGY_USUAL, STRATEGY_EXHAUSTIVE, STRATEGIES };
enum { STRATEGY_DEPTH = 3, STRATEGY_FAULTS = 16 };

/* What may go wrong in one schedule: at most so many of each kind. */
struct fault_budget {
    int most[CHOICE_KINDS];
};

struct strategy {
    enum strategy_kind kind;
    struct random random;
    int64_t lease_ms;
    uint64_t priority[WORLD_TASKS]; /* the highest goes; what is late comes after all tasks */
    uint64_t changes[STRATEGY_DEPTH - 1], lowest;
    struct planned_fault {
        enum choice_kind kind;
        uint64_t step; /* not before so many steps of the schedule */
        bool done;
    } faults[STRATEGY_FAULTS];
    int fault_count;
    bool ends_quiet; /* when the faults are over, the schedule says so */
};

/* Draws what can be drawn beforehand. `horizon`: about how many steps a schedule has. */
void strategy_begin(struct strategy *strategy, enum strategy_kind kind, uint64_t seed,
                    const struct fault_budget *budget, int64_t lease_ms, uint64_t horizon);
struct choice strategy_choose(struct strategy *strategy, const struct world *world, const struct choice *choices,
                              int count);

/* All schedules with at most `bound` deviations, one after the other: delay-bounded scheduling (Emmi, Qadeer, Rakamaric
 * 2011), with faults as delays. A duration is always three leases, which a poller's
 * longest sleep does not outlast. */
struct exhaustive {
    int bound;
    int64_t lease_ms;
    const struct fault_budget *budget;
    /* The present schedule: at each choice, which of how many is taken; 0 is the usual one. */
    struct exhaustive_point {
        uint32_t taken, options;
    } * points;
    size_t count, room;
    size_t at; /* the next choice */
    int deviations, faults[CHOICE_KINDS];
};

/* Back to the first choice of the present schedule. */
void exhaustive_begin(struct exhaustive *exhaustive);
struct choice exhaustive_choose(struct exhaustive *exhaustive, const struct world *world, const struct choice *choices,
                                int count);
/* On to the next schedule; the present one was run to its end. False: that was the last. */
bool exhaustive_next(struct exhaustive *exhaustive);
void exhaustive_free(struct exhaustive *exhaustive);

/* A schedule as it is followed. */
struct replay {
    const struct schedule *schedule;
    bool *used; /* as many as there are deviations */
};

void replay_begin(struct replay *replay, const struct schedule *schedule);
void replay_free(struct replay *replay);
/* A deviation that is due and cannot be made is left out, and so not used. */
struct choice replay_choose(struct replay *replay, const struct world *world, struct choice usual);

#endif
