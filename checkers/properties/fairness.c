/* Fairness: how often was a waiter overtaken, how long did the longest wait, how evenly were the grants given?
 *
 * A client waits from its `acquire-invoke` to its `acquire-return`. Every grant in between to a client that asked later
 * overtakes it. Two clients that ask at once may be served in the opposite order of their records without any
 * unfairness, so one overtaking says little. Jain's index of the clients' grants x is (sum x)^2 / (n * sum x^2): 1 when
 * all n clients that asked were granted equally often, 1/n when one had everything. All these numbers are reported.
 *
 * Only a lock that promises to be fair (trait FAIR) is judged, in a history without a fault, a rule or a checkpoint
 * that could have kept a waiter out of its queue.
 *
 * The parameter order_ms says for how long a message is under way at most. If it is given, a *wait* is unfair when
 *
 *   - its client had asked more than order_ms before another one did that was granted the lock in the meantime
 * (*passed* it): its request then reached the lock first; and
 *   - it was still waiting then: it was granted a lock with one permit afterwards, or waited for more than order_ms
 *     longer. A waiter that is answered sooner may have left its queue before, or have been granted a permit before,
 *     and its answer was under way.
 *
 * Without the parameter a *grant* is unfair when another client has been waiting since before this one asked for its
 * previous grant of the lock: the same client has then overtaken it twice, which races seldom explain.
 *
 * A holder that acquires a re-entrant lock again overtakes nobody: it is no waiter. Decision 0086. */
#include <stdio.h>
#include <sys/queue.h>

#include "checkers/engine/checker.h"

struct fairness_side {
    uint64_t asked, asked_before; /* index of its acquire in flight; of the acquire of its previous grant; 0: none */
    int64_t asked_ns;
    uint64_t depth;     /* grants that it has not asked to release */
    uint64_t overtaken; /* during this wait */
    uint64_t passed;    /* index of the first grant that has passed this wait, 0: none */
    int64_t passed_ns;  /* its stamp */
    TAILQ_ENTRY(fairness_side) others;
};

TAILQ_HEAD(fairness_queue, fairness_side); /* in the order in which they asked */

struct fairness_share {
    bool asked;
    uint64_t grants;
};

struct fairness {
    uint64_t overtakings, most;
    int64_t longest_ns;
    bool granted;
};

/* A waiter was passed: by a grant before the event, which ends its wait (NULL: nothing does); or, if `passed` is 0, by
 * the event, a grant to a client that had one since the waiter asked: `before`. */
static SELDOM void fairness_violate(struct checking *my, const struct event *event, uint64_t asked, uint64_t before,
                                    uint64_t passed) {
    struct history_record waits = check_record_at(my->check, asked);
    struct history_record grant = check_record_at(my->check, passed ? passed : event->index);
    const struct violation violation = {.who = grant.actor, .whom = waits.actor, .records = {asked, before, passed}};
    violate(my, event, &violation,
            "%pN was granted the lock %pT%s while %pN, which had asked before it did %pT, was waiting%s", &grant.actor,
            &grant.mono_ns, passed ? " out of turn" : " for the second time", &waits.actor, &waits.mono_ns,
            event ? "" : ", as it did to the end");
}

/* Is one stamp so much later than another that the order of their messages is certain? */
static bool is_later(const struct checking *my, int64_t early_ns, int64_t late_ns) {
    return elapsed_ns(early_ns, late_ns) > my->check->order_ns;
}

/* A wait has ended with the event, a grant or another one, or (NULL) goes on to the end of the history. */
static void fairness_wait_end(struct checking *my, const struct event *event, const struct check_lock *lock,
                              const struct fairness_side *side, bool granted) {
    if (!side->passed) return;
    if ((granted && lock->capacity == 1) ||
        is_later(my, side->passed_ns, event ? event->record->mono_ns : my->check->now_ns))
        fairness_violate(my, event, side->asked, 0, side->passed);
}

static void fairness_invoked(struct checking *my, const struct event *event) {
    struct fairness_side *side = my_member(my, event->member);
    struct fairness_queue *queue = my_lock(my, event->lock);
    ((struct fairness_share *)my_actor(my, event->actor))->asked = true;
    if (side->asked) {
        fairness_wait_end(my, event, event->lock, side, false);
        TAILQ_REMOVE(queue, side, others);
    }
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
    side->overtaken = side->passed = 0;
    if (TAILQ_EMPTY(queue)) TAILQ_INIT(queue);
    TAILQ_INSERT_TAIL(queue, side, others);
}

static void fairness_pass(struct fairness_side *late, const struct event *grant) {
    if (late->passed) return;
    late->passed = grant->index;
    late->passed_ns = grant->record->mono_ns;
}

/* The grant overtakes all who asked earlier. */
static void overtake(struct checking *my, const struct event *event, const struct fairness_side *side,
                     const struct fairness_queue *queue) {
    struct fairness *self = my->state;
    unsigned traits = event->lock->traits;
    bool judged = traits & CHECK_TRAIT_FAIR && !(side->depth && traits & CHECK_TRAIT_REENTRANT);
    bool in_order = my->check->order_ns >= 0;
    uint64_t overtakings = 0, most = self->most;
    for (struct fairness_side *late = TAILQ_FIRST(queue); late != side; late = TAILQ_NEXT(late, others)) {
        uint64_t overtaken = ++late->overtaken;
        overtakings++;
        most = overtaken > most ? overtaken : most;
    }
    self->overtakings += overtakings;
    self->most = most;
    if (judged && in_order)
        for (struct fairness_side *late = TAILQ_FIRST(queue); late != side; late = TAILQ_NEXT(late, others))
            if (is_later(my, late->asked_ns, side->asked_ns)) fairness_pass(late, event);
    if (judged && !in_order && side->asked_before > TAILQ_FIRST(queue)->asked)
        fairness_violate(my, event, TAILQ_FIRST(queue)->asked, event->member->grant, 0);
}

static void fairness_answered(struct checking *my, const struct event *event) {
    struct fairness *self = my->state;
    struct fairness_side *side = my_member(my, event->member);
    struct fairness_queue *queue = my_lock(my, event->lock);
    bool ok = event->record->outcome == OUTCOME_OK;
    ((struct fairness_share *)my_actor(my, event->actor))->grants += ok;
    self->granted |= ok;
    if (side->asked == 0) {
        side->depth += ok;
        return;
    }
    if (ok) {
        overtake(my, event, side, queue);
        side->asked_before = side->asked;
    }
    side->depth += ok;
    fairness_wait_end(my, event, event->lock, side, ok);
    TAILQ_REMOVE(queue, side, others);
    int64_t waited_ns = elapsed_ns(side->asked_ns, event->record->mono_ns);
    self->longest_ns = larger(self->longest_ns, waited_ns);
    side->asked = 0;
}

static void fairness_releases(struct checking *my, const struct event *event) {
    struct fairness_side *side = my_member(my, event->member);
    if (side->depth) side->depth--;
}

static SELDOM void fairness_ended(struct checking *my, const struct event *event) {
    struct fairness_side *side = my_member(my, event->member);
    if (side->asked) fairness_wait_end(my, event, event->lock, side, false);
    if (side->asked) TAILQ_REMOVE((struct fairness_queue *)my_lock(my, event->lock), side, others);
    *side = (struct fairness_side){0};
}

static double jain(const struct checking *my) {
    double clients = 0, sum = 0, squares = 0;
    for (struct check_actor *actor = my->check->actors; actor; actor = actor->next) {
        const struct fairness_share *share = my_actor(my, actor);
        clients += share->asked;
        sum += share->asked ? (double)share->grants : 0;
        squares += share->asked ? (double)share->grants * (double)share->grants : 0;
    }
    return squares > 0 ? sum * sum / (clients * squares) : 0;
}

static void fairness_finish(struct checking *my) {
    struct fairness *self = my->state;
    const uint64_t *seen = my->check->seen;
    const struct fairness_side *side;
    for (struct check_lock *lock = my->check->locks; lock; lock = lock->next)
        TAILQ_FOREACH (side, (struct fairness_queue *)my_lock(my, lock), others)
            fairness_wait_end(my, NULL, lock, side, false);
    struct verdict *verdict = &my->verdict;
    bool promised = my->check->traits & CHECK_TRAIT_FAIR;
    bool disturbed = seen[HISTORY_FAULT_INJECT] || seen[HISTORY_RULE] || seen[HISTORY_CHECKPOINT];
    if (disturbed) *verdict = (struct verdict){0};
    verdict->measures[0] = (struct verdict_measure){"overtakings", (double)self->overtakings};
    verdict->measures[1] = (struct verdict_measure){"overtaken_most", (double)self->most};
    verdict->measures[2] = (struct verdict_measure){"longest_wait_ms", (double)self->longest_ns / 1e6};
    verdict->measures[3] = (struct verdict_measure){"jain_index", jain(my)};
    verdict_decide(verdict, promised && !disturbed && self->granted,
                   !promised   ? "the lock promises no order"
                   : disturbed ? "a fault may have kept a waiter out of its queue"
                               : "nobody was granted the lock");
}

const struct checker CHECKER_FAIRNESS = {
    .property = "fairness",
    .advisory = true,
    .state_size = sizeof(struct fairness),
    .lock_size = sizeof(struct fairness_queue),
    .actor_size = sizeof(struct fairness_share),
    .member_size = sizeof(struct fairness_side),
    .on = {[HISTORY_ACQUIRE_INVOKE] = fairness_invoked,
           [HISTORY_ACQUIRE_RETURN] = fairness_answered,
           [HISTORY_RELEASE_INVOKE] = fairness_releases,
           [HISTORY_ACTOR_EXIT] = fairness_ended},
    .finish = fairness_finish,
};
