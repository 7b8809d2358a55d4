/* Ownership: a call of an owner that certainly holds, from its ask to its answer, was refused (release, renew: not
 * yours; is_held: no); so somebody else's call took the hold away. Or a call of an owner that certainly holds nothing
 * was answered ok.
 *
 * Or a server executed a command of a client that may have nothing, however late, that made the lease key live longer
 * while another client's owner certainly held exclusively; or of a client that has nothing: each acquire of it was
 * answered and undisturbed, and each grant was given back with the answer ok, or superseded by another client's. Then
 * it must not make a key either. A disturbed acquire may still be granted late. Only with one server; not after a clock
 * was set or a server may have lost data.
 *
 * An owner certainly holds nothing if each of its grants of the resource was given back with the answer ok, and no
 * acquire of it was under way, disturbed or of unknown outcome. A release by such an owner may be answered ok where the
 * library documents that, and of a permit always: any client may give back a permit. A call that was cancelled may be
 * refused: it changed nothing (promise_release.c). */
#include <stdio.h>

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
    if (outcome == OUTCOME_REFUSED && !pass->event->cancelled) check_refused(pass, call);
    if (outcome == OUTCOME_OK) check_allowed(pass, call);
}

/* The latest call that shows that the client has nothing of the resource; NULL: it may have something, or never asked
 * for it. A cancelled or disturbed acquire may be granted late. */
static const struct promise_call *left_with_nothing(const struct promise_pass *pass, int client, int resource) {
    const struct promise_call *last = NULL;
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || call->owner->client->client != client || call->resource->resource != resource) continue;
        const struct promise_owner *owner = call->owner;
        if (is_under_way(call)) return NULL;
        bool ok = pass->events[call->answer].outcome == OUTCOME_OK;
        bool clear = ok || (!call->disturbed && !was_cancelled(pass, call));
        const struct call_event *superseded = &pass->events[owner->superseded];
        bool late = (call->disturbed || !ok) && owner->client->late_command_ns >= superseded->at_ns;
        bool waits = !ok && was_cancelled(pass, call); /* perhaps still, although its caller does not */
        bool lost = owner->superseded && call->ask < superseded && !late && !waits;
        if (!clear && !lost) return NULL;
        last = call;
    }
    return last;
}

/* Was it granted the lock, too? Then one of two grants is wrong. */
static bool client_may_hold(const struct promise_pass *pass, int client, int resource) {
    for (const struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++)
        if (each->client->client == client && each->resource == resource && may_hold(each) && !each->superseded)
            return true;
    return false;
}

/* `call`: of the holder, or the client's own latest one. */
static void break_lengthened(struct promise_pass *pass, const struct promise_call *call) {
    const struct call_event *event = pass->event;
    bool of_holder = call->owner->client->client != event->client;
    char by[32] = "without an end";
    if (event->longer_ms != LEASE_WITHOUT_END) snprintf(by, sizeof by, "%lld ms", (long long)event->longer_ms);
    promise_break(pass, PROMISE_OWNERSHIP, (uint32_t)(call->ask - pass->events), 0, event->longer_ms,
                  "client-%d, which holds nothing, %s%s%s: %s", event->client + 1,
                  event->makes ? "made a key" : "extended the lease", of_holder ? " of " : "",
                  of_holder ? caller_name_of(&call->ask->asked).text : "", by);
}

static void check_lengthened(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    bool of_one_key = servers_of(pass) == 1 && !pass->facts->parts;
    if (!event->longer_ms || !of_one_key || pass->clock || pass->data) return;
    if (client_may_hold(pass, event->client, event->resource)) return;
    for (const struct promise_owner *each = pass->owners; each < pass->owners + pass->owner_count; each++) {
        if (each->resource != event->resource || each->client->client == event->client || event->makes) continue;
        for (int mode = 0; mode < CALL_MODES; mode++) {
            if (!excludes_readers((enum call_mode)mode) || !holds_in_mode(pass, each, (enum call_mode)mode)) continue;
            break_lengthened(pass, &pass->calls[pass->events[each->grant[mode]].call]);
            return;
        }
    }
    const struct promise_call *last = left_with_nothing(pass, event->client, event->resource);
    if (last) break_lengthened(pass, last);
}

const struct promise_rule PROMISE_RULE_OWNERSHIP = {
    .on = {[EVENT_ANSWER] = promise_ownership_answered, [EVENT_EXECUTED] = check_lengthened}};
