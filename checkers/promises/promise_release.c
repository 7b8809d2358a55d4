/* A release that is asked once more (redis-py #3847, ncps #913): a release or renewal of a certain hold failed - of
 * unknown outcome, cancelled, or its context was over -, a later release of the owner was refused as not its own, and
 * the key is there all the same, though no other call may have left it. The library has forgotten what it holds.
 *
 * Not judged once the lease is over, with several servers, and of permits. A failed release that nobody repeats may
 * leave the key: its caller was told. Decision 0145. */
#include "checkers/promises/promise_rule.h"

static bool has_failed(const struct promise_pass *pass, const struct promise_call *call) {
    enum call_verb verb = call->ask ? call->ask->asked.verb : CALL_WORK;
    if (!call->answer || !call->certain || (verb != CALL_RELEASE && verb != CALL_RENEW)) return false;
    enum outcome outcome = pass->events[call->answer].outcome;
    bool ended = pass->events[call->answer].cancelled || call->ask->asked.over;
    return outcome == OUTCOME_UNKNOWN || (outcome == OUTCOME_REFUSED && ended);
}

/* The failed call before a refused release, or NULL. */
static const struct promise_call *failed_before(const struct promise_pass *pass, const struct promise_call *refused) {
    for (const struct promise_call *call = refused; call-- > pass->calls;)
        if (has_failed(pass, call) && call->owner == refused->owner && call->answer < refused->ask - pass->events &&
            call->ask->asked.mode == refused->ask->asked.mode)
            return call;
    return NULL;
}

/* May a call have left the key that does not belong to the hold of `failed`? */
static bool others_may_hold(const struct promise_pass *pass, const struct promise_call *failed) {
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        bool of_hold = call->owner == failed->owner && call <= failed;
        if (call->ask && call->resource == failed->resource && !of_hold && trace_ms(pass, call) > 0) return true;
    }
    return false;
}

static void check_repeated(struct promise_pass *pass, struct promise_call *refused) {
    const struct promise_call *failed = failed_before(pass, refused);
    enum call_mode mode = refused->ask->asked.mode;
    if (!failed || mode == MODE_PERMIT || others_may_hold(pass, failed)) return;
    struct promise_owner owner = *refused->owner;
    owner.least[mode] = 1;
    if (!holds_in_mode(pass, &owner, mode)) return;
    refused->counted = true;
    promise_break(pass, PROMISE_RELEASE, refused->answer, LEASE_NO_KEY, pass->event->remaining_ms,
                  "the release of %s was refused after one that failed, and the key is still there",
                  caller_name_of(&refused->ask->asked).text);
}

static void check_key_after_release(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    if (!pass->facts->lease_key || pass->facts->nodes > 1 || event->remaining_ms == LEASE_NO_KEY) return;
    for (struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        bool refused = call->ask && call->ask->asked.verb == CALL_RELEASE && call->answer &&
                       pass->events[call->answer].outcome == OUTCOME_REFUSED;
        if (refused && !call->certain && !call->counted && call->resource->resource == event->resource)
            check_repeated(pass, call);
    }
}

const struct promise_rule PROMISE_RULE_RELEASE = {.on = {[EVENT_LEASE] = check_key_after_release}};
