/* Judging one history under one reading: every record is looked at once and handed to the checkers that asked for its
 * kind. Whether the history is fit to be judged at all is asked on the way (fit.c). */
#ifndef LOCKSTORM_CHECKERS_JUDGE_H
#define LOCKSTORM_CHECKERS_JUDGE_H

#include "checkers/checker.h"
#include "checkers/people.h"

/* What a history must have to be judged at all. */
struct fitness {
    uint64_t records, torn, dropped;
    struct check_table faults; /* struct fault_seen */
    int64_t faults_meant;      /* by the driver: of so many one at least has to take effect; 0: it did not say */
    struct check_actor *store; /* the last to record an access */
    char broken[200]; /* the first assumption that does not hold and without which nothing can be said; empty: none */
};

struct fault_seen {
    uint32_t name; /* key */
    int64_t target;
    bool proved, taken_back; /* taken back: it was not seen to take effect, the trial goes without it */
};

struct judgement {
    struct check check;
    struct checking at_work[CHECKERS_MOST];
    int checkers;
    struct fitness fitness;
    struct people people;
    struct check_table parameters; /* struct parameter_said, in the order of the records: the last of a name counts */
    char unfit[200];               /* why nothing can be said to hold; empty: nothing is in the way */
    uint64_t damaged;              /* index of the record at which judging ended with false */
    uint64_t failed_releases;
};

struct parameter_said {
    uint32_t name; /* key */
    bool is_text;
    int64_t value;
};

/* Looks at the whole history, from its first record on. False: a record is damaged. Close in any case. */
bool judge(struct judgement *judgement, struct history_reader *reader, struct check_reading reading);
void judge_close(struct judgement *judgement);

/* --- fit.c --- */

/* An operation of a client that is not plainly the one that was expected. */
SELDOM void fit_doubt(struct judgement *judgement, const struct event *event);
/* A release under another grant than the client's latest. */
SELDOM void fit_release(struct judgement *judgement, const struct event *event);
/* A record of another store than the last, or an earlier one. */
SELDOM void fit_store_doubt(struct judgement *judgement, const struct event *event);

/* An invocation or a return of a client. Before the checkers see it. */
static inline void fit_invoked(struct judgement *judgement, const struct event *event) {
    const struct history_record *record = event->record;
    struct check_actor *actor = event->actor;
    if (record->mono_ns < actor->mono_ns || actor->outstanding) fit_doubt(judgement, event);
    actor->mono_ns = record->mono_ns ? record->mono_ns : actor->mono_ns;
    actor->outstanding = record->kind;
    actor->gone = false;
    actor->op = record->op;
    actor->begun = event->index;
}

/* What the store recorded: its clock. */
static inline void fit_store(struct judgement *judgement, const struct event *event) {
    struct check_actor *store = judgement->fitness.store;
    const struct history_record *record = event->record;
    if (store && store->name == record->actor && record->mono_ns >= store->mono_ns) store->mono_ns = record->mono_ns;
    else fit_store_doubt(judgement, event);
}

static inline void fit_returned(struct judgement *judgement, struct event *event) {
    const struct history_record *record = event->record;
    struct check_actor *actor = event->actor;
    bool expected = actor->outstanding + 1 == record->kind && actor->op == record->op;
    event->asked = expected ? actor->begun : 0;
    if (record->mono_ns < actor->mono_ns || !expected) fit_doubt(judgement, event);
    actor->mono_ns = record->mono_ns ? record->mono_ns : actor->mono_ns;
    actor->outstanding = 0;
    actor->gone = false;
    actor->op = record->op;
}
void fit_fault(struct judgement *judgement, const struct history_record *record);
/* After the last record: why nothing can be said to hold, in `text`, which is empty before and stays so if nothing is
 * in the way. True: nothing can be said at all, for the history is not what the checkers take it for. */
bool fit_end(const struct judgement *judgement, char *text, size_t size);

#endif
