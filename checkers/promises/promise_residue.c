/* Residue: after the end of the workload nothing is left at the servers (EVENT_LEFT) that belongs to a call.
 *
 * And a release that was answered ok gives back: an owner certainly held alone, has nothing else, and at a quiet moment
 * after the answer its key is there and ends when it was to end before the release was asked; no other acquire that was
 * answered since, or is under way, can have set it. Only with one server; not judged while the client is disturbed, of
 * one that has ended, and after a clock was set or a server may have lost data.
 *
 * Excused: what a call may have left whose owner may still hold (never given back, of unknown outcome, of a client that
 * ended), until its lease has run out; everything of a resource that a client used, if it had a message lost or
 * answered with an error, closed a connection because a message on it was late, ended while an acquire was under way,
 * or may still have a command come late; everything after a server fault other than a
 * standstill, or of clocks. */
#include "checkers/promises/promise_rule.h"

static bool promise_residue_is_excused(const struct promise_pass *pass, const struct promise_call *call,
                                       int64_t longest_ms) {
    const struct promise_client *client = call->owner->client;
    bool gone_waiting = has_ended(client) && !call->answer;
    if (may_have_missed(client) || gone_waiting || is_disturbed(pass, client)) return true;
    if (client->late_command_ns != INT64_MIN && after_ms(client->late_command_ns, longest_ms) > pass->now_ns)
        return true;
    bool given_back = call->answer && pass->events[call->answer].outcome == OUTCOME_OK && !may_hold(call->owner);
    return !given_back && trace_ms(pass, call) > 0;
}

static void check_left(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    const struct promise_resource *resource = resource_of(pass, event->resource);
    uint32_t last = UINT32_MAX;
    if (!pass->over || servers_are_unreliable(pass)) return;
    for (uint32_t at = 0; at < pass->now; at++) {
        const struct promise_call *call = &pass->calls[at];
        if (!call->ask || call->ask->asked.resource != event->resource) continue;
        if (promise_residue_is_excused(pass, call, resource->longest_ms)) return;
        last = at;
    }
    if (last != UINT32_MAX)
        promise_break(pass, PROMISE_RESIDUE, last, 0, 0, "after the end the server still has %s", event->name);
}

static void note_key(struct promise_pass *pass) {
    struct promise_call *call = &pass->calls[pass->now];
    const struct promise_owner *owner = call->owner;
    enum call_mode mode = call->ask->asked.mode;
    /* The pass has taken the release in: the hold no longer counts in `least`. */
    bool all = call->certain && excludes_readers(mode) && owner->most[mode] == 1 && owner->releasing == 1;
    if (call->ask->asked.verb == CALL_RELEASE && all && owner->pending == 0)
        call->key_ends_ns = call->resource->ends_ns;
}

/* May another acquire have set the key since, or a late command of one? */
static bool may_be_anothers(const struct promise_pass *pass, const struct promise_call *release) {
    for (const struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask) continue;
        bool since = !call->answer || &pass->events[call->answer] > release->ask;
        bool late = call->disturbed && call->owner->client->late_command_ns >= release->ask->at_ns;
        if ((since || late) && call->resource == release->resource && call->ask->asked.verb == CALL_ACQUIRE &&
            trace_ms(pass, call) > 0)
            return true;
    }
    return false;
}

static void check_given_back(struct promise_pass *pass) {
    const struct call_event *event = pass->event;
    int64_t ends_ns = key_ends_ns(event), grain_ns = after_ms(0, 2); /* servers count whole milliseconds */
    if (servers_of(pass) > 1 || pass->facts->parts || ends_ns == 0 || !pass->facts->lease_key || pass->clock ||
        pass->data)
        return;
    for (struct promise_call *call = pass->calls; call < pass->calls + pass->now; call++) {
        if (!call->ask || !call->key_ends_ns || call->resource->resource != event->resource || !call->answer) continue;
        const struct promise_owner *owner = call->owner;
        bool same = ends_ns >= call->key_ends_ns - grain_ns && ends_ns <= call->key_ends_ns + grain_ns;
        bool given_back = pass->events[call->answer].outcome == OUTCOME_OK && !may_hold(owner) && !owner->pending;
        if (!same || !given_back || has_ended(owner->client) || is_disturbed(pass, owner->client)) continue;
        if (may_be_anothers(pass, call)) continue;
        call->key_ends_ns = 0;
        promise_break(pass, PROMISE_RESIDUE, call->answer, 0, event->remaining_ms,
                      "the release of %s was answered ok, and its key still lives for %lld ms",
                      caller_name_of(&call->ask->asked).text, (long long)event->remaining_ms);
    }
}

const struct promise_rule PROMISE_RULE_RESIDUE = {
    .on = {[EVENT_ASK] = note_key, [EVENT_LEASE] = check_given_back, [EVENT_LEFT] = check_left}};
