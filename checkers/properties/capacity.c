/* Capacity: were never more permits of a lock out than it has? Judges locks that have two or more permits by then.
 *
 * Every grant takes a permit, also a grant to a client that has some already (of a re-entrant lock only the first grant
 * does); every release-invoke gives one back. All permits of a client end at the earliest validity that its grants came
 * with, which a later `validity` replaces, and when its process ends. Two things are violations:
 *
 * Surplus grant: a grant that came back when as many permits were out as the lock has.
 *
 * Unowned release: a release that came back ok to a client that had no permit when it asked, so the lock has one permit
 * too many from here on. It does not count where the client may have had one: after an acquire of unknown outcome, a
 * release that failed, or permits whose validity was over. */
#include <stdio.h>
#include <sys/queue.h>

#include "checkers/engine/checker.h"

enum { SURPLUS, UNOWNED };

struct permits {
    uint32_t out;          /* grants that it has not released */
    uint32_t taken;        /* permits for them */
    uint32_t perhaps;      /* permits that it may have besides */
    bool had;              /* a permit, or perhaps one, when it invoked its release */
    uint64_t grant, asked; /* latest grant; latest release-invoke */
    int64_t until_ns;
    TAILQ_ENTRY(permits) others;
};

struct permit_pool {
    TAILQ_HEAD(, permits) holders; /* in the order in which they were granted their first */
    int64_t out;
    bool stamped;
};

struct capacity {
    bool granted; /* a lock with several permits was */
};

static void leave(struct permit_pool *pool, struct permits *permits) {
    TAILQ_REMOVE(&pool->holders, permits, others);
    pool->out -= permits->taken;
    permits->out = permits->taken = 0;
}

static SELDOM void capacity_lapse(struct permit_pool *pool, int64_t mono_ns) {
    for (struct permits *permits = TAILQ_FIRST(&pool->holders), *later; permits; permits = later) {
        later = TAILQ_NEXT(permits, others);
        if (permits->until_ns == 0 || permits->until_ns > mono_ns) continue;
        permits->perhaps += permits->taken;
        leave(pool, permits);
    }
}

static SELDOM void surplus(struct checking *my, const struct event *event, const struct permit_pool *pool) {
    const struct permits *each;
    struct violation violation = {.sort = SURPLUS,
                                  .who = event->actor->name,
                                  .whom = check_record_at(my->check, TAILQ_FIRST(&pool->holders)->grant).actor};
    int64_t shown = 0;
    int count = 0;
    TAILQ_FOREACH (each, &pool->holders, others) {
        if (shown >= event->lock->capacity || count == EVIDENCE_RECORDS - 1) break;
        violation.records[count++] = each->grant;
        shown += each->taken;
    }
    violate(my, event, &violation, "%pN was granted a permit %pT while all %lld were out, the longest with %pG",
            &event->actor->name, &event->record->mono_ns, (long long)event->lock->capacity, &violation.records[0]);
}

static void capacity_answered(struct checking *my, const struct event *event) {
    struct capacity *self = my->state;
    struct permit_pool *pool = my_lock(my, event->lock);
    struct permits *permits = my_member(my, event->member);
    if (event->record->outcome != OUTCOME_OK) {
        permits->perhaps += event->record->outcome != OUTCOME_REFUSED;
        return;
    }
    self->granted |= event->lock->capacity > 1;
    if (TAILQ_EMPTY(&pool->holders)) TAILQ_INIT(&pool->holders);
    if (pool->stamped) capacity_lapse(pool, event->record->mono_ns);
    bool nested = permits->out && event->lock->traits & CHECK_TRAIT_REENTRANT;
    if (!nested && event->lock->capacity > 1 && pool->out >= event->lock->capacity) surplus(my, event, pool);
    if (permits->out == 0) TAILQ_INSERT_TAIL(&pool->holders, permits, others);
    int64_t until_ns = event->record->value, before_ns = permits->out ? permits->until_ns : 0;
    permits->until_ns = before_ns && until_ns ? smaller(before_ns, until_ns) : before_ns + until_ns;
    if (until_ns) pool->stamped = true;
    permits->grant = event->index;
    permits->out++;
    permits->taken += !nested;
    pool->out += !nested;
}

static void capacity_asked(struct checking *my, const struct event *event) {
    struct permit_pool *pool = my_lock(my, event->lock);
    struct permits *permits = my_member(my, event->member);
    permits->asked = event->index;
    permits->had = permits->out || permits->perhaps;
    if (permits->out == 0) {
        permits->perhaps -= permits->perhaps > 0;
    } else if (event->failed) {
        return;
    } else if (permits->out == 1) {
        leave(pool, permits);
    } else {
        bool taken = permits->taken == permits->out; /* not so where the lock is re-entrant */
        permits->out--;
        permits->taken -= taken;
        pool->out -= taken;
    }
}

static SELDOM void unowned(struct checking *my, const struct event *event) {
    violate(my, event, &(struct violation){.sort = UNOWNED, .who = event->actor->name, .records = {event->asked}},
            "%pN had no permit when it released one, and was told %pT that it had: there is one permit too many now",
            &event->actor->name, &event->record->mono_ns);
}

static void capacity_released(struct checking *my, const struct event *event) {
    struct permits *permits = my_member(my, event->member);
    if (!event->asked || permits->asked != event->asked) return;
    if (event->record->outcome != OUTCOME_OK) permits->perhaps += permits->had;
    else if (!permits->had && event->lock->capacity > 1) unowned(my, event);
}

static void capacity_announced(struct checking *my, const struct event *event) {
    struct permits *permits = my_member(my, event->member);
    struct permit_pool *pool = my_lock(my, event->lock);
    if (permits->out) permits->until_ns = validity_until_ns(event->record);
    pool->stamped = true;
}

static SELDOM void capacity_ended(struct checking *my, const struct event *event) {
    struct permits *permits = my_member(my, event->member);
    if (permits->out) leave(my_lock(my, event->lock), permits);
    permits->perhaps = 0;
}

static void capacity_finish(struct checking *my) {
    const struct capacity *self = my->state;
    my->verdict.applies = my->check->capacity > 1;
    verdict_decide(&my->verdict, self->granted,
                   my->verdict.applies ? "nobody was granted a permit" : "no lock has more than one permit");
}

const struct checker CHECKER_CAPACITY = {
    .property = "capacity",
    .sorts = {"surplus grant", "unowned release"},
    .state_size = sizeof(struct capacity),
    .lock_size = sizeof(struct permit_pool),
    .member_size = sizeof(struct permits),
    .on = {[HISTORY_ACQUIRE_RETURN] = capacity_answered,
           [HISTORY_RELEASE_INVOKE] = capacity_asked,
           [HISTORY_RELEASE_RETURN] = capacity_released,
           [HISTORY_VALIDITY] = capacity_announced,
           [HISTORY_ACTOR_EXIT] = capacity_ended},
    .finish = capacity_finish,
};
