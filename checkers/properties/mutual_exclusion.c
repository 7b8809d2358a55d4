/* Mutual exclusion: did more clients believe that they held the lock at once than it has permits?
 *
 * A client believes from its ACQUIRE_RETURN (ok) up to its RELEASE_INVOKE, both in index order, or until the end of the
 * validity that the lock announced to it last (a refused one has ended: the grant is lost), or until its process has
 * ended. Two beliefs overlap when one begins while another has not ended. The release is recorded before it is sent and
 * the grant after it came back, so a correct lock can never look wrong. One violation per grant that found all permits
 * taken.
 *
 * A grant to a client that believes already begins no other belief; the latest validity counts. Ending the belief takes
 * as many releases as grants of a re-entrant lock, and one of any other. A release that never happened by the reading
 * ends nothing.
 *
 * It holds only if somebody was granted a lock that more than one client asked for: nobody is kept out otherwise. */
#include <stdio.h>
#include <sys/queue.h>

#include "checkers/engine/checker.h"

struct hold {
    bool asked;     /* its client has asked for the lock */
    uint32_t depth; /* of a re-entrant lock; 0: it does not believe */
    uint64_t grant; /* index of the one with which it began */
    int64_t until_ns;
    TAILQ_ENTRY(hold) others;
};

struct believers {
    TAILQ_HEAD(, hold) holds; /* in the order in which they began */
    int64_t count;
    int64_t askers; /* clients that have asked for it */
    bool granted;
    bool stamped; /* some belief has an end by time */
};

static void mutual_exclusion_begin(struct believers *believers, struct hold *hold) {
    if (TAILQ_EMPTY(&believers->holds)) TAILQ_INIT(&believers->holds);
    TAILQ_INSERT_TAIL(&believers->holds, hold, others);
    believers->count++;
}

static void end(struct believers *believers, struct hold *hold) {
    TAILQ_REMOVE(&believers->holds, hold, others);
    hold->depth = 0;
    believers->count--;
}

/* Ends the beliefs whose validity is over. */
static SELDOM void mutual_exclusion_lapse(struct believers *believers, int64_t mono_ns) {
    for (struct hold *hold = TAILQ_FIRST(&believers->holds), *later; hold; hold = later) {
        later = TAILQ_NEXT(hold, others);
        if (hold->until_ns && hold->until_ns <= mono_ns) end(believers, hold);
    }
}

/* The evidence is the grants of the holders, as many as fit, and the one that was too much. */
static SELDOM void mutual_exclusion_violate(struct checking *my, const struct event *event,
                                            const struct believers *believers) {
    char token[40] = "";
    struct violation violation = {.who = event->actor->name,
                                  .whom = check_record_at(my->check, TAILQ_FIRST(&believers->holds)->grant).actor};
    int room = (int)smaller(event->lock->capacity, EVIDENCE_RECORDS - 1), count = 0;
    struct hold *hold;
    TAILQ_FOREACH (hold, &believers->holds, others)
        if (count < room) violation.records[count++] = hold->grant;
    if (event->record->token) snprintf(token, sizeof token, "token %lld, ", (long long)event->record->token);
    violate(my, event, &violation,
            "%pN was granted the lock (%s%pT) while %pG had not released it and still believed in it",
            &event->actor->name, token, &event->record->mono_ns, &violation.records[0]);
}

static void mutual_exclusion_asked(struct checking *my, const struct event *event) {
    struct hold *hold = my_member(my, event->member);
    if (!hold->asked) ((struct believers *)my_lock(my, event->lock))->askers++;
    hold->asked = true;
}

static void mutual_exclusion_granted(struct checking *my, const struct event *event) {
    struct believers *believers = my_lock(my, event->lock);
    struct hold *hold = my_member(my, event->member);
    mutual_exclusion_asked(my, event); /* a history may lack the invocation */
    if (event->record->outcome != OUTCOME_OK) return;
    believers->granted = true;
    if (believers->stamped) mutual_exclusion_lapse(believers, event->record->mono_ns);
    if (event->record->value) believers->stamped = true;
    if (hold->depth && event->lock->traits & CHECK_TRAIT_REENTRANT) {
        hold->depth++;
    } else {
        if (hold->depth) end(believers, hold);
        else if (believers->count >= event->lock->capacity) mutual_exclusion_violate(my, event, believers);
        hold->depth = 1;
        hold->grant = event->index;
        mutual_exclusion_begin(believers, hold);
    }
    hold->until_ns = event->record->value;
}

static void mutual_exclusion_released(struct checking *my, const struct event *event) {
    struct hold *hold = my_member(my, event->member);
    if (event->failed || hold->depth == 0) return;
    if (hold->depth > 1) hold->depth--;
    else end(my_lock(my, event->lock), hold);
}

static void mutual_exclusion_announced(struct checking *my, const struct event *event) {
    struct believers *believers = my_lock(my, event->lock);
    struct hold *hold = my_member(my, event->member);
    hold->until_ns = validity_until_ns(event->record);
    believers->stamped = true;
}

static SELDOM void mutual_exclusion_ended(struct checking *my, const struct event *event) {
    struct hold *hold = my_member(my, event->member);
    if (hold->depth) end(my_lock(my, event->lock), hold);
}

static void mutual_exclusion_finish(struct checking *my) {
    bool contended = false;
    for (struct check_lock *lock = my->check->locks; lock; lock = lock->next) {
        const struct believers *believers = my_lock(my, lock);
        contended |= believers->granted && believers->askers > 1;
    }
    my->verdict.applies = true;
    verdict_decide(&my->verdict, contended,
                   my->check->granted ? "only one client asked for the lock" : "nobody was granted the lock");
}

const struct checker CHECKER_MUTUAL_EXCLUSION = {
    .property = "mutual_exclusion",
    .lock_size = sizeof(struct believers),
    .member_size = sizeof(struct hold),
    .on = {[HISTORY_ACQUIRE_INVOKE] = mutual_exclusion_asked,
           [HISTORY_ACQUIRE_RETURN] = mutual_exclusion_granted,
           [HISTORY_RELEASE_INVOKE] = mutual_exclusion_released,
           [HISTORY_VALIDITY] = mutual_exclusion_announced,
           [HISTORY_ACTOR_EXIT] = mutual_exclusion_ended},
    .finish = mutual_exclusion_finish,
};
