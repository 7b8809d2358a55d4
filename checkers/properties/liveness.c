/* Liveness: was every client served once nothing stood in the way any more, and was nothing left behind?
 *
 * Judged in every phase "quiet", in which nothing is broken; stuck waiters at the end, if the last phase is a quiet
 * one.
 *
 * A hold stands from its `acquire-return` (ok) to the stamp of its `release-return`; where the lock has a lease and no
 * watchdog, no longer than a lease after its grant or latest renewal. A hold whose client ended, or whose release never
 * happened by the reading, stands for one more lease from there: for bound_ms if the lock has no lease, and for ever if
 * bound_ms is not given. An acquire of unknown outcome that is read as having happened stands like a hold whose client
 * has ended. A lock is free while fewer permits are held than it has, since the last permit was given back. A hold has
 * one; where a lock has several and is not re-entrant, one for each of its grants.
 *
 * The time at a record is the latest stamp up to it, which may be another record's: stamps of two processes may be in
 * the opposite order of their records.
 *
 * Stuck waiter: an acquire in flight when the history ended, of a client that had not ended, whose own patience
 * (`value`) was over if it had any, on a lock that was free at the latest stamp of the history. If the parameter
 * bound_ms says how long a free lock may go unnoticed, it must have been free for longer than that.
 *
 * Lost wake-up: a grant, or the answer to a waiter that goes away without one, before which the lock had been free and
 * an acquire in flight for longer than bound_ms, or than a lease of the lock if bound_ms is not given. One per grant or
 * answer, of the waiter that had waited longest.
 *
 * Unserved: in the last phase, a quiet one, nobody was granted a lock that was free, though it was asked for in vain
 * for longer than that bound, at least UNSERVED_ASKS times. An acquire is asked in vain if it was answered without a
 * grant (refused, or of unknown outcome), and the lock was free from its invocation to its answer. One per lock.
 *
 * Residue: what the driver found left behind.
 *
 * Reported: the longest time for which the lock had been free and an acquire in flight, at such an answer. */
#include <assert.h>
#include <stdio.h>
#include <sys/queue.h>

#include "checkers/engine/checker.h"

enum { STUCK_WAITER, LOST_WAKE_UP, UNSERVED, RESIDUE };
enum { UNSERVED_ASKS = 3 };

static const int64_t FOR_EVER = INT64_MAX;

struct liveness_side {
    uint32_t depth;                    /* grants that it has not released */
    bool stands;                       /* its hold */
    uint32_t permits;                  /* of the hold */
    uint64_t releasing;                /* index of its last release-invoke */
    int64_t until_ns;                  /* of the hold */
    LIST_ENTRY(liveness_side) holders; /* the other clients whose holds stand */
    /* its acquire in flight */
    uint64_t asked; /* index, 0: none */
    int64_t asked_ns, wait_ms;
    struct check_actor *actor;
    TAILQ_ENTRY(liveness_side) waiters; /* the others */
};

struct liveness_queue {
    TAILQ_HEAD(, liveness_side) waiters; /* in the order in which they asked */
    LIST_HEAD(, liveness_side) holders;
    bool has_ended;   /* some hold has */
    int64_t ended_ns; /* the latest stamp at which one did */
    uint64_t ended;   /* index of the record that ended it; 0: its time was up */
    /* The acquires that were asked in vain in this quiet phase, since the latest grant. */
    uint64_t vain, first_vain, last_vain; /* their number; index of an invocation and of an answer */
    int64_t vain_since_ns, vain_until_ns;
};

struct liveness {
    bool asked, served; /* in the quiet phase: a client was answered; and rightly, with a grant or beside a holder */
    bool undecided;     /* a waiter cannot be judged */
    int64_t longest_ns; /* that a free lock went unnoticed */
};

/* --- holds --- */

static int64_t later_by(int64_t stamp_ns, int64_t lease_ns) {
    int64_t until_ns;
    return lease_ns == 0 || __builtin_add_overflow(stamp_ns, lease_ns, &until_ns) ? FOR_EVER : until_ns;
}

static void permit_end(struct liveness_queue *queue, int64_t stamp_ns, uint64_t index) {
    if (queue->has_ended && stamp_ns < queue->ended_ns) return;
    queue->has_ended = true;
    queue->ended_ns = stamp_ns;
    queue->ended = index;
}

static void hold_end(struct liveness_queue *queue, struct liveness_side *side, int64_t stamp_ns, uint64_t index) {
    if (!side->stands) return;
    assert(side->permits > 0);
    side->until_ns = smaller(side->until_ns, stamp_ns);
    permit_end(queue, side->until_ns, index);
    side->stands = false;
    LIST_REMOVE(side, holders);
}

/* Ends it if its time is up. */
static void hold_lapse(struct liveness_queue *queue, struct liveness_side *side, int64_t now_ns) {
    if (side->until_ns <= now_ns) hold_end(queue, side, side->until_ns, 0);
}

/* `another`: with one more permit than it may have. */
static void liveness_hold_begin(struct liveness_queue *queue, struct liveness_side *side, int64_t now_ns,
                                int64_t until_ns, bool another) {
    hold_lapse(queue, side, now_ns); /* first: a hold that is over gives its permits back */
    side->until_ns = until_ns;
    side->permits = side->stands ? side->permits + another : 1;
    if (side->stands) return;
    side->stands = true;
    LIST_INSERT_HEAD(&queue->holders, side, holders);
}

/* It ends when a lease is over, at the latest; if the lock has no lease, when the bound is. */
static SELDOM void hold_abandon(const struct checking *my, const struct check_lock *lock, struct liveness_side *side,
                                int64_t stamp_ns) {
    int64_t bound_ns = my->check->bound_ns, until_ns = later_by(stamp_ns, lock->lease_ns);
    if (lock->lease_ns == 0 && bound_ns >= 0) until_ns = bound_ns ? later_by(stamp_ns, bound_ns) : stamp_ns;
    side->until_ns = smaller(side->until_ns, until_ns);
}

/* Ends what is over by its stamp. True: the lock is free. */
static bool is_free(const struct check_lock *lock, struct liveness_queue *queue, int64_t stamp_ns) {
    int64_t held = 0;
    for (struct liveness_side *side = LIST_FIRST(&queue->holders), *after; side; side = after) {
        after = LIST_NEXT(side, holders);
        hold_lapse(queue, side, stamp_ns);
        held += side->stands ? side->permits : 0;
    }
    return held < lock->capacity;
}

/* --- waiters --- */

static void liveness_wait_end(struct liveness_queue *queue, struct liveness_side *side) {
    assert(side->asked);
    TAILQ_REMOVE(&queue->waiters, side, waiters);
    side->asked = 0;
}

/* For how long the waiter could have had the lock up to a stamp; 0: it could not. */
static int64_t idle_ns(const struct checking *my, const struct check_lock *lock, struct liveness_queue *queue,
                       const struct liveness_side *side, int64_t stamp_ns) {
    int64_t since_ns = larger(side->asked_ns, my->check->quiet_ns);
    if (!is_free(lock, queue, stamp_ns)) return 0;
    if (queue->has_ended) since_ns = larger(since_ns, queue->ended_ns);
    return larger(0, elapsed_ns(since_ns, stamp_ns));
}

static SELDOM void found_lost(struct checking *my, const struct event *event, const struct liveness_side *side,
                              int64_t free_ns) {
    const struct liveness_queue *queue = my_lock(my, event->lock);
    const struct violation violation = {.sort = LOST_WAKE_UP,
                                        .who = side->actor->name,
                                        .records = {side->asked, queue->ended > side->asked ? queue->ended : 0}};
    violate(
        my, event, &violation,
        "lost wake-up: the lock had been free for %pD when it was given or given up %pT, while %pN had been waiting "
        "since it asked %pT",
        &free_ns, &my->check->now_ns, &side->actor->name, &side->asked_ns);
}

static void look_for_lost(struct checking *my, const struct event *event, const struct liveness_side *side) {
    struct liveness *self = my->state;
    const struct check *check = my->check;
    bool is_bound = check->bound_ns >= 0;
    int64_t bound_ns = is_bound ? check->bound_ns : event->lock->lease_ns;
    int64_t free_ns = idle_ns(my, event->lock, my_lock(my, event->lock), side, check->now_ns);
    self->longest_ns = larger(self->longest_ns, free_ns);
    if ((is_bound || bound_ns > 0) && free_ns > bound_ns) found_lost(my, event, side, free_ns);
}

/* Was the lock there for the taking from the acquire up to its answer? */
static bool was_free_all_along(const struct checking *my, const struct event *event, struct liveness_queue *queue,
                               const struct liveness_side *side) {
    bool free = is_free(event->lock, queue, my->check->now_ns);
    return free && !(side->asked && queue->has_ended && queue->ended_ns > side->asked_ns);
}

/* An acquire is answered without a grant in the quiet phase. */
static void note_vain(const struct checking *my, const struct event *event, struct liveness_queue *queue,
                      const struct liveness_side *side) {
    struct liveness *self = my->state;
    bool vain = was_free_all_along(my, event, queue, side);
    if (!vain && event->record->outcome == OUTCOME_REFUSED) self->served = true;
    if (!vain || side->asked < my->check->quiet) return;
    if (queue->vain++ == 0) {
        queue->first_vain = side->asked;
        queue->vain_since_ns = side->asked_ns;
    }
    queue->last_vain = event->index;
    queue->vain_until_ns = my->check->now_ns;
}

/* --- records --- */

static void liveness_invoked(struct checking *my, const struct event *event) {
    struct liveness_side *side = my_member(my, event->member);
    struct liveness_queue *queue = my_lock(my, event->lock);
    if (side->asked) liveness_wait_end(queue, side);
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
    side->wait_ms = event->record->value;
    side->actor = event->actor;
    if (TAILQ_EMPTY(&queue->waiters)) TAILQ_INIT(&queue->waiters);
    TAILQ_INSERT_TAIL(&queue->waiters, side, waiters);
}

static int64_t hold_until(const struct check_lock *lock, int64_t stamp_ns) {
    return lock->traits & CHECK_TRAIT_RENEWS ? FOR_EVER : later_by(stamp_ns, lock->lease_ns);
}

static void liveness_answered(struct checking *my, const struct event *event) {
    struct liveness *self = my->state;
    struct liveness_side *side = my_member(my, event->member);
    struct liveness_queue *queue = my_lock(my, event->lock);
    bool granted = event->record->outcome == OUTCOME_OK, another = has_permits_to_count(event->lock);
    if (my->check->quiet) self->asked = true;
    if (my->check->quiet && granted) {
        self->served = true;
        queue->vain = 0;
    }
    if (my->check->quiet && !granted) note_vain(my, event, queue, side);
    if (side->asked) {
        /* While this waiter still counts: it may be the one that has waited longest. */
        if (my->check->quiet) look_for_lost(my, event, granted ? TAILQ_FIRST(&queue->waiters) : side);
        liveness_wait_end(queue, side);
    }
    int64_t stamp_ns = event->record->mono_ns;
    if (granted) {
        bool again = side->depth && (another || event->lock->traits & CHECK_TRAIT_REENTRANT);
        side->depth = again ? side->depth + 1 : 1;
        liveness_hold_begin(queue, side, my->check->now_ns, hold_until(event->lock, stamp_ns), another);
    } else if (event->record->outcome != OUTCOME_REFUSED && my->check->reading.acquires_happen) {
        int64_t until_ns = later_by(stamp_ns, event->lock->lease_ns);
        if (side->stands) until_ns = larger(until_ns, side->until_ns);
        liveness_hold_begin(queue, side, my->check->now_ns, until_ns, another);
    }
}

static void liveness_renewed(struct checking *my, const struct event *event) {
    struct liveness_side *side = my_member(my, event->member);
    int64_t stamp_ns = event->record->mono_ns;
    if (event->record->outcome != OUTCOME_OK || side->depth == 0) return;
    liveness_hold_begin(my_lock(my, event->lock), side, my->check->now_ns, hold_until(event->lock, stamp_ns), false);
    if (has_permits_to_count(event->lock)) side->permits = (uint32_t)larger(side->permits, side->depth);
}

static void liveness_releases(struct checking *my, const struct event *event) {
    struct liveness_side *side = my_member(my, event->member);
    if (side->depth > 1 && !has_permits_to_count(event->lock)) side->depth--;
    else side->releasing = event->index;
}

/* One of several permits. If it was not given back by the reading, the hold keeps it. */
static void liveness_give_back(struct liveness_queue *queue, struct liveness_side *side, const struct event *event) {
    if (event->failed) return;
    assert(side->depth > 1); /* the last one ends the hold */
    side->depth--;
    if (!side->stands || side->permits == 1) return;
    side->permits--;
    permit_end(queue, event->record->mono_ns, event->index);
}

static void liveness_released(struct checking *my, const struct event *event) {
    struct liveness_side *side = my_member(my, event->member);
    struct liveness_queue *queue = my_lock(my, event->lock);
    if (!event->asked || side->releasing != event->asked) return;
    hold_lapse(queue, side, my->check->now_ns);
    if (side->depth > 1 && has_permits_to_count(event->lock)) {
        liveness_give_back(queue, side, event);
        return;
    }
    side->depth = 0;
    if (event->failed) hold_abandon(my, event->lock, side, event->record->mono_ns);
    else hold_end(queue, side, event->record->mono_ns, event->index);
}

static SELDOM void liveness_ended(struct checking *my, const struct event *event) {
    struct liveness_side *side = my_member(my, event->member);
    if (side->asked) liveness_wait_end(my_lock(my, event->lock), side);
    hold_abandon(my, event->lock, side, event->record->mono_ns);
    side->depth = 0;
}

static void phase(struct checking *my, const struct event *event) {
    struct liveness *self = my->state;
    self->asked = self->served = false;
    for (struct check_lock *lock = my->check->locks; lock; lock = lock->next)
        ((struct liveness_queue *)my_lock(my, lock))->vain = 0;
    (void)event;
}

static SELDOM void residue(struct checking *my, const struct event *event) {
    if (event->record->value > 0)
        violate(my, event, &(struct violation){.sort = RESIDUE, .who = event->record->name},
                "residue: %lld of %pN left behind", (long long)event->record->value, &event->record->name);
}

/* --- the end --- */

static SELDOM void look_for_stuck(struct checking *my, const struct check_lock *lock, struct liveness_queue *queue,
                                  const struct liveness_side *side) {
    struct liveness *self = my->state;
    const struct check *check = my->check;
    int64_t waited_ns = larger(0, elapsed_ns(side->asked_ns, check->now_ns));
    bool patient = side->wait_ms >= 0 && waited_ns / 1000000 <= side->wait_ms;
    bool free = is_free(lock, queue, check->now_ns);
    if (patient || !free ||
        (check->bound_ns >= 0 && idle_ns(my, lock, queue, side, check->now_ns) <= check->bound_ns)) {
        self->undecided = true;
        return;
    }
    const struct violation violation = {
        .sort = STUCK_WAITER, .who = side->actor->name, .records = {side->asked, check->quiet}};
    violate(my, NULL, &violation,
            "stuck waiter: %pN asked for the lock %pT and was not answered in the %pD up to the end, %pT, when nobody "
            "held it any more",
            &side->actor->name, &side->asked_ns, &waited_ns, &check->now_ns);
}

static SELDOM void look_for_unserved(struct checking *my, const struct check_lock *lock,
                                     const struct liveness_queue *queue) {
    const struct check *check = my->check;
    int64_t bound_ns = check->bound_ns >= 0 ? check->bound_ns : lock->lease_ns;
    int64_t vain_ns = larger(0, elapsed_ns(queue->vain_since_ns, queue->vain_until_ns));
    if (queue->vain < UNSERVED_ASKS || (check->bound_ns < 0 && bound_ns == 0) || vain_ns <= bound_ns) return;
    const struct violation violation = {
        .sort = UNSERVED, .who = lock->name, .records = {queue->first_vain, queue->last_vain}};
    violate(my, NULL, &violation,
            "unserved: %lld acquires of %pN, which nobody held, ended without a grant within %pD, the first asked for "
            "%pT, and nobody was granted it afterwards",
            (long long)queue->vain, &lock->name, &vain_ns, &queue->vain_since_ns);
}

static void liveness_finish(struct checking *my) {
    const struct liveness *self = my->state;
    const struct liveness_side *side;
    for (struct check_lock *lock = my->check->quiet ? my->check->locks : NULL; lock; lock = lock->next) {
        struct liveness_queue *queue = my_lock(my, lock);
        TAILQ_FOREACH (side, &queue->waiters, waiters) look_for_stuck(my, lock, queue, side);
        look_for_unserved(my, lock, queue);
    }
    if (my->check->seen[HISTORY_PHASE])
        my->verdict.measures[0] = (struct verdict_measure){"longest_unnoticed_ms", (double)self->longest_ns / 1e6};
    my->verdict.applies = my->check->quiet != 0;
    verdict_decide(&my->verdict, my->check->quiet && self->served && !self->undecided,
                   !my->check->quiet ? "there was no quiet phase in which everybody should have been served"
                   : self->undecided ? "the history ended too early for those who were still waiting"
                   : self->asked     ? "nobody was granted the lock in the quiet phase"
                                     : "nobody wanted the lock in the quiet phase");
}

const struct checker CHECKER_LIVENESS = {
    .property = "liveness",
    .sorts = {"stuck waiter", "lost wake-up", "unserved", "residue"},
    .state_size = sizeof(struct liveness),
    .lock_size = sizeof(struct liveness_queue),
    .member_size = sizeof(struct liveness_side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = liveness_invoked,
           [HISTORY_ACQUIRE_RETURN] = liveness_answered,
           [HISTORY_RENEW_RETURN] = liveness_renewed,
           [HISTORY_RELEASE_INVOKE] = liveness_releases,
           [HISTORY_RELEASE_RETURN] = liveness_released,
           [HISTORY_ACTOR_EXIT] = liveness_ended,
           [HISTORY_PHASE] = phase,
           [HISTORY_RESIDUE] = residue},
    .finish = liveness_finish,
};
