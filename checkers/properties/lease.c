/* Lease: does the lock keep to the validity that it states, and do its clients?
 *
 * Spent grant: an acquire that came back ok with a validity (`value`) that was not after the stamp of its return.
 *
 * Late write: the store accepted a write under its client's latest grant of the lock, at or after the end of the
 * validity that the lock had announced to that client, or after a `validity` (refused): the grant was lost. The stamps
 * are that of the store's record and the latest validity (`acquire-return` or `validity`) before it.
 *
 * Late renewal: a renewal came back ok to a client that had nothing to renew when it invoked it, because its latest
 * release had come back ok; or the second `validity` (ok) after such a release (the first may have been on its way).
 * One per hold.
 *
 * Premature grant: a lock with a lease was granted while the lease of its previous grant, to another client, or with
 * several permits the leases of as many other clients, certainly ran. Any lock with a lease lets two clients believe at
 * once when one outlives its lease; only a broken one does this.
 *
 *  1. The other client had neither invoked its release nor ended, and the grant came CHECK_LEASE_GRAIN_NS earlier, at
 *     least, than the end of its lease (lease_ran).
 *  2. That lease counts from a stamp before which it cannot have been given: of a grant `extra`, else its invocation's,
 *     or the release's that may have handed the lock over (check_given_ns); of a renewal that came back ok its
 * invocation's; of a `validity` (ok) its own, which replaces what was known before. It ends no later than the validity
 * that the lock stated (lease_end_ns).
 *  3. What a server heard of a renewal says itself how long the key lives. It counts where the lock states no validity
 *     (one that does may need a majority of servers), and where the key has an end and the client's mark
 *     (key_lives_until_ns).
 *  4. A client that re-enters a lock when its lease may be over may have been granted it anew, and then its first
 *     release ends the hold: a renewal that a server hears before that release arrives shows nothing (`left`).
 *  5. The later record may be of the earlier grant. So the other hold has to have begun before the lease of this one
 * can have been over; if its own lease may have been over when its client was granted the lock again, or renewed it, it
 *     counts as begun only then (`began_ns`).
 *
 * Broken validity: a grant that is not premature came with a validity that had not ended, CHECK_LEASE_GRAIN_NS earlier,
 * at least, than the end of the validity that the lock had announced last to another client (with several permits, to
 * as many others), which had neither invoked its release nor ended.
 *
 * What servers heard (`server-renewal`), one of each per hold. Late renewal: a command of a renewal that was sent after
 * the client's release had come back, ok or refused, and before it invoked anything else; or one that made a key
 * between such an answer and the client's next grant. Hollow renewal: a renewal came back ok, or a `validity` (ok) was
 * announced, though no server that heard of it had a key of the client's own afterwards. Long renewal: of a lock with
 * one permit, a key that had a lease or less to live lives longer than that, the lease rounded up to a whole second and
 * CHECK_LEASE_GRAIN_NS. Decision 0076. */
#include <assert.h>
#include <stdio.h>

#include "checkers/engine/checker.h"

enum { SPENT_GRANT, LATE_WRITE, LATE_RENEWAL, HOLLOW_RENEWAL, PREMATURE_GRANT, BROKEN_VALIDITY, LONG_RENEWAL };

/* The commands of renewals that servers heard since an earlier record. */
struct heard {
    bool any, own; /* there were some; one of them left a key of the client's own */
};

/* The hold that a client has released last. */
struct released_hold {
    uint64_t invoked; /* index of that release; 0: no release, or its outcome is unknown */
    uint32_t op;
    bool counted; /* a late renewal that a server heard */
};

/* What happened since the latest grant. */
struct since_grant {
    uint64_t invoked;                     /* index of the release that left nothing to release; 0: none */
    uint64_t renewing;                    /* index of a renewal that was invoked after that, 0: none */
    uint64_t renewal;                     /* index of the renewal that was invoked last, 0: none */
    int64_t renewing_ns;                  /* its stamp */
    uint32_t asking;                      /* its number */
    uint32_t announced;                   /* validities since the release came back */
    bool done;                            /* that release came back ok */
    bool counted;                         /* a late renewal of this hold has been counted */
    bool hollow;                          /* a hollow one has */
    bool prolonged;                       /* a long one has */
    struct heard in_renewal, in_validity; /* in that renewal; since the grant or the last validity */
};

struct lease_side {
    uint32_t depth; /* grants not released; of a lock with one permit that is not re-entrant: 0 or 1 */
    bool lapsed;    /* its lease may have been over when it was granted the lock again */
    bool left;      /* of such a hold a release was invoked: it may be over, whatever is renewed */
    struct latest {
        uint64_t grant; /* index; 0: none */
        int64_t until_ns;
        uint64_t announced_at; /* index of the record of `until_ns` */
    } latest;
    struct since_grant since;
    struct released_hold last;
    uint64_t asked;        /* index of its latest acquire-invoke, 0: none */
    int64_t asked_ns;      /* its stamp */
    int64_t began_ns;      /* the latest stamp at which its hold can have begun */
    int64_t runs_until_ns; /* its hold's lease certainly runs until then; only while depth > 0 */
};

/* Of one lock. */
struct lease_of_lock {
    struct check_member *granted; /* its latest grant was to this client; NULL: none */
};

struct lease_state {
    bool stated, renewed; /* a grant came with a validity; a renewal came back ok, or a server heard of one */
    bool leased;          /* a lock with a lease was granted */
    int64_t least_ns;     /* validity left when an acquire came back */
};

static SELDOM void note_stated_validity(struct checking *my, const struct event *event) {
    struct lease_state *self = my->state;
    const struct history_record *record = event->record;
    int64_t left_ns = larger(0, elapsed_ns(record->mono_ns, record->value));
    self->least_ns = self->stated ? smaller(self->least_ns, left_ns) : left_ns;
    self->stated = true;
    if (left_ns == 0)
        violate(my, event, &(struct violation){.sort = SPENT_GRANT, .who = event->actor->name},
                "%pN was granted the lock %pT, when the validity that it came with had ended, %pT", &event->actor->name,
                &record->mono_ns, &record->value);
}

/* --- leases that still run --- */

static int64_t later_ns(int64_t from_ns, int64_t by_ns) {
    return from_ns > INT64_MAX - by_ns ? INT64_MAX : from_ns + by_ns;
}

/* The end of a lease that began at `from_ns` at the earliest. `validity_ns`: what the lock states, or 0. */
static int64_t lease_end_ns(const struct event *event, int64_t from_ns, int64_t validity_ns) {
    int64_t until_ns = later_ns(from_ns, event->lock->lease_ns);
    return validity_ns ? smaller(until_ns, validity_ns) : until_ns;
}

static SELDOM void premature_grant(struct checking *my, const struct event *event, struct check_member *holder) {
    const struct lease_side *other = my_member(my, holder);
    assert(holder != event->member && other->latest.grant);
    const struct violation violation = {.sort = PREMATURE_GRANT,
                                        .who = event->actor->name,
                                        .whom = holder->actor->name,
                                        .records = {other->latest.grant}};
    violate(my, event, &violation, "%pN was granted the lock %pT, while the lease of %pG ran, until %pT at least",
            &event->actor->name, &event->record->mono_ns, &other->latest.grant, &other->runs_until_ns);
}

/* The lease of another client's hold certainly ran when the lock was granted, whichever of the two was first, if that
 * grant's lease runs until `until_ns` at least. */
static bool lease_ran(struct checking *my, const struct event *event, struct check_member *member, int64_t until_ns) {
    const struct lease_side *other = my_member(my, member);
    bool after = later_ns(event->record->mono_ns, CHECK_LEASE_GRAIN_NS) <= other->runs_until_ns;
    bool before = later_ns(other->began_ns, CHECK_LEASE_GRAIN_NS) <= until_ns;
    return other->depth && member != event->member && after && before;
}

/* The last of as many holders as the lock has permits; NULL: there are fewer. */
static struct check_member *last_holder(struct checking *my, const struct event *event, int64_t until_ns) {
    int64_t holders = 0;
    for (struct check_member *each = event->lock->members; each; each = each->next_of_lock)
        if (lease_ran(my, event, each, until_ns) && ++holders == event->lock->capacity) return each;
    return NULL;
}

/* As last_holder, of clients to which the lock has stated a validity that is not over. */
static struct check_member *last_stated(struct checking *my, const struct event *event) {
    int64_t soon_ns = later_ns(event->record->mono_ns, CHECK_LEASE_GRAIN_NS), holders = 0;
    for (struct check_member *each = event->lock->members; each; each = each->next_of_lock) {
        const struct lease_side *other = my_member(my, each);
        bool relies = each != event->member && other->depth && soon_ns <= other->latest.until_ns;
        if (relies && ++holders == event->lock->capacity) return each;
    }
    return NULL;
}

static SELDOM void broken_validity(struct checking *my, const struct event *event, struct check_member *holder) {
    const struct lease_side *other = my_member(my, holder);
    const struct violation violation = {.sort = BROKEN_VALIDITY,
                                        .who = event->actor->name,
                                        .whom = holder->actor->name,
                                        .records = {other->latest.grant}};
    violate(my, event, &violation,
            "%pN was granted the lock %pT, within the validity that it had stated to %pG, until %pT",
            &event->actor->name, &event->record->mono_ns, &other->latest.grant, &other->latest.until_ns);
}

static void run_lease(struct checking *my, const struct event *event, struct lease_side *side) {
    struct lease_of_lock *lock = my_lock(my, event->lock);
    const struct history_record *record = event->record;
    if (event->lock->lease_ns == 0) return;
    ((struct lease_state *)my->state)->leased = true;
    int64_t from_ns = check_given_ns(event, side->asked == event->asked ? event->asked : 0, side->asked_ns);
    int64_t until_ns = lease_end_ns(event, from_ns, record->value);
    struct check_member *holder = NULL;
    if (event->lock->capacity > 1) holder = last_holder(my, event, until_ns);
    else if (lock->granted && lease_ran(my, event, lock->granted, until_ns)) holder = lock->granted;
    struct check_member *relying = record->value > record->mono_ns ? last_stated(my, event) : NULL;
    if (holder && side->depth == 1) premature_grant(my, event, holder);
    else if (relying && side->depth == 1) broken_validity(my, event, relying);
    if (side->depth == 1) side->runs_until_ns = until_ns; /* to enter it again need not make the lease longer */
    lock->granted = event->member;
}

/* If the lease that was known had ended before a moment, the client may have been granted the lock anew. */
static void lease_lapse(const struct event *event, struct lease_side *side, int64_t from_ns) {
    if (side->runs_until_ns >= from_ns) return;
    side->lapsed = true;
    side->began_ns = event->record->mono_ns;
}

/* From a moment on. */
static void lease_extend(const struct event *event, struct lease_side *side, int64_t from_ns, int64_t until_ns) {
    if (side->depth == 0 || side->left || event->lock->lease_ns == 0 || until_ns < side->runs_until_ns) return;
    lease_lapse(event, side, from_ns);
    side->runs_until_ns = until_ns;
}

/* What the lock says now counts, also if it is less than before. What the driver recorded for it prolongs nothing. */
static void announce_lease(const struct event *event, struct lease_side *side) {
    const struct history_record *record = event->record;
    if (record->outcome == OUTCOME_OK && record->extra) return;
    lease_lapse(event, side, record->mono_ns);
    side->runs_until_ns = INT64_MIN; /* so that a shorter lease counts as well */
    if (record->outcome != OUTCOME_REFUSED)
        lease_extend(event, side, INT64_MIN, lease_end_ns(event, record->mono_ns, record->value));
}

static void lease_asked(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
}

static void lease_granted(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    const struct history_record *record = event->record;
    if (record->outcome != OUTCOME_OK) return;
    bool again = side->depth && (event->lock->traits & CHECK_TRAIT_REENTRANT || has_permits_to_count(event->lock));
    if (!again) {
        side->began_ns = record->mono_ns;
        side->runs_until_ns = INT64_MIN;
        side->left = side->lapsed = false;
    } else {
        side->lapsed |= has_permits_to_count(event->lock);
        lease_lapse(event, side, record->mono_ns);
    }
    side->depth = again ? side->depth + 1 : 1;
    side->latest = (struct latest){event->index, record->value, event->index};
    side->since = (struct since_grant){0};
    assert(side->depth > 0);
    run_lease(my, event, side); /* last: it compares with what this grant has begun */
    if (record->value) note_stated_validity(my, event);
}

static void lease_invoked(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    if (side->depth > 1 && side->lapsed) {
        side->left = true;
        side->runs_until_ns = INT64_MIN;
    }
    if (side->depth == 0 || --side->depth > 0) return;
    side->since.invoked = event->index;
}

static void lease_released(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    enum outcome outcome = (enum outcome)event->record->outcome;
    bool known = outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED;
    if (!event->asked || side->since.invoked != event->asked) return;
    side->since.done |= outcome == OUTCOME_OK;
    side->last = (struct released_hold){.invoked = known ? side->since.invoked : 0, .op = event->record->op};
}

static SELDOM void late_renewal(struct checking *my, const struct event *event, struct lease_side *side) {
    assert(side->since.invoked && side->since.done);
    if (side->since.counted) return;
    side->since.counted = true;
    struct history_record release = check_record_at(my->check, side->since.invoked);
    const struct violation violation = {
        .sort = LATE_RENEWAL, .who = event->actor->name, .records = {side->since.invoked}};
    violate(my, event, &violation, "the lock of %pN was renewed %pT, though it had been released %pT",
            &event->actor->name, &event->record->mono_ns, &release.mono_ns);
}

/* --- what servers heard --- */

static SELDOM void late_server_renewal(struct checking *my, const struct event *event, struct released_hold *last,
                                       bool made) {
    assert(last->invoked);
    if (last->counted) return;
    last->counted = true;
    struct history_record release = check_record_at(my->check, last->invoked);
    const struct violation violation = {.sort = LATE_RENEWAL, .who = event->actor->name, .records = {last->invoked}};
    violate(my, event, &violation,
            made ? "a renewal of %pN made the lock's key again %pT, though the lock had been released %pT"
                 : "a server heard a renewal of %pN %pT that was sent after the release %pT had come back",
            &event->actor->name, &event->record->mono_ns, &release.mono_ns);
}

/* Until when the client's key of the lock lives that a renewal has left, at least. A key that has no end says nothing:
 * the end of the lease may be in it. Nor does one without the client's mark, such as a signal to waiters. */
static int64_t key_lives_until_ns(const struct event *event) {
    const struct history_record *renewal = event->record;
    int64_t lives_ms = smaller(renewal->value, event->lock->lease_ns / CHECK_NS_PER_MS);
    bool known = lives_ms >= 0 && renewal->flags & HISTORY_FLAG_MARKED;
    return !known ? INT64_MIN : later_ns(renewal->mono_ns, lives_ms * CHECK_NS_PER_MS);
}

static SELDOM void long_renewal(struct checking *my, const struct event *event, struct lease_side *side) {
    assert(event->record->value > 0);
    if (side->since.prolonged) return;
    side->since.prolonged = true;
    const struct violation violation = {.sort = LONG_RENEWAL, .who = event->actor->name};
    violate(my, event, &violation,
            "a renewal of %pN %pT left a key that lives for %lld ms, though the lease is of %lld ms",
            &event->actor->name, &event->record->mono_ns, (long long)event->record->value,
            (long long)(event->lock->lease_ns / CHECK_NS_PER_MS));
}

/* The lock's key lives longer than a lease by that renewal. Some libraries give a lease in whole seconds. */
static bool outlives_lease(const struct event *event) {
    enum { SECOND_MS = 1000, GRAIN_MS = CHECK_LEASE_GRAIN_NS / CHECK_NS_PER_MS };
    static const unsigned LEASE_KEY = HISTORY_FLAG_MARKED | HISTORY_FLAG_PROLONGED;
    int64_t lease_ms = event->lock->lease_ns / CHECK_NS_PER_MS;
    int64_t most_ms = (lease_ms + SECOND_MS - 1) / SECOND_MS * SECOND_MS + GRAIN_MS;
    bool prolonged = (event->record->flags & LEASE_KEY) == LEASE_KEY && event->lock->capacity <= 1;
    return prolonged && lease_ms > 0 && event->record->value > most_ms;
}

static void lease_heard_by_server(struct checking *my, const struct event *event) {
    struct lease_state *self = my->state;
    struct lease_side *side = my_member(my, event->member);
    const struct history_record *record = event->record;
    bool own = record->value != 0;
    bool made = side->last.invoked && side->depth == 0 && record->flags & HISTORY_FLAG_MADE;
    self->renewed = true;
    if (own && side->latest.until_ns == 0) lease_extend(event, side, record->mono_ns, key_lives_until_ns(event));
    side->since.in_validity = (struct heard){true, own || side->since.in_validity.own};
    if (record->op == side->since.asking)
        side->since.in_renewal = (struct heard){true, own || side->since.in_renewal.own};
    bool late = side->last.invoked && record->grant == 0 && record->op == side->last.op;
    if (late || made) late_server_renewal(my, event, &side->last, !late);
    if (outlives_lease(event)) long_renewal(my, event, side);
}

/* The client was answered that it has renewed. */
static void check_hollow(struct checking *my, const struct event *event, struct lease_side *side, struct heard heard) {
    if (!heard.any || heard.own || side->since.hollow) return;
    side->since.hollow = true;
    const struct violation violation = {.sort = HOLLOW_RENEWAL, .who = event->actor->name};
    violate(my, event, &violation,
            "%pN was told %pT that its lock was renewed, though no server that heard of it had a key of its own",
            &event->actor->name, &event->record->mono_ns);
}

/* --- renewals --- */

static void lease_renews(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    side->since.renewal = event->index;
    side->since.asking = event->record->op;
    side->since.renewing_ns = event->record->mono_ns;
    side->since.in_renewal = (struct heard){0};
    if (side->since.done) side->since.renewing = event->index;
}

static void lease_renewed(struct checking *my, const struct event *event) {
    struct lease_state *self = my->state;
    struct lease_side *side = my_member(my, event->member);
    bool late = event->asked && side->since.renewing == event->asked;
    if (event->record->outcome != OUTCOME_OK) return;
    self->renewed = true;
    if (event->asked && side->since.renewal == event->asked)
        lease_extend(event, side, side->since.renewing_ns, lease_end_ns(event, side->since.renewing_ns, 0));
    if (late) late_renewal(my, event, side);
    /* Both: a late renewal may be hollow, too. */
    if (event->asked && side->since.renewal == event->asked) check_hollow(my, event, side, side->since.in_renewal);
}

static void lease_announced(struct checking *my, const struct event *event) {
    struct lease_side *side = my_member(my, event->member);
    side->latest.until_ns = validity_until_ns(event->record);
    side->latest.announced_at = event->index;
    announce_lease(event, side);
    if (event->record->outcome == OUTCOME_OK && side->since.done && ++side->since.announced == 2)
        late_renewal(my, event, side);
    if (event->record->outcome == OUTCOME_OK) check_hollow(my, event, side, side->since.in_validity);
    side->since.in_validity = (struct heard){0};
}

static SELDOM void late_write(struct checking *my, const struct event *event, const struct latest *latest) {
    struct history_record announced = check_record_at(my->check, latest->announced_at);
    bool lost = announced.kind == HISTORY_VALIDITY && announced.outcome == OUTCOME_REFUSED;
    const struct violation violation = {
        .sort = LATE_WRITE, .who = event->actor->name, .records = {latest->announced_at}};
    violate(my, event, &violation, "the store accepted a write of %pN %pT, after %s, %pT", &event->actor->name,
            &event->record->mono_ns,
            lost ? "its lock had said that the grant was lost" : "the end of the validity that its lock had stated",
            lost ? &announced.mono_ns : &latest->until_ns);
}

static void lease_written(struct checking *my, const struct event *event) {
    const struct history_record *record = event->record;
    if (!event->member) return;
    const struct latest *latest = &((struct lease_side *)my_member(my, event->member))->latest;
    if (latest->until_ns == 0 || record->outcome != OUTCOME_OK || record->grant != latest->grant) return;
    if (record->mono_ns >= latest->until_ns) late_write(my, event, latest);
}

static SELDOM void lease_ended(struct checking *my, const struct event *event) {
    *(struct lease_side *)my_member(my, event->member) = (struct lease_side){0};
}

static void lease_finish(struct checking *my) {
    const struct lease_state *self = my->state;
    if (self->stated)
        my->verdict.measures[0] = (struct verdict_measure){"least_validity_left_ms", (double)self->least_ns / 1e6};
    verdict_decide(&my->verdict, self->stated || self->renewed || self->leased,
                   "there is no lease, no stated validity and no renewal");
}

const struct checker CHECKER_LEASE = {
    .property = "lease",
    .sorts = {"spent grant", "late write", "late renewal", "hollow renewal", "premature grant", "broken validity",
              "long renewal"},
    .advisory = true,
    .state_size = sizeof(struct lease_state),
    .lock_size = sizeof(struct lease_of_lock),
    .member_size = sizeof(struct lease_side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = lease_asked,
           [HISTORY_ACQUIRE_RETURN] = lease_granted,
           [HISTORY_RELEASE_INVOKE] = lease_invoked,
           [HISTORY_RELEASE_RETURN] = lease_released,
           [HISTORY_RENEW_INVOKE] = lease_renews,
           [HISTORY_RENEW_RETURN] = lease_renewed,
           [HISTORY_VALIDITY] = lease_announced,
           [HISTORY_SERVER_RENEWAL] = lease_heard_by_server,
           [HISTORY_STORE_WRITE] = lease_written,
           [HISTORY_ACTOR_EXIT] = lease_ended},
    .finish = lease_finish,
};
