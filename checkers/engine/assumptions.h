/* What the checkers take for granted of a history, and whether it is so.
 *
 * Without these nothing can be said to hold, while what is seen to be violated stays so: a client was granted the lock,
 * every fault was seen to take effect (one among many may be taken back, as long as another took effect), no record is
 * torn, none found the history full.
 *
 * Without these nothing can be said at all: each client does one thing at a time (it invokes nothing before its last
 * invocation has come back, and what comes back is what it had invoked); a release names a grant which that client was
 * given before; the monotonic stamps of one client never go back. They are not asked for behind a torn record, which
 * may be the very one that is missing. Of the two threads of a client only the worker counts: a watchdog records
 * only `validity`, at any time, and is exempt from all of this. A stamp of 0 means no stamp. */
#pragma once

#include "checkers/engine/checker.h"
#include "checkers/engine/participants.h"

struct assumptions {
    const struct check *check;         /* what is judged */
    struct participants *participants; /* both are the caller's, as are the entries of `faults` */
    uint64_t records, torn, dropped;
    struct check_table faults; /* struct recorded_fault */
    int64_t faults_meant; /* the parameter of that name: of that many one at least has to take effect; 0: not said */
    struct check_actor *store; /* the last to record an access */
    char broken[200]; /* the first assumption that does not hold and without which nothing can be said; empty: none */
};

struct recorded_fault {
    uint32_t name; /* key */
    int64_t target;
    bool proved, taken_back; /* taken back: it was not seen to take effect, the trial goes on without it */
};

/* An operation of a client that is not plainly the one that was expected. */
SELDOM void assumptions_doubt(struct assumptions *assumptions, const struct event *event);
/* A record of another store than the last, or an earlier one. */
SELDOM void assumptions_doubt_store(struct assumptions *assumptions, const struct event *event);

/* A release under another grant than the client's latest. */
SELDOM void assumptions_release(struct assumptions *assumptions, const struct event *event);
void assumptions_fault(struct assumptions *assumptions, const struct history_record *record);

/* An invocation of a client. This, and the next two, before the checkers see the record. */
static inline void assumptions_invoked(struct assumptions *assumptions, const struct event *event) {
    const struct history_record *record = event->record;
    struct check_actor *actor = event->actor;
    if (record->mono_ns < actor->mono_ns || actor->outstanding) assumptions_doubt(assumptions, event);
    actor->mono_ns = record->mono_ns ? record->mono_ns : actor->mono_ns;
    actor->outstanding = record->kind;
    actor->gone = false;
    actor->op = record->op;
    actor->begun = event->index;
}

/* A return to a client. */
static inline void assumptions_returned(struct assumptions *assumptions, struct event *event) {
    const struct history_record *record = event->record;
    struct check_actor *actor = event->actor;
    bool expected = actor->outstanding + 1 == record->kind && actor->op == record->op;
    event->asked = expected ? actor->begun : 0;
    if (record->mono_ns < actor->mono_ns || !expected) assumptions_doubt(assumptions, event);
    actor->mono_ns = record->mono_ns ? record->mono_ns : actor->mono_ns;
    actor->outstanding = 0;
    actor->gone = false;
    actor->op = record->op;
}

/* What the store recorded: its clock. */
static inline void assumptions_store(struct assumptions *assumptions, const struct event *event) {
    struct check_actor *store = assumptions->store;
    const struct history_record *record = event->record;
    if (store && store->name == record->actor && record->mono_ns >= store->mono_ns) store->mono_ns = record->mono_ns;
    else assumptions_doubt_store(assumptions, event);
}

/* After the last record: why nothing can be said to hold, in `reason`, which is empty before and stays so if nothing is
 * in the way. True: nothing can be said at all, for the history is not what the checkers take it for. */
bool assumptions_end(const struct assumptions *assumptions, char *reason, size_t size);
