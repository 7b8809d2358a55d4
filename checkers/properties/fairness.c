/* Fairness: how often was a waiter overtaken, how long did the longest wait, how evenly were the grants given?
 *
 * A client waits from its `acquire-invoke` to its `acquire-return`. Every grant in between to a client that asked later
 * overtakes it. Two clients that ask at once may be served in the opposite order of their records without any
 * unfairness, so one overtaking says little. Jain's index of the clients' grants x is (sum x)^2 / (n * sum x^2): 1 when
 * all n clients that asked were granted equally often, 1/n when one had everything. All these numbers are reported.
 *
 * Only a lock that promises to be fair (trait FAIR) is judged, in a history without a fault, a rule or a checkpoint
 * that could have kept a waiter out of its queue. A grant is unfair
 *
 *   - when another client has been waiting since before this one asked for its *previous* grant of the lock: the same
 *     client has then overtaken it twice, and no race explains that;
 *   - when another client had been waiting for longer than order_ms as this one asked, if that parameter is given: it
 *     says from which distance on two requests reach the lock in the order of their stamps.
 *
 * A holder that acquires a re-entrant lock again overtakes nobody: it is no waiter. */
#include <stdio.h>

#include "checkers/engine/checker.h"

extern const struct checker CHECKER_FAIRNESS;

struct fairness_side {
    uint64_t asked, asked_before; /* index of its acquire in flight; of the acquire of its previous grant; 0: none */
    int64_t asked_ns;
    uint64_t depth;                        /* grants that it has not asked to release */
    uint64_t overtaken;                    /* during this wait */
    struct fairness_side *earlier, *later; /* the other waiters, in the order in which they asked */
};

struct fairness_queue {
    struct fairness_side *first, *last;
};

struct fairness_share {
    bool asked;
    uint64_t grants;
};

struct fairness {
    uint64_t overtakings, most;
    int64_t longest_ns;
    bool promised, granted;
};

static void queue_add(struct fairness_queue *queue, struct fairness_side *side) {
    side->earlier = queue->last;
    side->later = NULL;
    *(queue->last ? &queue->last->later : &queue->first) = side;
    queue->last = side;
}

static void queue_remove(struct fairness_queue *queue, struct fairness_side *side) {
    *(side->earlier ? &side->earlier->later : &queue->first) = side->later;
    *(side->later ? &side->later->earlier : &queue->last) = side->earlier;
}

static void invoked(struct checking *my, const struct event *event) {
    struct fairness_side *side = my_member(my, event->member);
    struct fairness_queue *queue = my_lock(my, event->lock);
    ((struct fairness_share *)my_actor(my, event->actor))->asked = true;
    if (side->asked) queue_remove(queue, side);
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
    side->overtaken = 0;
    queue_add(queue, side);
}

static SELDOM void violate(struct checking *my, const struct event *event, const struct fairness_side *late,
                           bool again) {
    char name[64], waiter[64], asked[40], when[40];
    struct history_record waits = check_record_at(my->check, late->asked);
    struct violation violation = {
        .times = 1, .who = event->actor->name, .whom = waits.actor, .records = {late->asked}, .record_count = 1};
    if (again) violation.records[violation.record_count++] = event->member->grant;
    violation.records[violation.record_count++] = event->index;
    struct evidence *evidence = verdict_violate(&my->verdict, &violation);
    if (evidence)
        snprintf(evidence->text, sizeof evidence->text,
                 "%s was granted the lock %s%s while %s, which had asked before it did %s, was waiting",
                 check_name(my->check, event->actor->name, name, sizeof name),
                 check_when(my->check, event->record->mono_ns, when, sizeof when),
                 again ? " for the second time" : " out of turn",
                 check_name(my->check, waits.actor, waiter, sizeof waiter),
                 check_when(my->check, waits.mono_ns, asked, sizeof asked));
}

/* Whether a waiter asked so long before another that it was certainly first. */
static bool is_earlier(const struct checking *my, const struct fairness_side *late, const struct fairness_side *side) {
    return my->check->order_ns >= 0 && elapsed_ns(late->asked_ns, side->asked_ns) > my->check->order_ns;
}

/* The grant overtakes all who asked earlier. */
static void overtake(struct checking *my, const struct event *event, const struct fairness_side *side,
                     const struct fairness_queue *queue) {
    struct fairness *self = my->state;
    const struct fairness_side *passed = NULL; /* out of turn, by this one grant */
    for (struct fairness_side *late = queue->first; late != side; late = late->later) {
        late->overtaken++;
        self->overtakings++;
        if (late->overtaken > self->most) self->most = late->overtaken;
        if (!passed && is_earlier(my, late, side)) passed = late;
    }
    unsigned traits = event->lock->traits;
    if (queue->first == side || !(traits & CHECK_TRAIT_FAIR) || (side->depth && traits & CHECK_TRAIT_REENTRANT)) return;
    bool again = side->asked_before > queue->first->asked;
    if (again) violate(my, event, queue->first, again);
    else if (passed) violate(my, event, passed, again);
}

static void answered(struct checking *my, const struct event *event) {
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
    queue_remove(queue, side);
    int64_t waited_ns = elapsed_ns(side->asked_ns, event->record->mono_ns);
    self->longest_ns = larger(self->longest_ns, waited_ns);
    side->asked = 0;
}

static void releases(struct checking *my, const struct event *event) {
    struct fairness_side *side = my_member(my, event->member);
    if (side->depth) side->depth--;
}

static SELDOM void ended(struct checking *my, const struct event *event) {
    for (struct check_member *member = event->actor->members; member; member = member->next_of_actor) {
        struct fairness_side *side = my_member(my, member);
        if (side->asked) queue_remove(my_lock(my, member->lock), side);
        *side = (struct fairness_side){0};
    }
}

static void opened(struct checking *my, const struct event *event) {
    ((struct fairness *)my->state)->promised |= event->lock->traits & CHECK_TRAIT_FAIR;
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

static void finish(struct checking *my) {
    struct fairness *self = my->state;
    const uint64_t *seen = my->check->seen;
    struct verdict *verdict = &my->verdict;
    bool disturbed = seen[HISTORY_FAULT_INJECT] || seen[HISTORY_RULE] || seen[HISTORY_CHECKPOINT];
    if (disturbed) *verdict = (struct verdict){0};
    verdict->measures[0] = (struct verdict_measure){"overtakings", (double)self->overtakings};
    verdict->measures[1] = (struct verdict_measure){"overtaken_most", (double)self->most};
    verdict->measures[2] = (struct verdict_measure){"longest_wait_ms", (double)self->longest_ns / 1e6};
    verdict->measures[3] = (struct verdict_measure){"jain_index", jain(my)};
    verdict_decide(verdict, self->promised && !disturbed && self->granted,
                   !self->promised ? "the lock promises no order"
                   : disturbed     ? "a fault may have kept a waiter out of its queue"
                                   : "nobody was granted the lock");
}

const struct checker CHECKER_FAIRNESS = {
    .property = "fairness",
    .title = "fairness",
    .question = "was each client served in its turn?",
    .advisory = true,
    .state_size = sizeof(struct fairness),
    .lock_size = sizeof(struct fairness_queue),
    .actor_size = sizeof(struct fairness_share),
    .member_size = sizeof(struct fairness_side),
    .on = {[HISTORY_LOCK_OPEN] = opened,
           [HISTORY_ACQUIRE_INVOKE] = invoked,
           [HISTORY_ACQUIRE_RETURN] = answered,
           [HISTORY_RELEASE_INVOKE] = releases,
           [HISTORY_ACTOR_EXIT] = ended},
    .finish = finish,
};
