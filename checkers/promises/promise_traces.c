#include "checkers/promises/promise_rule.h"

/* What is left of a lease that was set at `from_ns` at the latest. */
static int64_t fading(const struct promise_pass *pass, int64_t lease_ms, int64_t from_ns) {
    if (lease_ms == PROMISE_ALWAYS || from_ns >= pass->now_ns) return lease_ms;
    int64_t gone_ms = ms_of(pass->now_ns - from_ns);
    return gone_ms >= lease_ms ? 0 : lease_ms - gone_ms;
}

/* When a call of the owner may have set the lease of what it has, at the latest. A release under way may have done so,
 * also just now if it was disturbed: an inner one of Redisson's locks sets the whole lease. */
static int64_t last_set_ns(const struct promise_pass *pass, const struct promise_owner *owner) {
    int64_t set_ns = owner->touched_ns;
    for (uint32_t at = owner->releasing > 0 ? owner->began : pass->now; at < pass->now; at++) {
        const struct promise_call *call = &pass->calls[at];
        if (call->owner != owner || !is_under_way(call) || call->ask->asked.verb != CALL_RELEASE) continue;
        set_ns = latest(set_ns, call->disturbed ? pass->now_ns : call->ask->at_ns);
    }
    return set_ns;
}

bool leaves_trace(const struct promise_call *call) {
    return call->ask && takes_lease(&call->ask->asked);
}

static bool was_answered(const struct promise_pass *pass, const struct promise_call *call, enum outcome outcome) {
    return call->ask && call->answer && call->ask->asked.verb == CALL_ACQUIRE &&
           pass->events[call->answer].outcome == outcome;
}

bool was_cancelled(const struct promise_pass *pass, const struct promise_call *call) {
    bool granted = was_answered(pass, call, OUTCOME_OK);
    return call->answer && call->ask->asked.verb == CALL_ACQUIRE && !granted &&
           (call->cancelled || call->ask->asked.over || pass->events[call->answer].cancelled);
}

bool was_refused(const struct promise_pass *pass, const struct promise_call *call) {
    return was_answered(pass, call, OUTCOME_REFUSED);
}

static bool may_have_lost(const struct promise_pass *pass, const struct promise_client *client) {
    return client->lost_message || pass->servers_failed || is_disturbed(pass, client);
}

/* May the owner still have what the call was granted? Another acquire of it under way may have been granted without an
 * answer. */
static bool may_have(const struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_owner *owner = call->owner;
    bool may = (may_hold(owner) || owner->pending > 0) && !owner->superseded;
    return may && call->ask >= &pass->events[owner->began];
}

/* Of a call under way: its client also loses an answer with a connection that it closes itself. */
static bool may_be_granted_unanswered(const struct promise_pass *pass, const struct promise_call *call) {
    return call->connection_closed || may_have_lost(pass, call->owner->client);
}

bool is_outstanding(const struct promise_pass *pass, const struct promise_call *call) {
    if (!leaves_trace(call)) return false;
    if (!call->answer) return has_ended(call->owner->client) || may_be_granted_unanswered(pass, call);
    if (pass->events[call->answer].outcome != OUTCOME_OK) return false;
    return may_have(pass, call);
}

/* Was the wait over, or ended, before the answer? Then a command may have been under way. */
static bool was_given_up(const struct promise_pass *pass, const struct promise_call *call) {
    const struct call *asked = &call->ask->asked;
    int64_t answered_ns = pass->events[call->answer].at_ns;
    bool over = asked->wait == WAIT_TIME && after_ms(call->ask->at_ns, asked->wait_ms) <= answered_ns;
    return over || was_cancelled(pass, call);
}

/* May the library have been unable to take back what a refused acquire was granted? Its command was executed late or
 * twice, two messages were lost, or one was and the wait was given up. */
static bool is_excused(const struct promise_pass *pass, const struct promise_call *call) {
    int lost = 0;
    for (uint32_t at = call->disturbances; at < pass->disturbance_count; at++) {
        const struct call_event *event = pass->disturbances[at].event;
        bool late = event->kind == EVENT_LATE;
        if (!disturbs_client(&pass->disturbances[at], call->owner->client)) continue;
        if (late && event->until_ns != LATE_FOR_EVER) {
            if (!event->reply) return true;
            continue;
        }
        if (!late && event->effect == FAULT_STILL) continue;
        if (!late && event->effect != FAULT_LOST) return true;
        if (++lost > 1 || was_given_up(pass, call)) return true;
    }
    return false;
}

bool waits_for_all(const struct promise_pass *pass, const struct promise_call *call) {
    return pass->facts->nodes <= 1 && !pass->facts->parts && !may_be_granted_unanswered(pass, call) &&
           call->ask->at_ns < pass->now_ns && !has_ended(call->owner->client);
}

static int64_t trace_under_way(const struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    if (has_ended(client)) return fading(pass, lease_ms, latest(client->ended_ns, client->late_command_ns));
    if (!waits_for_all(pass, call)) return lease_ms;
    /* Unless a command that it no longer expects an answer to was granted. */
    return client->late_command_ns >= call->ask->at_ns ? fading(pass, lease_ms, client->late_command_ns) : 0;
}

/* Of what the owner had before another one was granted the lock, only a command that came later can be seen. */
static bool is_superseded(const struct promise_pass *pass, const struct promise_call *call) {
    uint32_t superseded = call->owner->superseded;
    bool again = call->ask->asked.verb == CALL_ACQUIRE && call->ask > &pass->events[superseded];
    return superseded && call->answer && !again;
}

static int64_t trace_superseded(const struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    int64_t late_ns = call->owner->client->late_command_ns;
    return late_ns > pass->events[call->owner->superseded].at_ns ? fading(pass, lease_ms, late_ns) : 0;
}

static int64_t trace_ok(const struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_owner *owner = call->owner;
    const struct promise_client *client = owner->client;
    int64_t touched_ns = latest(last_set_ns(pass, owner), client->late_command_ns);
    if (!may_have(pass, call)) return lease_ms == PROMISE_ALWAYS ? 0 : fading(pass, lease_ms, touched_ns);
    if (!is_renewed(&call->ask->asked)) return fading(pass, lease_ms, touched_ns);
    if (has_ended(client)) return fading(pass, lease_ms, latest(client->ended_ns, client->late_command_ns));
    return lease_ms;
}

/* May a disturbed call have re-entered a hold of its owner, also one of a later acquire? A late re-entry may set the
 * lease of what the owner has, and giving it back leaves that. */
static bool may_have_entered(const struct promise_pass *pass, const struct promise_call *call) {
    if (!call->disturbed || !call->alone) return call->disturbed;
    for (uint32_t at = (uint32_t)(call->ask - pass->events) + 1; at <= pass->now; at++) {
        const struct promise_call *each = &pass->calls[at];
        if (!each->ask || each->owner != call->owner || each->ask->asked.verb != CALL_ACQUIRE) continue;
        if (!each->answer || pass->events[each->answer].outcome == OUTCOME_OK) return true;
    }
    return false;
}

static int64_t trace_unknown(const struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    int64_t from_ns = latest(latest(pass->events[call->answer].at_ns, client->late_command_ns),
                             has_ended(client) ? client->ended_ns : INT64_MIN);
    bool ends = lease_ms != PROMISE_ALWAYS;
    if (was_cancelled(pass, call)) {
        bool excused = is_disturbed(pass, client) || may_have_missed(client) || may_have_entered(pass, call);
        if (!ends) return excused ? PROMISE_ALWAYS : 0;
        return fading(pass, lease_ms, from_ns);
    }
    if (!may_hold(call->owner))
        return ends ? fading(pass, lease_ms, latest(from_ns, last_set_ns(pass, call->owner))) : 0;
    if (is_renewed(&call->ask->asked) && !has_ended(client)) return lease_ms;
    return fading(pass, lease_ms, latest(from_ns, last_set_ns(pass, call->owner)));
}

static int64_t trace_refused(const struct promise_pass *pass, const struct promise_call *call, int64_t lease_ms) {
    const struct promise_client *client = call->owner->client;
    int64_t from_ns = latest(pass->events[call->answer].at_ns, client->late_command_ns);
    if (call->ask->asked.verb == CALL_RENEW) return call->disturbed ? fading(pass, lease_ms, from_ns) : 0;
    if (pass->facts->nodes > 1) return fading(pass, lease_ms, from_ns);
    if (is_disturbed(pass, client)) return lease_ms;
    if (may_have_entered(pass, call)) return fading(pass, lease_ms, latest(from_ns, last_set_ns(pass, call->owner)));
    return is_excused(pass, call) ? fading(pass, lease_ms, from_ns) : 0;
}

/* Was its key seen to be gone after the call, and after all that may have come late? */
static bool was_seen_gone(const struct promise_pass *pass, const struct promise_call *call) {
    const struct promise_client *client = call->owner->client;
    if (is_outstanding(pass, call) || is_disturbed(pass, client)) return false;
    return pass->facts->nodes <= 1 && call->resource->absent > call->answer &&
           call->resource->absent_ns >= client->late_command_ns;
}

int64_t trace_ms(const struct promise_pass *pass, const struct promise_call *call) {
    if (!leaves_trace(call)) return 0;
    int64_t lease_ms = lease_of_call(pass, &call->ask->asked);
    if (!call->answer) return trace_under_way(pass, call, lease_ms);
    if (was_seen_gone(pass, call)) return 0;
    if (is_superseded(pass, call)) return trace_superseded(pass, call, lease_ms);
    switch (pass->events[call->answer].outcome) {
    case OUTCOME_OK: return trace_ok(pass, call, lease_ms);
    case OUTCOME_REFUSED: return trace_refused(pass, call, lease_ms);
    case OUTCOME_UNKNOWN: return trace_unknown(pass, call, lease_ms);
    }
    return lease_ms;
}
