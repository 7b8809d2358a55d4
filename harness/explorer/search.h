/* A search: runs schedules one after the other and has each history judged by the checkers, until a schedule violates a
 * required property or the limit is reached. shrink.h makes the violating schedule smaller. */
#ifndef LOCKSTORM_EXPLORER_SEARCH_H
#define LOCKSTORM_EXPLORER_SEARCH_H

#include "checkers/engine/judge.h"
#include "harness/explorer/novelty.h"
#include "harness/explorer/strategy.h"

struct search_settings {
    struct fault_budget budget;
    enum strategy_kind strategy; /* STRATEGIES: a portfolio, see docs/explore.md */
    uint32_t
        required[CHECKERS_MOST]; /* bit n: violations of the checker's sort n count; 0: the property is not required */
    uint32_t steadily[CHECKERS_MOST]; /* as required, but only of steady schedules */
    uint64_t seed;
    uint64_t first, stride, most; /* schedules first, first + stride, ... below most */
    int64_t seconds;              /* time limit; 0: none */
    bool keep_going;              /* search on after a violation */
    int deviations;               /* deviations in a schedule of the exhaustive strategy, at most */
    int64_t shrink_runs;          /* schedules that shrinking may run */
    void (*before_each)(void);    /* called before each schedule; may be NULL */
};

/* The number of distinct states is estimated by HyperLogLog (Flajolet and others 2007). Each register holds the highest
 * rank - leading zeros plus one - of its states. */
enum { SEARCH_REGISTER_BITS = 12, SEARCH_REGISTERS = 1 << SEARCH_REGISTER_BITS };

/* Shared by all processes of one search in a mapped file. */
struct search_shared {
    _Atomic uint64_t violated; /* the lowest schedule known to violate a required property; UINT64_MAX: none */
    _Atomic uint64_t taken;    /* number of schedules that a process has begun */
    _Atomic uint8_t states[SEARCH_REGISTERS];
};

/* What one schedule came to. */
struct search_outcome {
    uint64_t steps;
    uint32_t faults; /* that struck: bit n for enum choice_kind n */
    int strikes;     /* of faults */
    uint64_t digest; /* of the history's records */
    bool opened, cut_short;
    bool violates;              /* a required property */
    bool broken[CHECKERS_MOST]; /* which */
    bool shown[CHECKERS_MOST];  /* which are violated; of a required property only the required sorts count */
    enum verdict_status status[CHECKERS_MOST];
    uint32_t sorts[CHECKERS_MOST]; /* bit n: a violation of the checker's sort n */
    bool applies[CHECKERS_MOST];
    char inapplicable_reason[200]; /* why no property can be said to hold; empty: nothing is in the way */
};

/* Schedules that violate the same properties after the same faults. */
struct search_group {
    uint32_t properties; /* bit n for checker n of CHECKER_TABLE */
    uint32_t faults;     /* bit n for enum choice_kind n */
    uint64_t schedules, first;
};
enum { SEARCH_GROUPS = 128 };

struct search_tally {
    uint64_t schedules, steps, cut_short, inapplicable;
    uint64_t commands;                /* that servers executed */
    uint64_t count[CHECKERS_MOST][3]; /* verdicts by enum verdict_status, where the checker applies */
    uint64_t broken[CHECKERS_MOST];   /* schedules with a violation of a required sort */
    uint64_t faults[CHOICE_KINDS];
    uint64_t struck[WORLD_CHECKPOINTS][CHOICE_KINDS]; /* faults by the checkpoint of what they struck */
    struct search_group groups[SEARCH_GROUPS];
    int group_count;
    char inapplicable_reason[200]; /* of the first such schedule */
};

struct schedule_search {
    struct world *world;
    const struct search_settings *settings;
    struct history_reader *reader;
    struct search_shared *shared; /* may be NULL */
    uint64_t *digests;            /* of every schedule in the order of their numbers; may be NULL */
    uint64_t taken;               /* number of schedules begun, if nothing is shared */
    uint64_t horizon;             /* steps of the usual course */
    struct situations situations; /* of the usual course */
    bool is_usual;                /* the schedule that runs is the usual course, whose situations are noted */
    struct search_tally tally;
    struct schedule schedule; /* the last one that was run, as deviations */
    uint32_t faults;          /* that struck in it */
    int strikes;
    struct exhaustive exhaustive;
    struct novelty novelty;
    uint64_t session_next, session_end; /* numbers of schedules of its session that are left to try */
    uint64_t origin; /* the number by which the clients' random numbers of the last schedule were drawn */
    bool exhausted;  /* no schedule within the bound is left */
    bool unopened;   /* the search has ended because in schedule *number the lock could not be opened */
    /* The first that violates a required property: */
    struct schedule found;
    uint64_t found_origin;
    struct search_outcome found_outcome;
};

/* The seed of one schedule's random numbers. */
uint64_t search_seed(uint64_t seed, uint64_t number);

/* Runs the usual course to measure the horizon, and notes its situations. False: a lock could not be opened. */
bool search_begin(struct schedule_search *search);
/* Runs schedules until one violates a required property, in any process, or all were run. Calls `report` about twice a
 * second. True: schedule *number violates one, and search->found repeats it. A lock that cannot be opened ends the
 * search in all processes: a schedule in which nothing happens is none that was tried. */
bool search_run(struct schedule_search *search, uint64_t *number, void (*report)(const struct schedule_search *));
/* Runs a given schedule. used[n]: whether its n-th deviation took effect; `used` may be NULL. */
struct search_outcome search_replay(struct schedule_search *search, const struct schedule *schedule, int clients,
                                    uint64_t seed, uint64_t number, bool *used);
void search_free(struct schedule_search *search);

/* Whether at most one fault struck, and none of those that last: a client that renews its lease then keeps the lock. */
static inline bool outcome_is_steady(const struct search_outcome *outcome) {
    bool lasts = false;
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        lasts |= outcome->faults >> kind & 1 && choice_has_amount((enum choice_kind)kind);
    return outcome->strikes <= 1 && !lasts;
}

/* Whether the outcome violates a property in a way that is required not to happen. */
static inline bool search_is_violated(const struct search_settings *settings, const struct search_outcome *outcome,
                                      int checker) {
    uint32_t required = settings->required[checker];
    if (settings->steadily[checker] && outcome_is_steady(outcome)) required |= settings->steadily[checker];
    return outcome->status[checker] == VERDICT_VIOLATED && outcome->sorts[checker] & required;
}

#endif
