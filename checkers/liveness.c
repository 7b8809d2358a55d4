/* Liveness: was everybody served once nothing stood in the way any more, and was anything left behind?
 *
 * Judged from the beginning of the last phase "quiet", in which everything has been healed.
 *
 * A hold stands from its `acquire-return` (ok) to the stamp of its `release-return`; but no longer than a lease from
 * its grant or its latest renewal, where the lock has a lease and no watchdog. A hold whose client ended, or whose
 * release by the reading never happened, stands for one more lease from there - for bound_ms, if the lock has none, and
 * for ever, if that is not said. An acquire that is read as having happened though its outcome is unknown stands like a
 * hold whose client has ended. A lock is free while fewer holds stand than it has permits; since when: since the last
 * hold ended.
 *
 * Time goes by the latest stamp up to a record, which may be another one's: stamps of two processes may stand in the
 * opposite order.
 *
 * Stuck waiter: an acquire that was in flight when the history ended, of a client that had not ended, whose own
 * patience (`value`) was over if it had any, on a lock that was free at the latest stamp of the history - and, where
 * the parameter bound_ms says how long a free lock may go unnoticed, had been for longer than that.
 *
 * Lost wake-up: a grant, or the answer to a waiter that goes away empty-handed, before which the lock had been free and
 * somebody's acquire in flight for longer than bound_ms; if that is not said, than a lease of the lock. Once per grant
 * or answer, of the waiter that had waited longest.
 *
 * Residue: what the driver found left behind. */
#include <stdio.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_LIVENESS;

enum { STUCK_WAITER, LOST_WAKE_UP, RESIDUE };

static const int64_t FOR_EVER = INT64_MAX;

struct side {
    uint32_t depth;              /* grants that it has not released */
    bool stands;                 /* its hold */
    uint64_t releasing;          /* index of its last release-invoke, 0: it has been answered */
    int64_t until_ns;            /* of the hold */
    struct side *before, *after; /* whose hold stands too */
    /* its acquire in flight */
    uint64_t asked; /* index, 0: none */
    int64_t asked_ns, wait_ms;
    struct check_actor *actor;
    struct side *earlier, *later; /* who waits too */
};

struct queue {
    struct side *first, *last; /* who waits, in the order in which they asked */
    struct side *holds;
    bool has_ended;   /* some hold has */
    int64_t ended_ns; /* the latest stamp at which one did */
    uint64_t ended;   /* index of the record that said so, 0: none did, its time was up */
};

struct liveness {
    uint64_t served, undecided; /* answers in the quiet phase; waiters of whom nothing can be said */
};

/* --- holds --- */

static int64_t later_by(int64_t stamp_ns, int64_t lease_ns) {
    return lease_ns == 0 || stamp_ns > FOR_EVER - lease_ns ? FOR_EVER : stamp_ns + lease_ns;
}

static void hold_end(struct queue *queue, struct side *side, int64_t stamp_ns, uint64_t index) {
    if (!side->stands) return;
    if (side->until_ns > stamp_ns) side->until_ns = stamp_ns;
    if (!queue->has_ended || side->until_ns > queue->ended_ns) {
        queue->has_ended = true;
        queue->ended_ns = side->until_ns;
        queue->ended = index;
    }
    side->stands = false;
    *(side->before ? &side->before->after : &queue->holds) = side->after;
    if (side->after) side->after->before = side->before;
}

/* Ends it if its time is up. */
static void hold_lapse(struct queue *queue, struct side *side, int64_t now_ns) {
    if (side->stands && side->until_ns <= now_ns) hold_end(queue, side, side->until_ns, 0);
}

static void hold_begin(struct queue *queue, struct side *side, int64_t now_ns, int64_t until_ns) {
    hold_lapse(queue, side, now_ns);
    side->until_ns = until_ns;
    if (side->stands) return;
    side->stands = true;
    side->before = NULL;
    side->after = queue->holds;
    if (queue->holds) queue->holds->before = side;
    queue->holds = side;
}

/* Nothing is known of its end but that a lease will be over; for a lock that has none the bound stands in. */
static SELDOM void hold_abandon(const struct checking *my, const struct check_lock *lock, struct side *side,
                                int64_t stamp_ns) {
    int64_t bound_ns = my->check->bound_ns, until_ns = later_by(stamp_ns, lock->lease_ns);
    if (lock->lease_ns == 0 && bound_ns >= 0) until_ns = bound_ns ? later_by(stamp_ns, bound_ns) : stamp_ns;
    if (until_ns < side->until_ns) side->until_ns = until_ns;
}

/* Ends what is over by its stamp. True: the lock is free. */
static bool is_free(const struct check_lock *lock, struct queue *queue, int64_t stamp_ns) {
    int64_t standing = 0;
    for (struct side *side = queue->holds, *after; side; side = after) {
        after = side->after;
        hold_lapse(queue, side, stamp_ns);
        standing += side->stands;
    }
    return standing < lock->capacity;
}

/* --- waiters --- */

static void wait_begin(struct queue *queue, struct side *side) {
    side->earlier = queue->last;
    side->later = NULL;
    *(queue->last ? &queue->last->later : &queue->first) = side;
    queue->last = side;
}

static void wait_end(struct queue *queue, struct side *side) {
    *(side->earlier ? &side->earlier->later : &queue->first) = side->later;
    *(side->later ? &side->later->earlier : &queue->last) = side->earlier;
    side->asked = 0;
}

/* For how long the waiter could have had the lock up to a stamp; 0: it could not. Its records are filled in. */
static int64_t idle_ns(const struct checking *my, const struct check_lock *lock, struct queue *queue,
                       const struct side *side, int64_t stamp_ns) {
    int64_t since_ns = side->asked_ns > my->check->quiet_ns ? side->asked_ns : my->check->quiet_ns;
    if (stamp_ns <= since_ns || !is_free(lock, queue, stamp_ns)) return 0;
    if (queue->has_ended && queue->ended_ns > since_ns) since_ns = queue->ended_ns;
    return stamp_ns > since_ns ? elapsed_ns(since_ns, stamp_ns) : 0;
}

static SELDOM void look_for_lost(struct checking *my, const struct event *event, const struct side *side) {
    struct queue *queue = my_lock(my, event->lock);
    const struct check *check = my->check;
    int64_t bound_ns = check->bound_ns >= 0 ? check->bound_ns : event->lock->lease_ns;
    if (check->bound_ns < 0 && bound_ns == 0) return;
    int64_t stamp_ns = check->now_ns;
    if (elapsed_ns(side->asked_ns, stamp_ns) <= bound_ns) return;
    int64_t free_ns = idle_ns(my, event->lock, queue, side, stamp_ns);
    if (free_ns <= bound_ns) return;
    char name[64], when[40], asked[40], duration[40];
    struct violation violation = {
        .sort = LOST_WAKE_UP, .times = 1, .who = side->actor->name, .records = {side->asked}, .record_count = 1};
    if (queue->ended > side->asked) violation.records[violation.record_count++] = queue->ended;
    violation.records[violation.record_count++] = event->index;
    struct evidence *evidence = verdict_violate(&my->verdict, &violation);
    if (!evidence) return;
    snprintf(evidence->text, sizeof evidence->text,
             "lost wake-up: the lock had been free for %s when it was given or given up %s, while %s had been waiting "
             "since it asked %s",
             check_duration(free_ns, duration, sizeof duration), check_when(check, stamp_ns, when, sizeof when),
             check_name(check, side->actor->name, name, sizeof name),
             check_when(check, side->asked_ns, asked, sizeof asked));
}

/* --- records --- */

static void invoked(struct checking *my, const struct event *event) {
    struct side *side = my_member(my, event->member);
    struct queue *queue = my_lock(my, event->lock);
    if (side->asked) wait_end(queue, side);
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
    side->wait_ms = event->record->value;
    side->actor = event->actor;
    wait_begin(queue, side);
}

static int64_t hold_until(const struct check_lock *lock, int64_t stamp_ns) {
    return lock->traits & CHECK_TRAIT_RENEWS ? FOR_EVER : later_by(stamp_ns, lock->lease_ns);
}

static void answered(struct checking *my, const struct event *event) {
    struct liveness *self = my->state;
    struct side *side = my_member(my, event->member);
    struct queue *queue = my_lock(my, event->lock);
    bool granted = event->record->outcome == OUTCOME_OK;
    if (my->check->quiet) self->served++;
    if (side->asked) {
        if (my->check->quiet) look_for_lost(my, event, granted ? queue->first : side);
        wait_end(queue, side);
    }
    int64_t stamp_ns = event->record->mono_ns;
    if (granted) {
        bool again = side->depth && event->lock->traits & CHECK_TRAIT_REENTRANT;
        side->depth = again ? side->depth + 1 : 1;
        side->releasing = 0;
        hold_begin(queue, side, my->check->now_ns, hold_until(event->lock, stamp_ns));
    } else if (event->record->outcome != OUTCOME_REFUSED && my->check->reading.acquires_happen) {
        int64_t until_ns = later_by(stamp_ns, event->lock->lease_ns);
        if (side->stands && side->until_ns > until_ns) until_ns = side->until_ns;
        hold_begin(queue, side, my->check->now_ns, until_ns);
    }
}

static void renewed(struct checking *my, const struct event *event) {
    struct side *side = my_member(my, event->member);
    int64_t stamp_ns = event->record->mono_ns;
    if (event->record->outcome == OUTCOME_OK && side->depth)
        hold_begin(my_lock(my, event->lock), side, my->check->now_ns, hold_until(event->lock, stamp_ns));
}

static void releases(struct checking *my, const struct event *event) {
    struct side *side = my_member(my, event->member);
    if (side->depth > 1) side->depth--;
    else side->releasing = event->index;
}

static void released(struct checking *my, const struct event *event) {
    struct side *side = my_member(my, event->member);
    struct queue *queue = my_lock(my, event->lock);
    if (!event->asked || side->releasing != event->asked) return;
    side->depth = 0;
    side->releasing = 0;
    hold_lapse(queue, side, my->check->now_ns);
    if (!side->stands) return;
    if (event->failed) hold_abandon(my, event->lock, side, event->record->mono_ns);
    else hold_end(queue, side, event->record->mono_ns, event->index);
}

static SELDOM void ended(struct checking *my, const struct event *event) {
    for (struct check_member *member = event->actor->members; member; member = member->next_of_actor) {
        struct side *side = my_member(my, member);
        struct queue *queue = my_lock(my, member->lock);
        if (side->asked) wait_end(queue, side);
        hold_lapse(queue, side, my->check->now_ns);
        if (side->stands) hold_abandon(my, member->lock, side, event->record->mono_ns);
        side->depth = 0;
        side->releasing = 0;
    }
}

static void phase(struct checking *my, const struct event *event) {
    ((struct liveness *)my->state)->served = 0;
    (void)event;
}

static SELDOM void residue(struct checking *my, const struct event *event) {
    char name[64];
    if (event->record->value <= 0) return;
    struct evidence *evidence = verdict_violate(
        &my->verdict,
        &(struct violation){
            .sort = RESIDUE, .times = 1, .who = event->record->name, .records = {event->index}, .record_count = 1});
    if (evidence)
        snprintf(evidence->text, sizeof evidence->text, "residue: %lld of %s left behind at the end",
                 (long long)event->record->value, check_name(my->check, event->record->name, name, sizeof name));
}

/* --- the end --- */

static SELDOM void look_for_stuck(struct checking *my, const struct check_lock *lock, struct queue *queue,
                                  const struct side *side) {
    struct liveness *self = my->state;
    const struct check *check = my->check;
    int64_t waited_ns = check->now_ns > side->asked_ns ? elapsed_ns(side->asked_ns, check->now_ns) : 0;
    bool patient = side->wait_ms >= 0 && waited_ns / 1000000 <= side->wait_ms;
    bool free = is_free(lock, queue, check->now_ns);
    if (patient || !free ||
        (check->bound_ns >= 0 && idle_ns(my, lock, queue, side, check->now_ns) <= check->bound_ns)) {
        self->undecided++;
        return;
    }
    char name[64], asked[40], now[40], duration[40];
    struct evidence *evidence =
        verdict_violate(&my->verdict, &(struct violation){.sort = STUCK_WAITER,
                                                          .times = 1,
                                                          .who = side->actor->name,
                                                          .records = {side->asked, check->quiet},
                                                          .record_count = 2});
    if (!evidence) return;
    snprintf(
        evidence->text, sizeof evidence->text,
        "stuck waiter: %s asked for the lock %s and was not answered in the %s up to the end, %s, when nobody held it any more",
        check_name(check, side->actor->name, name, sizeof name), check_when(check, side->asked_ns, asked, sizeof asked),
        check_duration(waited_ns, duration, sizeof duration), check_when(check, check->now_ns, now, sizeof now));
}

static void finish(struct checking *my) {
    const struct liveness *self = my->state;
    for (struct check_lock *lock = my->check->quiet ? my->check->locks : NULL; lock; lock = lock->next) {
        struct queue *queue = my_lock(my, lock);
        for (const struct side *side = queue->first; side; side = side->later) look_for_stuck(my, lock, queue, side);
    }
    my->verdict.applies = my->check->quiet != 0;
    verdict_decide(&my->verdict, my->check->quiet && self->served && !self->undecided,
                   !my->check->quiet ? "there was no quiet phase in which everybody should have been served"
                   : self->undecided ? "the history ended too early for those who were still waiting"
                                     : "nobody wanted the lock in the quiet phase");
}

const struct checker CHECKER_LIVENESS = {
    .property = "liveness",
    .title = "liveness",
    .question = "was everybody served, and was nothing left behind?",
    .sorts = {"stuck waiter", "lost wake-up", "residue"},
    .state_size = sizeof(struct liveness),
    .lock_size = sizeof(struct queue),
    .member_size = sizeof(struct side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = invoked,
           [HISTORY_ACQUIRE_RETURN] = answered,
           [HISTORY_RENEW_RETURN] = renewed,
           [HISTORY_RELEASE_INVOKE] = releases,
           [HISTORY_RELEASE_RETURN] = released,
           [HISTORY_ACTOR_EXIT] = ended,
           [HISTORY_PHASE] = phase,
           [HISTORY_RESIDUE] = residue},
    .finish = finish,
};
