/* Fairness: how often was a waiter overtaken, how long did the longest wait, how evenly were the grants given?
 *
 * A client waits from its `acquire-invoke` to its `acquire-return`. Every grant in between to a client that asked later
 * overtakes it. Two clients that ask at once may be served in the opposite order of their records without any
 * unfairness, so one overtaking says little. Jain's index of the clients' grants x is (sum x)^2 / (n * sum x^2): 1 when
 * all n clients that asked were granted equally often, 1/n when one had everything. All these numbers are reported.
 *
 * Only a lock that promises to be fair (trait FAIR) is judged, in a history without a fault, a rule or a checkpoint
 * that could have kept a waiter out of its queue: a grant is unfair when another client has been waiting since before
 * this one asked for its *previous* grant of the lock. The same client has then overtaken it twice, and no race
 * explains that. */
#include <stdio.h>

#include "checkers/engine/checker.h"

extern const struct checker CHECKER_FAIRNESS;

struct fairness_side {
    uint64_t asked, asked_before; /* index of its acquire in flight; of the acquire of its previous grant; 0: none */
    int64_t asked_ns;
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

static SELDOM void violate(struct checking *my, const struct event *event, const struct fairness_side *late) {
    char name[64], waiter[64], asked[40], when[40];
    struct history_record waits = check_record_at(my->check, late->asked);
    struct evidence *evidence =
        verdict_violate(&my->verdict, &(struct violation){.times = 1,
                                                          .who = event->actor->name,
                                                          .whom = waits.actor,
                                                          .records = {late->asked, event->member->grant, event->index},
                                                          .record_count = 3});
    if (evidence)
        snprintf(
            evidence->text, sizeof evidence->text,
            "%s was granted the lock %s for the second time while %s, which had asked before it did %s, was waiting",
            check_name(my->check, event->actor->name, name, sizeof name),
            check_when(my->check, event->record->mono_ns, when, sizeof when),
            check_name(my->check, waits.actor, waiter, sizeof waiter),
            check_when(my->check, waits.mono_ns, asked, sizeof asked));
}

/* The grant overtakes all who asked earlier. */
static void overtake(struct checking *my, const struct event *event, const struct fairness_side *side,
                     const struct fairness_queue *queue) {
    struct fairness *self = my->state;
    for (struct fairness_side *late = queue->first; late != side; late = late->later) {
        late->overtaken++;
        self->overtakings++;
        if (late->overtaken > self->most) self->most = late->overtaken;
    }
    bool again = queue->first != side && side->asked_before > queue->first->asked;
    if (again && event->lock->traits & CHECK_TRAIT_FAIR) violate(my, event, queue->first);
}

static void answered(struct checking *my, const struct event *event) {
    struct fairness *self = my->state;
    struct fairness_side *side = my_member(my, event->member);
    struct fairness_queue *queue = my_lock(my, event->lock);
    bool ok = event->record->outcome == OUTCOME_OK;
    ((struct fairness_share *)my_actor(my, event->actor))->grants += ok;
    self->granted |= ok;
    if (side->asked == 0) return;
    if (ok) {
        overtake(my, event, side, queue);
        side->asked_before = side->asked;
    }
    queue_remove(queue, side);
    int64_t waited_ns = elapsed_ns(side->asked_ns, event->record->mono_ns);
    self->longest_ns = larger(self->longest_ns, waited_ns);
    side->asked = 0;
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
    .question = "was nobody overtaken twice by the same client?",
    .advisory = true,
    .state_size = sizeof(struct fairness),
    .lock_size = sizeof(struct fairness_queue),
    .actor_size = sizeof(struct fairness_share),
    .member_size = sizeof(struct fairness_side),
    .on = {[HISTORY_LOCK_OPEN] = opened,
           [HISTORY_ACQUIRE_INVOKE] = invoked,
           [HISTORY_ACQUIRE_RETURN] = answered,
           [HISTORY_ACTOR_EXIT] = ended},
    .finish = finish,
};
