/* A strategy that learns: schedules that reached states which none had reached before are kept and changed, as fuzzers
 * that are guided by coverage do (Zalewski, "American Fuzzy Lop", 2013), and those with the rarest states first
 * (Böhme, Pham, Roychoudhury, "Coverage-based Greybox Fuzzing as Markov Chain", CCS 2016).
 *
 * What was learned belongs to a session: NOVELTY_SESSION schedules with consecutive numbers, run one after the other by
 * one process. A session depends only on the seed and its number, so a search tries the same schedules with any number
 * of processes. Every second schedule of a session is drawn as in a portfolio; the others are changed ones. */
#pragma once

#include "harness/search/strategy.h"

enum { NOVELTY_SESSION = 256, NOVELTY_STATES_KEPT = 8 };

/* A schedule that reached new states. */
struct novelty_entry {
    struct schedule schedule;
    uint64_t origin;                      /* the number of the schedule whose seed its clients have */
    uint64_t states[NOVELTY_STATES_KEPT]; /* the last of those that were new */
    int state_count;
    uint64_t picked; /* how often it was changed */
};

struct novelty {
    struct novelty_entry *entries; /* owned */
    size_t count, room;
    /* The states of the session, hashed with open addressing; in how many of its schedules each occurred. */
    struct novelty_state {
        uint64_t digest, schedules, last;
    } * states; /* owned */
    size_t state_count, state_room;
    /* The current schedule: */
    uint64_t run;
    uint64_t fresh_states[NOVELTY_STATES_KEPT], fresh_count; /* new ones, and how many */
};

/* Forgets everything, as at the beginning of a session. */
void novelty_free(struct novelty *novelty);
/* Before a schedule; for each state that it reaches; and after it: keeps it if a state was new. */
void novelty_schedule_begin(struct novelty *novelty);
void novelty_reach(struct novelty *novelty, uint64_t state);
void novelty_schedule_end(struct novelty *novelty, const struct schedule *schedule, uint64_t origin);

/* A changed schedule that is being run: its deviations take effect where they can, and from the step `cut` on, if it
 * comes, a strategy draws. Never more faults than the budget allows. */
struct mutant {
    uint64_t origin, cut;
    struct schedule schedule; /* owned */
    struct replay replay;     /* owned */
    struct strategy tail;
    const struct fault_budget *budget;
    int faults[CHOICE_KINDS], fault_count;
};

/* Draws a schedule of the session, and changes it by random numbers from `seed`. The session must have kept one. */
void mutant_begin(struct mutant *mutant, struct novelty *novelty, const struct search_world *world, uint64_t seed,
                  const struct fault_budget *budget, uint64_t horizon);
struct choice mutant_choose(struct mutant *mutant, const struct search_world *world, const struct choice *choices,
                            int count, struct choice usual);
void mutant_free(struct mutant *mutant);
