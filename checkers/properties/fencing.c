/* Fencing: are tokens unique per grant, do they rise in grant order, was every stale access rejected, and no access of
 * the rightful holder?
 *
 * Rising: the token of a grant is larger than that of every grant that had returned before this acquire was invoked.
 * Two acquires that were in flight together may come back in either order: the history records when a client learned of
 * its grant, not when the server gave it. But of a lock with a lease and one permit, a grant that came back to another
 * client more than CHECK_LEASE_GRAIN_NS earlier than a lease after the stamp before which this one was not granted
 * (check_given_ns) was given before this one: had this one been first, its lease would have kept
 * the other out. So this token has to be larger; a lock that draws the token before it takes the lock gives a smaller
 * one, and the fence then turns away the rightful holder. (Not of a grant that re-enters, which need not make the lease
 * longer.)
 *
 * Unique: no two grants carry the same token, whenever they were in flight. A grant to a client that has not released a
 * re-entrant lock may repeat its token, unless a newer one had come back.
 *
 * Stale access: the store accepted a read or write with a token older than that of an access under the same lock that
 * it had accepted before. Accesses whose lock the history does not name are compared with each other if they are of the
 * same object: two locks count their tokens each for itself. Accesses under a lock with several permits are not
 * compared: an older grant may stand beside a newer one.
 *
 * Wrongful refusal: the store refused a read or write whose token was older than that of an access under the same lock
 * that it had accepted, though its client was the rightful holder: it had not released its latest grant, no grant had
 * come back to another client since, and every grant that had come back before was given before this one (by the two
 * rules of "Rising"). Nothing late was stopped by it. Decision 0036. */
#include <assert.h>
#include <stdio.h>

#include "checkers/engine/checker.h"

enum { MISSING, REPEATED, FALLING, STALE, WRONGFUL };
enum { DRAWN_EARLY = WRONGFUL + 1 }; /* a sentence of its own, of the sort FALLING */

struct issued {
    int64_t token;
    uint64_t index; /* of the grant; 0: no grant */
};

struct fencing_side {
    uint64_t invoked;    /* acquire in flight, 0: none */
    int64_t invoked_ns;  /* its stamp */
    struct issued floor; /* the newest token that had come back by then */
    uint32_t depth;      /* of a re-entrant lock */
    int64_t token;       /* of its latest grant */
    bool is_newest;      /* all grants that had come back before its latest one were given before it */
};

/* Of one lock. */
struct tokens {
    struct issued newest; /* that was granted */
    struct issued seen;   /* newest token of an accepted access, and that index */
    uint64_t granted;     /* index of the latest grant, 0: none */
    int64_t granted_ns;   /* the latest stamp of all of them */
};

struct fencing {
    bool applies, granted;             /* a token came back; it was granted */
    uint64_t changed;                  /* re-entries with another token than the hold had */
    struct issued seen[UINT8_MAX + 1]; /* by object: of the accepted accesses whose lock is not known */
    uint64_t looked;                   /* records that were read a second time */
};

enum { LOOKED_MOST = 1 << 26 };

static bool token_is_older(int64_t token, const struct issued *than) {
    return than->index && token < than->token;
}

static bool token_is_newer(int64_t token, const struct issued *than) {
    return !than->index || token > than->token;
}

/* Of what an earlier grant is looked for: the same token, or a larger one that came back before a stamp. */
struct sought {
    bool same;
    int64_t before_ns;
};

static bool is_sought(const struct event *event, const struct history_record *earlier, struct sought sought) {
    if (earlier->kind != HISTORY_ACQUIRE_RETURN || earlier->outcome != OUTCOME_OK ||
        earlier->name != event->record->name)
        return false;
    if (sought.same) return earlier->token == event->record->token;
    return earlier->token && earlier->token > event->record->token && earlier->actor != event->record->actor &&
           earlier->mono_ns < sought.before_ns;
}

/* The latest such grant since this acquire was invoked; 0: none. It is looked for only when the token is not the newest
 * one, which takes a lock whose grants overlap: so the history is read again instead of kept in memory. */
static SELDOM uint64_t look_back(const struct checking *my, const struct event *event, uint64_t since,
                                 struct sought sought) {
    struct fencing *self = my->state;
    for (uint64_t index = event->index; index-- > since && self->looked < LOOKED_MOST; self->looked++) {
        struct history_record record = check_record_at(my->check, index);
        if (is_sought(event, &record, sought)) return index;
    }
    return 0;
}

/* A grant that came back to another client before this stamp was given before this one, whose lease would have kept it
 * out; INT64_MIN: that is not known. */
static int64_t kept_out_until_ns(const struct checking *my, const struct event *event, uint64_t since) {
    const struct check_lock *lock = event->lock;
    if (lock->lease_ns == 0 || lock->capacity > 1 || since == event->index) return INT64_MIN;
    const struct fencing_side *side = my_member(my, event->member);
    int64_t from_ns = check_given_ns(event, since, side->invoked_ns), until_ns;
    if (__builtin_add_overflow(from_ns, lock->lease_ns - CHECK_LEASE_GRAIN_NS, &until_ns)) return INT64_MIN;
    return until_ns;
}

static SELDOM void fencing_violate(struct checking *my, const struct event *event, unsigned sort, uint64_t earlier) {
    static const char *const why[] = {[MISSING] = "no token, though the lock gives them",
                                      [REPEATED] = "a token that had been given out before",
                                      [FALLING] =
                                          "a token that is older than one which had come back before it was asked for",
                                      [DRAWN_EARLY] = "a token that is older than that of a grant which came before"};
    char other[180] = "", text[160];
    const struct violation violation = {
        .sort = sort == DRAWN_EARLY ? FALLING : sort, .who = event->lock->name, .records = {earlier}};
    if (earlier) snprintf(other, sizeof other, ": that of %s", check_grant(my->check, earlier, text, sizeof text));
    violate(my, event, &violation, "%pN was granted token %lld %pT, %s%s", &event->actor->name,
            (long long)event->record->token, &event->record->mono_ns, why[sort], other);
}

static void fencing_invoked(struct checking *my, const struct event *event) {
    const struct tokens *tokens = my_lock(my, event->lock);
    struct fencing_side *side = my_member(my, event->member);
    side->invoked = event->index;
    side->invoked_ns = event->record->mono_ns;
    side->floor = tokens->newest;
}

/* A token that is not the newest one, and not older than what had come back when it was asked for. */
static SELDOM void given_together(struct checking *my, const struct event *event, struct issued floor, uint64_t since,
                                  bool again) {
    assert(event->record->token && since <= event->index);
    /* Of a larger token, and certainly given before this one, though they were in flight together. */
    int64_t until_ns = again ? INT64_MIN : kept_out_until_ns(my, event, since);
    uint64_t earlier = until_ns == INT64_MIN ? 0 : look_back(my, event, since, (struct sought){.before_ns = until_ns});
    if (earlier) {
        fencing_violate(my, event, DRAWN_EARLY, earlier);
        return;
    }
    bool known = floor.index && floor.token == event->record->token;
    uint64_t same = known ? floor.index : look_back(my, event, since, (struct sought){.same = true});
    if (same) fencing_violate(my, event, REPEATED, same);
}

static void fencing_given(struct checking *my, const struct event *event, const struct fencing_side *side,
                          struct issued floor, uint64_t since, bool again) {
    struct fencing *self = my->state;
    struct issued *newest = &((struct tokens *)my_lock(my, event->lock))->newest;
    int64_t token = event->record->token;
    if (token == 0 && !(event->lock->traits & CHECK_TRAIT_TOKEN)) return;
    self->granted = true;
    if (again && token && side->token == token && !token_is_older(token, &floor))
        return; /* the same token again: nothing new was given out */
    self->changed += again && side->token != token;
    if (token == 0) {
        fencing_violate(my, event, MISSING, 0);
    } else if (token_is_newer(token, newest)) {
        *newest = (struct issued){token, event->index};
    } else if (token_is_older(token, &floor)) {
        assert(floor.index && floor.index < event->index);
        fencing_violate(my, event, FALLING, floor.index);
    } else {
        given_together(my, event, floor, since, again);
    }
}

static void fencing_answered(struct checking *my, const struct event *event) {
    struct fencing *self = my->state;
    struct fencing_side *side = my_member(my, event->member);
    struct tokens *tokens = my_lock(my, event->lock);
    struct issued floor = side->invoked ? side->floor : tokens->newest;
    uint64_t since = side->invoked ? side->invoked : event->index;
    side->invoked = 0;
    self->applies |= event->record->token != 0;
    if (event->record->outcome != OUTCOME_OK) return;
    bool again = side->depth && event->lock->traits & CHECK_TRAIT_REENTRANT;
    fencing_given(my, event, side, floor, since, again);
    side->depth = again ? side->depth + 1 : 1;
    side->token = event->record->token;
    /* Before `tokens` takes this grant in: it is compared with those before it. */
    side->is_newest = tokens->granted < since || (!again && tokens->granted_ns < kept_out_until_ns(my, event, since));
    tokens->granted_ns = tokens->granted ? larger(tokens->granted_ns, event->record->mono_ns) : event->record->mono_ns;
    tokens->granted = event->index;
}

static void fencing_released(struct checking *my, const struct event *event) {
    struct fencing_side *side = my_member(my, event->member);
    if (side->depth && !event->failed) side->depth--;
}

static SELDOM void fencing_ended(struct checking *my, const struct event *event) {
    struct fencing_side *side = my_member(my, event->member);
    side->depth = 0;
    side->invoked = 0;
}

static SELDOM void fencing_violate_stale(struct checking *my, const struct event *event, uint64_t newer) {
    const struct history_record *record = event->record;
    struct history_record other = check_record_at(my->check, newer);
    const struct violation violation = {.sort = STALE, .who = record->name, .whom = other.name, .records = {newer}};
    violate(my, event, &violation,
            "the store accepted a stale %s %pT: %pN came with token %lld after %pN with token %lld",
            record->kind == HISTORY_STORE_WRITE ? "write" : "read", &record->mono_ns, &record->name,
            (long long)record->token, &other.name, (long long)other.token);
}

static bool is_rightful_holder(const struct checking *my, const struct event *event) {
    if (!event->lock || event->lock->capacity > 1) return false;
    const struct fencing_side *side = my_member(my, event->member);
    const struct tokens *tokens = my_lock(my, event->lock);
    bool is_latest = tokens->granted == event->record->grant && event->member->grant == event->record->grant;
    return is_latest && side->is_newest && side->depth;
}

static SELDOM void violate_wrongful(struct checking *my, const struct event *event, uint64_t newer) {
    const struct history_record *record = event->record;
    char early[64];
    struct history_record other = check_record_at(my->check, newer);
    assert(record->grant && newer < event->index);
    bool has_object = record->object != HISTORY_OBJECT_NONE && record->object < HISTORY_OBJECT_COUNT;
    my->check->refused_wrongfully += record->kind == HISTORY_STORE_WRITE && has_object;
    const struct violation violation = {
        .sort = WRONGFUL, .who = record->name, .whom = other.name, .records = {newer, record->grant}};
    violate(my, event, &violation,
            "the store refused a %s of the rightful holder %pT: %pG, for %s had come with token %lld under an earlier "
            "grant",
            record->kind == HISTORY_STORE_WRITE ? "write" : "read", &record->mono_ns, &violation.records[1],
            other.name == record->name ? "it" : history_name(my->check->reader, other.name, early, sizeof early),
            (long long)other.token);
}

static void fencing_refused(struct checking *my, const struct event *event) {
    const struct issued *seen = event->lock ? &((struct tokens *)my_lock(my, event->lock))->seen : NULL;
    bool wrongful =
        seen && event->record->token && token_is_older(event->record->token, seen) && is_rightful_holder(my, event);
    if (wrongful) violate_wrongful(my, event, seen->index);
    else my->verdict.stopped++;
}

static void accessed(struct checking *my, const struct event *event) {
    struct fencing *self = my->state;
    const struct history_record *record = event->record;
    if (record->outcome == OUTCOME_REFUSED) fencing_refused(my, event);
    if (record->token == 0) return;
    self->applies = true;
    if (record->outcome != OUTCOME_OK) return;
    if (event->lock && event->lock->capacity > 1) return;
    struct issued *seen =
        event->lock ? &((struct tokens *)my_lock(my, event->lock))->seen : &self->seen[record->object];
    if (token_is_older(record->token, seen)) fencing_violate_stale(my, event, seen->index);
    else *seen = (struct issued){record->token, event->index};
}

static void fencing_finish(struct checking *my) {
    const struct fencing *self = my->state;
    my->verdict.applies = self->applies || my->check->traits & CHECK_TRAIT_TOKEN;
    my->verdict.measures[0] = (struct verdict_measure){"tokens_changed_on_reentry", (double)self->changed};
    bool seen_all = self->looked < LOOKED_MOST;
    verdict_decide(&my->verdict, self->granted && seen_all,
                   !seen_all             ? "too many grants came back out of order to tell whether tokens repeat"
                   : my->verdict.applies ? "nobody was granted a token"
                                         : "the lock gives no fencing token");
}

const struct checker CHECKER_FENCING = {
    .property = "fencing",
    .sorts = {"missing token", "repeated token", "falling token", "stale access", "wrongful refusal"},
    .state_size = sizeof(struct fencing),
    .lock_size = sizeof(struct tokens),
    .member_size = sizeof(struct fencing_side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = fencing_invoked,
           [HISTORY_ACQUIRE_RETURN] = fencing_answered,
           [HISTORY_RELEASE_INVOKE] = fencing_released,
           [HISTORY_STORE_READ] = accessed,
           [HISTORY_STORE_WRITE] = accessed,
           [HISTORY_ACTOR_EXIT] = fencing_ended},
    .finish = fencing_finish,
};
