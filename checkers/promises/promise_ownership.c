/* Ownership: a call of an owner that certainly holds, from its ask to its answer, was refused (release, renew: not
 * yours; is_held: no); so somebody else's call took the hold away. Or a call of an owner that certainly holds nothing
 * was answered ok.
 *
 * An owner certainly holds nothing if each of its grants of the resource was given back with the answer ok, and no
 * acquire of it was under way, disturbed or of unknown outcome. A release by such an owner may be answered ok where the
 * library documents that, and of a permit always: any client may give back a permit. */
#include "checkers/promises/promise_rule.h"

static const char *verb_text(enum call_verb verb) {
    return verb == CALL_RELEASE ? "release" : verb == CALL_RENEW ? "renew" : "is_held";
}

static bool held_throughout(const struct promise_pass *pass, const struct promise_call *call) {
    struct promise_owner owner = *call->owner;
    enum call_mode mode = call->ask->asked.mode;
    if (!call->certain || call->owner->client->late_release_ns >= call->ask->at_ns) return false;
    if (call->ask->asked.verb == CALL_RELEASE) {
        /* The pass has taken the refused release in: as a doubt of its own, and the hold no longer counts in `least`.
         * Of two releases at a time either one may come too late. */
        if (call->doubts + 1 != owner.doubts || call->releases + 1 != owner.releases) return false;
        owner.least[mode] = 1;
    } else if (call->doubts != owner.doubts) {
        return false;
    }
    return holds_in_mode(pass, &owner, mode);
}

static void check_refused(struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_owner *owner = call->owner;
    const struct call *asked = &call->ask->asked;
    if (!held_throughout(pass, call)) return;
    promise_break(pass, PROMISE_OWNERSHIP, owner->grant[asked->mode], 0, 0,
                  "%s of %s, which certainly holds (%s), was refused", verb_text(asked->verb),
                  caller_name_of(asked).text, mode_text(asked->mode));
}

static void check_allowed(struct promise_pass *pass, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    bool lenient = asked->verb == CALL_RELEASE && pass->facts->lenient_release;
    if (lenient || asked->mode == MODE_PERMIT || !call->nothing || call->acquires != call->owner->acquires) return;
    promise_break(pass, PROMISE_OWNERSHIP, pass->now, 0, 0, "%s of %s, which holds nothing, was answered ok",
                  verb_text(asked->verb), caller_name_of(asked).text);
}

static void promise_ownership_answered(struct promise_pass *pass) {
    const struct promise_call *call = answered_call(pass);
    if (!call) return;
    enum call_verb verb = call->ask->asked.verb;
    if (verb != CALL_RELEASE && verb != CALL_RENEW && verb != CALL_IS_HELD) return;
    enum outcome outcome = pass->event->outcome;
    if (outcome == OUTCOME_REFUSED) check_refused(pass, call);
    if (outcome == OUTCOME_OK) check_allowed(pass, call);
}

const struct promise_rule PROMISE_RULE_OWNERSHIP = {.on = {[EVENT_ANSWER] = promise_ownership_answered}};
