/* A search over workloads and schedules of a library: draws both from a seed, plays them, and has the calls judged
 * (checkers/promises), until a promise is broken or the limit is reached. */
#ifndef LOCKSTORM_LIBRARY_SEARCH_H
#define LOCKSTORM_LIBRARY_SEARCH_H

#include <stdatomic.h>

#include "harness/library_search/library_strategy.h"

enum { LIBRARY_BROKEN = 32, LIBRARY_GROUPS = 64 };

struct library_search_settings {
    struct library_budget budget;
    uint32_t required; /* bit n: enum promise n */
    uint64_t seed;
    uint64_t most; /* schedules */
    /* Schedules with the same programs. The first few sessions are short, so that a short search has several for its
     * processes; a program takes as long to start as some tens of schedules. */
    uint64_t session, short_session, short_sessions; /* schedules in one, in a short one; number of short ones */
    uint64_t first_session, stride;                  /* every stride-th session is played, from the first one on */
    int64_t seconds;                                 /* time limit; 0: none */
    bool whole_sessions;                             /* a session that has begun is played beyond the time limit */
    /* Search on after a broken promise. Else it ends a search if new programs break it, too, in the same schedule. */
    bool keep_going;
    int64_t shrink_runs; /* schedules that shrinking may run */
};

/* Shared by all processes of one search in a mapped file. */
struct library_shared {
    _Atomic uint64_t violated; /* the lowest schedule known to break a required promise; UINT64_MAX: none */
    _Atomic uint64_t taken;    /* number of sessions that a process has begun */
};

struct library_outcome {
    bool played; /* to its end; false: the world's reason says why not */
    bool fresh;  /* the programs can be used again */
    uint64_t steps, digest;
    uint32_t faults; /* that struck: bit n for enum library_choice_kind n */
    struct broken_promise broken[LIBRARY_BROKEN];
    int broken_count;
    uint32_t promises; /* bit n: enum promise n is broken and required */
};

struct library_group {
    uint32_t promises, faults;
    uint64_t schedules, first;
};

struct library_tally {
    uint64_t schedules, steps, commands, sessions, calls, unplayed;
    uint64_t unrepeated; /* that broke a promise, and kept it with new programs; not among those that broke one */
    uint64_t broken[PROMISES], faults[LIBRARY_CHOICE_KINDS];
    struct library_group groups[LIBRARY_GROUPS];
    int group_count;
    char unplayed_reason[LIBRARY_REASON], unrepeated_reason[LIBRARY_REASON]; /* of the first */
};

struct library_search {
    struct library_world *world;
    const struct library_search_settings *settings;
    struct library_shared *shared; /* may be NULL */
    uint64_t *digests;             /* by the numbers of schedules; may be NULL */
    uint64_t taken;                /* sessions, if nothing is shared */
    uint64_t in_session;           /* schedules that the programs have played; 0: the next one begins with new ones */
    struct message_sorts sorts;    /* of the session */
    bool aims;                     /* whether schedules of the session may aim faults at them: it is not a short one */
    struct library_tally tally;
    struct library_schedule schedule; /* the last one that was played */
    /* The first that breaks a required promise: */
    struct library_schedule found;
    struct library_outcome found_outcome;
    uint64_t found_number;
    struct call_event *found_events; /* as it was found; freed by library_search_close */
    size_t found_event_count;
};

/* The seed of one schedule's workload and order. */
uint64_t library_search_seed(uint64_t seed, uint64_t number);
/* Draws and plays schedules. True: search->found breaks a required promise. False also when no schedule could be played
 * (tally.unplayed_reason). */
bool library_search_run(struct library_search *search, void (*report)(const struct library_search *));
/* Plays a given schedule; `used`, of LIBRARY_DEVIATIONS, may be NULL. search->schedule is then what was played, without
 * what did not happen. `anew`: with new programs. */
struct library_outcome library_search_replay(struct library_search *search, const struct library_schedule *schedule,
                                             uint64_t seed, bool anew, bool *used);
void library_search_close(struct library_search *search);

#endif
