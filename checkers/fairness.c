/* Fairness: how often was a waiter overtaken, how long did the longest wait, how evenly were the grants given?
 *
 * A client waits from its `acquire-invoke` to its `acquire-return`. It is overtaken by every grant in between to a
 * client that asked later; two that ask at once may be served in the opposite order of their records without any
 * unfairness, so one overtaking says little. Jain's index of the clients' grants x: (sum x)^2 / (n * sum x^2), which is
 * 1 when all n who asked were granted equally often and 1/n when one had everything. All this is told.
 *
 * Judged is only a lock that promises to be fair (trait FAIR), in a history without a fault, a rule or a checkpoint
 * that could have kept a waiter out of its queue: a grant is unfair when somebody is waiting since before this client
 * asked for its *previous* grant of the lock. It was overtaken twice by the same one then, and no race explains that.
 */
#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include "checkers/checker.h"

extern const struct checker CHECKER_FAIRNESS;

struct side {
    uint64_t asked, asked_before; /* index of its acquire in flight; of that of its previous grant, 0: none */
    int64_t asked_ns;
};

/* Who waits, in the order in which they asked. Two arrays, so that looking and counting go quickly. */
struct queue {
    struct side **sides;
    uint32_t *overtaken;
    uint32_t count, room;
};

struct taken {
    bool asked;
    uint64_t grants;
};

struct fairness {
    uint64_t grants, overtakings, most;
    int64_t longest_ns;
    bool promised;
};

static void queue_add(struct queue *queue, struct side *side) {
    if (queue->count == queue->room) {
        queue->room = queue->room ? queue->room * 2 : 8;
        queue->sides = realloc(queue->sides, queue->room * sizeof(struct side *));
        queue->overtaken = realloc(queue->overtaken, queue->room * sizeof *queue->overtaken);
        if (!queue->sides || !queue->overtaken) abort();
    }
    queue->sides[queue->count] = side;
    queue->overtaken[queue->count++] = 0;
}

static uint32_t queue_place(const struct queue *queue, const struct side *side) {
    uint32_t place = 0;
    while (queue->sides[place] != side) place++;
    return place;
}

static void queue_remove(struct queue *queue, uint32_t place) {
    queue->count--;
    for (uint32_t each = place; each < queue->count; each++) {
        queue->sides[each] = queue->sides[each + 1];
        queue->overtaken[each] = queue->overtaken[each + 1];
    }
}

static void invoked(struct checking *my, const struct event *event) {
    struct side *side = my_member(my, event->member);
    struct queue *queue = my_lock(my, event->lock);
    ((struct taken *)my_actor(my, event->actor))->asked = true;
    if (side->asked) queue_remove(queue, queue_place(queue, side));
    side->asked = event->index;
    side->asked_ns = event->record->mono_ns;
    queue_add(queue, side);
}

static SELDOM void violate(struct checking *my, const struct event *event, const struct side *late) {
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

static void granted(struct checking *my, const struct event *event, struct side *side, struct queue *queue,
                    uint32_t place) {
    struct fairness *self = my->state;
    for (uint32_t each = 0; each < place; each++) queue->overtaken[each]++;
    self->overtakings += place;
    if (place > 0 && event->lock->traits & CHECK_TRAIT_FAIR && side->asked_before > queue->sides[0]->asked)
        violate(my, event, queue->sides[0]);
    side->asked_before = side->asked;
}

static void answered(struct checking *my, const struct event *event) {
    struct fairness *self = my->state;
    struct side *side = my_member(my, event->member);
    struct queue *queue = my_lock(my, event->lock);
    bool ok = event->record->outcome == OUTCOME_OK;
    ((struct taken *)my_actor(my, event->actor))->grants += ok;
    self->grants += ok;
    if (side->asked == 0) return;
    uint32_t place = queue_place(queue, side);
    if (queue->overtaken[place] > self->most) self->most = queue->overtaken[place];
    queue_remove(queue, place);
    int64_t waited_ns = elapsed_ns(side->asked_ns, event->record->mono_ns);
    if (waited_ns > self->longest_ns) self->longest_ns = waited_ns;
    if (ok) granted(my, event, side, queue, place);
    side->asked = 0;
}

static SELDOM void ended(struct checking *my, const struct event *event) {
    for (struct check_member *member = event->actor->members; member; member = member->next_of_actor) {
        struct side *side = my_member(my, member);
        struct queue *queue = my_lock(my, member->lock);
        if (side->asked) queue_remove(queue, queue_place(queue, side));
        *side = (struct side){0};
    }
}

static void opened(struct checking *my, const struct event *event) {
    ((struct fairness *)my->state)->promised |= event->lock->traits & CHECK_TRAIT_FAIR;
}

static double jain(const struct checking *my) {
    double clients = 0, sum = 0, squares = 0;
    for (struct check_actor *actor = my->check->actors; actor; actor = actor->next) {
        const struct taken *taken = my_actor(my, actor);
        clients += taken->asked;
        sum += taken->asked ? (double)taken->grants : 0;
        squares += taken->asked ? (double)taken->grants * (double)taken->grants : 0;
    }
    return squares > 0 ? sum * sum / (clients * squares) : 0;
}

static void finish(struct checking *my) {
    struct fairness *self = my->state;
    const uint64_t *seen = my->check->seen;
    struct verdict *verdict = &my->verdict;
    for (struct check_lock *lock = my->check->locks; lock; lock = lock->next) {
        struct queue *queue = my_lock(my, lock);
        for (uint32_t each = 0; each < queue->count; each++)
            if (queue->overtaken[each] > self->most) self->most = queue->overtaken[each];
        free(queue->sides);
        free(queue->overtaken);
    }
    bool disturbed = seen[HISTORY_FAULT_INJECT] || seen[HISTORY_RULE] || seen[HISTORY_CHECKPOINT];
    if (disturbed) *verdict = (struct verdict){.applies = false};
    verdict->applies = self->promised;
    verdict->measures[0] = (struct verdict_measure){"overtakings", (double)self->overtakings};
    verdict->measures[1] = (struct verdict_measure){"overtaken_most", (double)self->most};
    verdict->measures[2] = (struct verdict_measure){"longest_wait_ms", (double)self->longest_ns / 1e6};
    verdict->measures[3] = (struct verdict_measure){"jain_index", jain(my)};
    verdict_decide(verdict, self->promised && !disturbed && self->grants > 0,
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
    .lock_size = sizeof(struct queue),
    .actor_size = sizeof(struct taken),
    .member_size = sizeof(struct side),
    .on = {[HISTORY_LOCK_OPEN] = opened,
           [HISTORY_ACQUIRE_INVOKE] = invoked,
           [HISTORY_ACQUIRE_RETURN] = answered,
           [HISTORY_ACTOR_EXIT] = ended},
    .finish = finish,
};
