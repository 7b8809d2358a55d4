/* Schedules one after the other: run, judged by the checkers, until one violates what is required or enough were
 * tried; then made smaller. */
#ifndef LOCKSTORM_EXPLORER_SEARCH_H
#define LOCKSTORM_EXPLORER_SEARCH_H

#include "checkers/judge.h"
#include "harness/explorer/strategy.h"

struct search_settings {
    struct fault_budget budget;
    enum strategy_kind strategy; /* STRATEGIES: by turns uniform and PCT */
    bool required[CHECKERS_MOST];
    uint64_t seed;
    uint64_t first, stride, most; /* the schedules first, first + stride, ... below most */
    int64_t seconds;              /* 0: no limit */
    bool goes_on;                 /* after a violation */
    int bound;                    /* of the exhaustive strategy */
    int64_t shrink_runs;          /* schedules spent on making a violation smaller */
    void (*before_each)(void);    /* schedule; may be NULL */
};

/* HyperLogLog (Flajolet and others 2007) of the states that were seen: of each register, the most leading zeros and
 * one.
 */
enum { SEARCH_REGISTER_BITS = 12, SEARCH_REGISTERS = 1 << SEARCH_REGISTER_BITS };

/* What all processes of one search share: a mapped file. */
struct search_shared {
    _Atomic uint64_t violated; /* the first schedule known to violate something; UINT64_MAX: none */
    _Atomic uint64_t taken;    /* how many schedules somebody has begun with, from the first on */
    _Atomic uint8_t states[SEARCH_REGISTERS];
};

/* What came of one schedule. */
struct search_outcome {
    uint64_t steps;
    uint32_t faults; /* that struck in it, a bit each */
    uint64_t digest; /* of its records */
    uint64_t grants;
    bool opened, cut_short;
    bool violates; /* something required */
    enum verdict_status status[CHECKERS_MOST];
    bool applies[CHECKERS_MOST];
    char unfit[200];
};

/* Schedules that violate the same properties after the same faults. */
struct search_group {
    uint32_t properties; /* a bit each, by the checker's place */
    uint32_t faults;     /* a bit each, by enum choice_kind */
    uint64_t schedules, first;
};
enum { SEARCH_GROUPS = 128 };

struct search_tally {
    uint64_t schedules, steps, commands, grants, cut_short, unfit; /* commands: that servers executed */
    uint64_t count[CHECKERS_MOST][3];                              /* by enum verdict_status, where it applies */
    uint64_t faults[CHOICE_KINDS];
    uint64_t struck[WORLD_CHECKPOINTS][CHOICE_KINDS]; /* faults by where who was struck was */
    struct search_group groups[SEARCH_GROUPS];
    int group_count;
    char unfit_reason[200];
};

struct search {
    struct world *world;
    const struct search_settings *settings;
    struct history_reader *reader;
    struct search_shared *shared; /* may be NULL */
    uint64_t *digests;            /* of every schedule in the order of their numbers; may be NULL */
    uint64_t taken;               /* if nothing is shared */
    uint64_t horizon;             /* steps of the usual course */
    struct search_tally tally;
    struct schedule schedule; /* the last one run, as deviations */
    uint32_t faults;          /* that struck in it, a bit each */
    struct exhaustive exhaustive;
    bool exhausted; /* there are no more */
    /* The first that violates something: */
    struct schedule found;
    struct search_outcome found_outcome;
};

/* The seed of one schedule's random numbers. */
uint64_t search_seed(uint64_t seed, uint64_t number);

/* Runs a schedule by a strategy; search->schedule then says how to repeat it. */
struct search_outcome search_draw(struct search *search, uint64_t number);
/* Runs one that is given, as far as it can be followed; used[n]: whether its n-th deviation came up (may be NULL). */
struct search_outcome search_follow(struct search *search, const struct schedule *schedule, int clients, uint64_t seed,
                                    uint64_t number, bool *used);

/* The number from which a schedule's random numbers come: its own, but they are the same in an exhaustive search. */
uint64_t search_origin(const struct search *search, uint64_t number);

/* Measures the horizon. False: a lock could not be opened. */
bool search_begin(struct search *search);
/* Until something required is violated, by whichever process, or all are tried. `tell` is called about twice a second.
 * True: something is, by the schedule *number first; search->found repeats it. */
bool search_all(struct search *search, uint64_t *number, void (*tell)(const struct search *));

/* Makes search->found smaller while it still violates one of the properties that it did: fewer clients (*clients),
 * fewer deviations, shorter durations. The result is search->schedule. */
void search_shrink(struct search *search, uint64_t number, int *clients);
void search_free(struct search *search);

#endif
