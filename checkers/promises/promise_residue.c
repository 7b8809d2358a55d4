/* Residue: after the end of the workload nothing is left at the servers (EVENT_LEFT) that belongs to a call.
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

const struct promise_rule PROMISE_RULE_RESIDUE = {.on = {[EVENT_LEFT] = check_left}};
