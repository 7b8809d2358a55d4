/* Ownership: a call of an owner that certainly holds, from its ask to its answer, was refused (release, renew: not
 * yours; is_held: no); so somebody else's call took the hold away. Or a call of an owner that certainly holds nothing
 * was answered ok.
 *
 * An owner certainly holds nothing if each of its grants of the resource was given back with the answer ok, and no
 * acquire of it was under way, struck or of unknown outcome. A release by such an owner may be answered ok where the
 * library documents that, and of a permit always: any client may give back a permit. */
#include "checkers/promises/promise_rule.h"

extern const struct promise_rule PROMISE_RULE_OWNERSHIP;

static const char *verb_text(enum call_verb verb) {
    return verb == CALL_RELEASE ? "release" : verb == CALL_RENEW ? "renew" : "is_held";
}

/* The hold whose release is asked no longer counts in `least`. */
static bool held_throughout(const struct promise_course *course, const struct promise_call *call) {
    struct promise_owner owner = *call->owner;
    enum call_mode mode = call->ask->asked.mode;
    if (!call->certain || call->owner->client->harm_ns >= call->ask->at_ns) return false;
    if (call->ask->asked.verb == CALL_RELEASE) {
        /* A refused release is a doubt of its own: taken in already. Of two at a time either one may come too late. */
        if (call->harms + 1 != owner.harms || call->releases + 1 != owner.releases) return false;
        owner.least[mode] = 1;
    } else if (call->harms != owner.harms) {
        return false;
    }
    return holds_in_mode(course, &owner, mode);
}

static void refused(struct promise_course *course, const struct promise_call *call) {
    const struct promise_owner *owner = call->owner;
    const struct call *asked = &call->ask->asked;
    char one[64];
    if (!held_throughout(course, call)) return;
    promise_break(course, PROMISE_OWNERSHIP, owner->grant[asked->mode], 0, 0,
                  "%s of %s, which certainly holds (%s), was refused", verb_text(asked->verb),
                  caller_text(asked, one, sizeof one), mode_text(asked->mode));
}

static void promise_ownership_granted(struct promise_course *course, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    char one[64];
    bool lenient = asked->verb == CALL_RELEASE && course->facts->lenient_release;
    if (lenient || asked->mode == MODE_PERMIT || !call->nothing || call->acquires != call->owner->acquires) return;
    promise_break(course, PROMISE_OWNERSHIP, course->now, 0, 0, "%s of %s, which holds nothing, was answered ok",
                  verb_text(asked->verb), caller_text(asked, one, sizeof one));
}

static void promise_ownership_answered(struct promise_course *course) {
    const struct promise_call *call = course_answered(course);
    if (!call) return;
    enum call_verb verb = call->ask->asked.verb;
    if (verb != CALL_RELEASE && verb != CALL_RENEW && verb != CALL_IS_HELD) return;
    if (course->events[course->now].outcome == OUTCOME_REFUSED) refused(course, call);
    if (course->events[course->now].outcome == OUTCOME_OK) promise_ownership_granted(course, call);
}

const struct promise_rule PROMISE_RULE_OWNERSHIP = {.on = {[EVENT_ANSWER] = promise_ownership_answered}};
