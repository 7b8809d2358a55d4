/* What chooses the steps of a schedule of a library: random numbers from a seed, or a given schedule. */
#ifndef LOCKSTORM_LIBRARY_STRATEGY_H
#define LOCKSTORM_LIBRARY_STRATEGY_H

#include "harness/library/library_world.h"
#include "harness/library_search/library_schedule.h"
#include "harness/library_search/message_sorts.h"
#include "harness/scheduler/random.h"

enum { LIBRARY_FAULTS_MOST = 4 };

/* Which kinds of faults a schedule may have, and how many of all together. */
struct library_budget {
    bool allowed[LIBRARY_CHOICE_KINDS];
    int total;
};

/* In turn: the usual course, and any order, in which every fourth step is drawn; each without faults and with faults.
 * The usual course finds what a workload alone brings about, and its stories are the shortest. PCT: see
 * harness/explorer/strategy.h; its tasks are the clients. */
enum library_order { ORDER_USUAL, ORDER_UNIFORM, ORDER_PCT, LIBRARY_ORDERS };

struct library_strategy {
    enum library_order order;
    struct random random;
    int64_t lease_ms;
    uint64_t priority[LIBRARY_CLIENTS], changes[2], lowest;
    struct library_planned {
        enum library_choice_kind kind;
        uint64_t step; /* it strikes at this step or later, unless it is aimed: */
        bool is_aimed; /* at a message */
        struct message_aim aim;
        bool done;
    } faults[LIBRARY_FAULTS_MOST];
    int fault_count;
    struct message_sorts *sorts; /* of the session; the strategy notes its messages there */
};

/* `aims`: half of the schedules without faults have some that are aimed at a sort of message that the session has seen.
 */
void library_strategy_begin(struct library_strategy *strategy, const struct library_budget *budget, int64_t lease_ms,
                            uint64_t seed, uint64_t number, struct message_sorts *sorts, bool aims);
struct library_choice library_strategy_choose(struct library_strategy *strategy, const struct library_world *world,
                                              const struct library_choice *choices, int count);

/* A schedule that is being repeated. */
struct library_replay {
    const struct library_schedule *schedule;
    bool used[LIBRARY_DEVIATIONS]; /* whether the deviation took effect */
};

/* Chooses the deviation that is due, else the usual choice. One that the world does not allow stays unused. */
struct library_choice library_replay_choose(struct library_replay *replay, const struct library_world *world,
                                            const struct library_choice *choices, int count);

#endif
