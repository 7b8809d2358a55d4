/* Ownership: did a client release or extend what another held, did a hold lapse and come back with another's grant
 * inside it?
 *
 * A grant of a lock with one permit is *superseded* by a grant to another client whose acquire was invoked after it had
 * returned: the server gave that one later, so the first was over by then. The question is what the lock then answers:
 *
 * Foreign release, foreign renewal: it came back ok to a client whose latest grant had been superseded before it was
 * invoked, while the superseding grant still stood: its client had neither invoked a release nor ended. A client that
 * was never granted the lock has no grant to be superseded: there, any grant that stood from the invocation to the
 * answer is enough.
 *
 * Broken hold: a release, a renewal or the re-entry into a hold came back ok although the latest grant had been
 * superseded, by a grant that was over again. The answer says that the hold had lasted, and it had not.
 *
 * Empty renewal: a renewal came back ok to a client that held nothing, and no other case applies. That nothing is left
 * has to be certain: before the renewal was invoked, every acquire of the client had come back ok or refused, and every
 * release ok. Only of a lock with a lease and without a watchdog: elsewhere a renewal may have nothing to do, and then
 * its answer says nothing.
 *
 * Foreign extension: a server heard of a renewal and lengthened another client's key (`server-renewal`).
 *
 * The policy says whether an acquire of unknown outcome happened; if it did, it counts as its client's latest grant. Of
 * failed releases of a re-entrant lock, one client's may have happened and another's not: only then does a client enter
 * again a hold that another's was within. The two readings do not show that, so nothing holds under both. */
#include <stdio.h>

#include "checkers/engine/checker.h"

enum { FOREIGN_RELEASE, FOREIGN_RENEWAL, BROKEN_HOLD, FOREIGN_EXTENSION, EMPTY_RENEWAL };

/* A grant, and when it was asked for. */
struct asked {
    struct check_member *member; /* NULL: none */
    uint64_t invoked, granted;
};

struct ownership_side {
    uint64_t invoked;   /* acquire in flight, 0: none */
    uint64_t grant;     /* its latest; 0: none */
    uint64_t since;     /* the grant with which its hold began: of a re-entrant lock an earlier one */
    uint32_t depth;     /* releases that are still to come; of a lock that is not re-entrant: 0 or 1 */
    struct asked loss;  /* the grant that superseded it, when its release or renewal was invoked */
    uint64_t operation; /* index of that invocation */
    uint64_t under;     /* its latest grant at that time, 0: none */
    int64_t unsettled;  /* acquires and releases that were invoked, less the acquires that came back ok or refused, and
                           the releases that came back ok */
    bool settled;       /* there was none when the operation was invoked */
};

/* Of one lock. */
struct succession {
    struct asked latest;               /* the grant that was asked for last */
    const struct check_member *failed; /* whose release failed, of a re-entrant lock */
};

struct ownership {
    bool answered; /* a release or a renewal came back ok, or a server carried one out */
};

/* The grant that was asked for last, if it was asked for after `since`, the client's own latest grant: then it is
 * another client's. */
static struct asked superseding(const struct asked *latest, uint64_t since) {
    return latest->invoked > since ? *latest : (struct asked){0};
}

static bool stands(const struct checking *my, struct asked grant) {
    const struct ownership_side *side = my_member(my, grant.member);
    return side->depth > 0 && side->since <= grant.granted;
}

static const char *holder_text(const struct checking *my, const struct event *event, uint64_t grant, char *buffer,
                               size_t size) {
    char name[64];
    if (grant) return check_grant(my->check, grant, buffer, size);
    snprintf(buffer, size, "%s (never granted)",
             history_name(my->check->reader, event->actor->name, name, sizeof name));
    return buffer;
}

static SELDOM void ownership_violate(struct checking *my, const struct event *event, unsigned sort, uint64_t grant,
                                     struct asked loss) {
    char mine[160];
    static const char *const said[] = {[HISTORY_ACQUIRE_RETURN] = "entered its hold again",
                                       [HISTORY_RENEW_RETURN] = "renewed",
                                       [HISTORY_RELEASE_RETURN] = "released"};
    const struct violation violation = {
        .sort = sort, .who = event->actor->name, .whom = loss.member->actor->name, .records = {grant, loss.granted}};
    violate(my, event, &violation, "%s %s %pT and was told ok, though the lock had gone to %pG since%s",
            holder_text(my, event, grant, mine, sizeof mine), said[event->record->kind], &event->record->mono_ns,
            &loss.granted, sort == BROKEN_HOLD ? ", which has left it again" : ", which holds it still");
}

static void violate_empty(struct checking *my, const struct event *event, uint64_t grant) {
    char mine[160];
    violate(my, event, &(struct violation){.sort = EMPTY_RENEWAL, .who = event->actor->name, .records = {grant}},
            "%s renewed %pT and was told ok, though it %s", holder_text(my, event, grant, mine, sizeof mine),
            &event->record->mono_ns, grant ? "had released the lock" : "held nothing");
}

static void ownership_invoked(struct checking *my, const struct event *event) {
    struct ownership_side *side = my_member(my, event->member);
    side->invoked = event->index;
    side->unsettled++;
}

static void ownership_answered(struct checking *my, const struct event *event) {
    struct asked *latest = &((struct succession *)my_lock(my, event->lock))->latest;
    struct ownership_side *side = my_member(my, event->member);
    uint64_t asked_at = side->invoked ? side->invoked : event->index;
    side->invoked = 0;
    side->unsettled -= event->record->outcome == OUTCOME_OK || event->record->outcome == OUTCOME_REFUSED;
    if (event->record->outcome == OUTCOME_REFUSED) return;
    if (event->record->outcome != OUTCOME_OK) {
        if (my->check->reading.acquires_happen) side->grant = event->index;
        return;
    }
    bool again = side->depth && event->lock->traits & CHECK_TRAIT_REENTRANT;
    if (again) {
        struct asked loss = superseding(latest, side->grant);
        if (event->lock->capacity == 1 && loss.member && loss.granted < asked_at && !stands(my, loss))
            ownership_violate(my, event, BROKEN_HOLD, side->grant, loss);
    }
    side->grant = event->index;
    if (!again) side->since = event->index;
    side->depth = again ? side->depth + 1 : 1;
    if (event->lock->capacity == 1 && asked_at > latest->invoked)
        *latest = (struct asked){event->member, asked_at, event->index};
}

static void ownership_failed(struct checking *my, const struct event *event, struct succession *lock) {
    my->verdict.partial |= lock->failed && lock->failed != event->member;
    lock->failed = event->member;
}

static void begun(struct checking *my, const struct event *event) {
    struct ownership_side *side = my_member(my, event->member);
    struct succession *lock = my_lock(my, event->lock);
    side->loss = superseding(&lock->latest, side->grant);
    side->operation = event->index;
    side->under = side->grant;
    side->settled = side->unsettled == 0;
    if (event->record->kind != HISTORY_RELEASE_INVOKE) return;
    side->unsettled++;
    if (!event->failed) side->depth -= side->depth > 0;
    else if (event->lock->traits & CHECK_TRAIT_REENTRANT) ownership_failed(my, event, lock);
}

static bool is_renewed_by_holder(const struct check_lock *lock) {
    return (lock->traits & (CHECK_TRAIT_LEASE | CHECK_TRAIT_RENEWS)) == CHECK_TRAIT_LEASE;
}

static void ended_ok(struct checking *my, const struct event *event) {
    struct ownership *self = my->state;
    struct ownership_side *side = my_member(my, event->member);
    bool pending = event->asked && side->operation == event->asked;
    bool release = event->record->kind == HISTORY_RELEASE_RETURN;
    side->unsettled -= release && event->record->outcome == OUTCOME_OK;
    if (!pending || event->record->outcome != OUTCOME_OK || event->lock->capacity > 1) return;
    self->answered = true;
    if (side->loss.member && stands(my, side->loss))
        ownership_violate(my, event, release ? FOREIGN_RELEASE : FOREIGN_RENEWAL, side->under, side->loss);
    else if (side->loss.member && side->under) ownership_violate(my, event, BROKEN_HOLD, side->under, side->loss);
    else if (!release && side->settled && !side->depth && is_renewed_by_holder(event->lock))
        violate_empty(my, event, side->under);
}

static void extended(struct checking *my, const struct event *event) {
    struct ownership *self = my->state;
    const struct history_record *record = event->record;
    if (record->outcome != OUTCOME_OK || event->lock->capacity > 1) return;
    self->answered = true;
    if (record->extra <= 0 || record->extra > UINT32_MAX) return;
    uint32_t other = (uint32_t)record->extra;
    violate(my, event, &(struct violation){.sort = FOREIGN_EXTENSION, .who = event->actor->name, .whom = other},
            "a renewal of %pN lengthened what %pN holds, %pT", &event->actor->name, &other, &record->mono_ns);
}

static SELDOM void ownership_ended(struct checking *my, const struct event *event) {
    struct ownership_side *side = my_member(my, event->member);
    side->depth = 0;
    side->invoked = 0;
}

static void ownership_finish(struct checking *my) {
    const struct ownership *self = my->state;
    verdict_decide(&my->verdict, self->answered, "no release and no renewal of a lock with one permit came back ok");
}

const struct checker CHECKER_OWNERSHIP = {
    .property = "ownership",
    .sorts = {"foreign release", "foreign renewal", "broken hold", "foreign extension", "empty renewal"},
    .advisory = true,
    .state_size = sizeof(struct ownership),
    .lock_size = sizeof(struct succession),
    .member_size = sizeof(struct ownership_side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = ownership_invoked,
           [HISTORY_ACQUIRE_RETURN] = ownership_answered,
           [HISTORY_RENEW_INVOKE] = begun,
           [HISTORY_RENEW_RETURN] = ended_ok,
           [HISTORY_SERVER_RENEWAL] = extended,
           [HISTORY_RELEASE_INVOKE] = begun,
           [HISTORY_RELEASE_RETURN] = ended_ok,
           [HISTORY_ACTOR_EXIT] = ownership_ended},
    .finish = ownership_finish,
};
