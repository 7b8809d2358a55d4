/* A search: runs schedules of a world one after the other and has each judged, until one violates a required property
 * or the limit is reached. search_shrink makes the violating schedule smaller.
 *
 * Schedules are tried in *sessions* of consecutive numbers, each by one process: what is learned within a session, and
 * programs that outlive a schedule, depend on nothing but the seed and the session's number. So a search tries the same
 * schedules with any number of processes. */
#pragma once

#include <stdatomic.h>

#include "harness/search/novelty.h"
#include "harness/search/strategy.h"

struct search_settings {
    struct fault_budget budget;
    enum strategy_kind strategy;          /* STRATEGIES: the world's portfolio, see docs/explore.md */
    uint32_t required[SEARCH_PROPERTIES]; /* bit n: violations of the property's sort n count; 0: it is not required */
    uint32_t steadily[SEARCH_PROPERTIES]; /* as required, but only of steady schedules */
    uint64_t seed;
    uint64_t first, most; /* schedules from `first` on, below `most` */
    /* Schedules of a session. The first few may be shorter, so that a short search has several for its processes. */
    uint64_t session, short_session, short_sessions;
    uint64_t first_session, stride; /* every stride-th session is played, from the first one on */
    int64_t seconds;                /* time limit; 0: none */
    bool whole_sessions;            /* a session that has begun is played beyond the time limit */
    /* Search on after a violation. Else, where there are programs, it ends a search if new ones show it again. */
    bool keep_going;
    int deviations;            /* deviations in a schedule of the exhaustive strategy, at most */
    int64_t shrink_runs;       /* schedules that shrinking may run */
    void (*before_each)(void); /* called before each schedule; may be NULL */
};

/* The number of distinct states is estimated by HyperLogLog (Flajolet and others 2007). Each register holds the highest
 * rank - leading zeros plus one - of its states. */
enum { SEARCH_REGISTER_BITS = 12, SEARCH_REGISTERS = 1 << SEARCH_REGISTER_BITS };

/* Shared by all processes of one search in a mapped file. */
struct search_shared {
    _Atomic uint64_t violated; /* the lowest schedule known to violate a required property; UINT64_MAX: none */
    _Atomic uint64_t taken;    /* number of sessions that a process has begun */
    _Atomic uint8_t states[SEARCH_REGISTERS];
};

/* Schedules that violate the same properties after the same faults. */
struct search_group {
    uint32_t properties; /* bit n for property n */
    uint32_t faults;     /* bit n for enum choice_kind n */
    uint64_t schedules, first;
};
enum { SEARCH_GROUPS = 128 };

struct search_tally {
    uint64_t schedules, steps, cut_short, inapplicable;
    uint64_t commands, calls, sessions;   /* commands that servers executed; calls of workloads; sessions begun */
    uint64_t unplayed;                    /* schedules that could not be played to their end */
    uint64_t unrepeated;                  /* that violated, and did not with new programs; not among the broken ones */
    uint64_t count[SEARCH_PROPERTIES][3]; /* verdicts by enum verdict_status, where the property applies */
    uint64_t broken[SEARCH_PROPERTIES];   /* schedules with a violation of a required sort */
    uint64_t faults[CHOICE_KINDS];
    uint64_t struck[SEARCH_PLACES][CHOICE_KINDS]; /* faults by the place of what they struck */
    struct search_group groups[SEARCH_GROUPS];
    int group_count;
    /* Of the first such schedule: */
    char inapplicable_reason[SEARCH_REASON], unplayed_reason[SEARCH_REASON], unrepeated_reason[SEARCH_REASON];
};

struct search {
    struct search_world *world;
    const struct search_settings *settings;
    struct search_shared *shared; /* may be NULL */
    uint64_t *digests;            /* of every schedule in the order of their numbers; may be NULL. 0: it did not get so
                                     far, UINT64_MAX: it could not be played */
    uint64_t taken;               /* number of sessions begun, if nothing is shared */
    uint64_t horizon;             /* steps of the usual course */
    struct situations situations; /* of the usual course, or of the session */
    bool notes;                   /* those of the schedule that runs are noted */
    bool aims;                    /* situations are known to this session */
    uint64_t in_session;          /* schedules that the programs have played; 0: the next one begins with new ones */
    bool distrusts; /* new programs did not show what was found: each further schedule of the session has new ones */
    uint64_t commands_before; /* that servers had executed before the first schedule */
    struct search_tally tally;
    struct schedule schedule; /* the last one that was run: its workload, and what took effect of its deviations */
    uint32_t faults;          /* that struck in it */
    int strikes;
    struct exhaustive exhaustive;
    struct novelty novelty;
    uint64_t origin; /* the number by which the clients' random numbers of the last schedule were drawn */
    bool exhausted;  /* no schedule within the bound is left */
    bool gave_up;    /* the search has ended because a lock could not be opened: world->reason */
    /* The first that violates a required property: */
    bool violated;
    uint64_t found_number, found_origin;
    struct schedule found;
    struct search_outcome found_outcome;
};

/* The seed of one schedule's random numbers. */
uint64_t search_seed(uint64_t seed, uint64_t number);

/* Runs the usual course to measure the horizon, and notes its situations. False: with the world's reason. */
bool search_begin(struct search *search);
/* Runs schedules until one violates a required property, in any process, or all were run. Calls `report` about twice a
 * second. True: search->found violates one. Of C locks, one that cannot be opened ends the search in all processes: a
 * schedule in which nothing happens was not tried. */
bool search_run(struct search *search, void (*report)(const struct search *));
/* Runs a given schedule. `anew`: with new programs, if the world has any. used[n]: whether its n-th deviation took
 * effect; `used` may be NULL. search->schedule is then what was played. */
struct search_outcome search_replay(struct search *search, const struct schedule *schedule, uint64_t seed,
                                    uint64_t number, bool anew, bool *used);
void search_free(struct search *search);

/* Whether at most one fault struck, and none of those that last: a client that renews its lease then keeps the lock.
 * A lost command lasts until its client gives up its reply, which here is a third of the default lease. */
static inline bool outcome_is_steady(const struct search_outcome *outcome) {
    bool lasts = outcome->faults >> CHOICE_DROP_REQUEST & 1;
    for (int kind = CHOICE_FAULTS_FROM; kind < CHOICE_KINDS; kind++)
        lasts |= outcome->faults >> kind & 1 &&
                 (choice_has_amount((enum choice_kind)kind) || choice_ends_server((enum choice_kind)kind));
    return outcome->strikes <= 1 && !lasts;
}

/* Whether the outcome violates a property in a way that is required not to happen. */
static inline bool search_is_violated(const struct search_settings *settings, const struct search_outcome *outcome,
                                      int property) {
    uint32_t required = settings->required[property];
    if (settings->steadily[property] && outcome_is_steady(outcome)) required |= settings->steadily[property];
    return outcome->status[property] == VERDICT_VIOLATED && outcome->sorts[property] & required;
}

/* --- search_json.c: results as JSON values, which the caller owns; docs/explore.md describes them --- */

json_t *groups_json(const struct search *search);
json_t *tally_json(const struct search *search);
/* An object of places (struct search_world), each with the number of faults that struck there, by kind. */
json_t *struck_json(const struct search *search);
/* {"clients": number, "workload": lines, "schedule": lines}. */
json_t *schedule_json(const struct choice_space *space, const struct schedule *schedule);
/* The names of the properties that an outcome violates, and of those that it violates in a required sort. */
json_t *violated_json(const struct search_world *world, const struct search_outcome *outcome);
json_t *broken_json(const struct search_world *world, const struct search_outcome *outcome);

/* --- shrink.c: a schedule that violates becomes smaller, while it still violates one of the same --- */

/* Makes search->found smaller: fewer clients, threads, calls and deviations, shorter durations, rounder numbers. Runs
 * at most settings->shrink_runs schedules. The result is *smallest, whose deviations the caller frees. True: it
 * violates the same; it is the last schedule that was run, of hosted programs with new ones, whose outcome is
 * search->found_outcome then. False: hosted programs that were started for it alone do not show the violation again, so
 * *smallest is search->found. */
bool search_shrink(struct search *search, struct schedule *smallest);

/* A control for a schedule: one call less, of a C lock one deviation less, with which nothing of the same is violated.
 * False: nothing can be left out. */
bool search_control(struct search *search, const struct schedule *smallest, struct schedule *control);
